internal import TapCapture
internal import TapRecord
internal import TapRules

/// The log flags as typed.
struct LogRequest {
    var log: LogSpec?
    var filter: RecordFilter?
    /// The form of standard output; nil is the usual one.
    var form: LogDestination.Form?
    var colour = ColourChoice.auto
    /// Whether standard output shows the texts of messages; nil is as usual.
    var showsBodies: Bool?
    var logTo: [LogDestination] = []
    var capture: String?
    var trigger: CaptureTrigger?
    var appends = false
    var hasChain = false
    var rotateSize = ByteSize(bytes: 100_000_000)
    var rotateKeep: Int?
    var rotateAge: Duration?
    var keepAge: Duration?
    var syncs = false
    var redact: RedactionPolicy?
    var showsSecrets = false
    var isRequired = false
}

/// The logs to write, resolved from a ``LogRequest``.
struct LogPlan: Equatable {
    struct Log: Equatable {
        /// The file; nil is standard output.
        var path: String?
        var form: LogDestination.Form
        var spec: LogSpec
        /// Which records it shows; nil is all.
        var filter: RecordFilter?
        /// Around which matches it holds records; nil holds all.
        var trigger: CaptureTrigger?
        var isTerminal = false
        var isColoured = false
        var showsBodies = false
        /// Whether records are shown as they arrive, without a timer that releases those held back.
        var isLive = false
        /// Whether a file with content is added to; not asked of the files of a folder, which are new.
        var appends = true
        /// Whether its lines are in a hash chain.
        var hasChain = false
        /// The flag that requested it, for errors.
        var flag = "--log-to"

        /// Its name in errors.
        var name: String { path ?? Self.standardOutput }
        static let standardOutput = "standard output"

        /// Whether it is JSON and has every record up to verbose, as a capture must.
        var isComplete: Bool {
            let levels = [spec.level ?? .info] + spec.parts.values + spec.sessions.values + spec.jids.map(\.level)
            return form == .json && filter == nil && trigger == nil && levels.allSatisfy { $0 >= .verbose }
        }
    }

    /// The logs, standard output first.
    let logs: [Log]
    /// Bytes at which a log is rotated; nil disables rotation.
    let rotateSize: UInt64?
    /// Rotated files to keep; nil is ten of a log and all of a capture.
    let rotateKeep: Int?
    /// The age at which a log is rotated; nil is never.
    let rotateAge: Duration?
    /// The age at which rotated files are removed; nil is never.
    let keepAge: Duration?
    /// Whether files are flushed to the disk after each write.
    let syncs: Bool
    /// What all of them hide.
    let redaction: RedactionPolicy
    /// Sessions are closed while one of them cannot be written.
    let isRequired: Bool

    /// Resolves a request.
    ///
    /// - Parameter defaultSpec: What standard output shows without `--log`; by default `info,send,recv` on a
    ///   terminal, and `info` elsewhere.
    init(
        _ request: LogRequest,
        in surroundings: Surroundings,
        defaultSpec: LogSpec? = nil
    ) throws(Failure) {
        let onOutput = request.logTo.filter { $0.path == "-" }
        guard onOutput.count <= 1, onOutput.isEmpty || request.log == nil || request.log == LogSpec(level: .off) else {
            throw .usage("--log-to -: standard output can have one log only; leave --log out, or write to a file")
        }
        var logs: [Log] = []
        let form = request.form ?? surroundings.usualForm
        let usual = form.usualSpec(in: surroundings)
        let spec = request.log ?? defaultSpec ?? usual
        if onOutput.isEmpty, LogFilter(spec).level > .off {
            logs.append(Log(path: nil, form: form, spec: spec, filter: request.filter, flag: "--log"))
        } else if request.filter != nil {
            throw .usage("--filter applies to standard output, which has no log; use --log-to PATH,filter=EXPRESSION")
        }
        for destination in request.logTo {
            let path = destination.path == "-" ? nil : destination.path
            logs.append(
                Log(path: path, form: destination.form, spec: destination.spec, filter: destination.filter)
            )
        }
        if let capture = request.capture {
            let (capture, filter) = try RecordFilter.split(capture, of: "--capture: ")
            guard !capture.isEmpty, capture != "-" else {
                throw .usage("--capture needs a file; for standard output use --log-to -,format=json,verbose")
            }
            try CapturePath.check(capture)
            var log = Log(path: capture, form: .json, spec: LogSpec(level: .verbose), filter: filter, flag: "--capture")
            log.appends = request.appends
            log.hasChain = request.hasChain
            log.trigger = request.trigger
            if CapturePath.isPerSession(capture) {
                guard !request.hasChain else {
                    throw .usage(
                        "--hash-chain: with %s or %j each file would have a chain, whose end has to be kept elsewhere; leave "
                            + "them out of --capture, and write single sessions with 'xmpptap convert'"
                    )
                }
                guard request.trigger == nil else {
                    throw .usage("--capture-when needs one file for all sessions; leave %s and %j out of --capture")
                }
            }
            logs.append(log)
        } else if request.appends || request.hasChain {
            throw .usage("\(request.appends ? "--append" : "--hash-chain") needs --capture; add it")
        }
        try Self.refuseOneFileForTwo(logs)
        for index in logs.indices where logs[index].path == nil {
            logs[index].isTerminal = surroundings.isTerminal
            logs[index].showsBodies = request.showsBodies ?? logs[index].form.usuallyShowsBodies(in: surroundings)
            logs[index].isColoured = request.colour.isColoured(in: surroundings) && logs[index].form != .json
        }
        try RedactionPolicy.refuseContradiction(
            request.redact,
            showsSecrets: request.showsSecrets,
            showsBodies: request.showsBodies == true
        )
        guard !request.isRequired || !logs.isEmpty else {
            throw .usage("--log-required needs a log; add --log-to or --capture")
        }
        self.logs = logs
        rotateSize = request.rotateSize.bytes == 0 ? nil : request.rotateSize.bytes
        rotateKeep = request.rotateKeep
        rotateAge = request.rotateAge
        keepAge = request.keepAge
        syncs = request.syncs
        redaction = request.showsSecrets ? .none : request.redact ?? .secrets
        isRequired = request.isRequired
    }

    /// Two logs in one file would mix their lines. Devices and descriptors are allowed.
    private static func refuseOneFileForTwo(_ logs: [Log]) throws(Failure) {
        func plain(_ path: String) -> Substring {
            var rest = path[...]
            while rest.hasPrefix("./") { rest = rest.dropFirst(2).drop { $0 == "/" } }
            return rest
        }
        for (index, log) in logs.enumerated() {
            guard let path = log.path, !path.hasPrefix("/dev/") else { continue }
            if let earlier = logs[..<index].first(where: { $0.path.map(plain) == plain(path) }) {
                throw .usage(
                    "\(log.flag): \(path) is also the file of \(earlier.flag); use a separate file for each log"
                )
            }
        }
    }
}

extension Surroundings {
    /// The default form of standard output.
    var usualForm: LogDestination.Form { isTerminal ? .compact : .text }
}

extension LogDestination.Form {
    /// The default selection of standard output in this form: on a terminal the lines of `text` are beside the XML;
    /// rows of columns are for an overview.
    func usualSpec(in surroundings: Surroundings) -> LogSpec {
        switch self {
        case .json: LogSpec(level: .verbose)
        case .compact: LogSpec(level: .info)
        case .text, .pretty: LogSpec(level: .info, send: surroundings.isTerminal, receive: surroundings.isTerminal)
        }
    }

    /// Whether standard output shows the texts of messages, unless a flag says so: only to the people at a terminal.
    func usuallyShowsBodies(in surroundings: Surroundings) -> Bool { self == .compact && surroundings.isTerminal }
}
