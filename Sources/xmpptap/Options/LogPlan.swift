internal import TapCapture
internal import TapRecord
internal import TapRules

/// The log flags as typed.
struct LogRequest {
    var log: LogSpec?
    var filter: RecordFilter?
    /// The form of standard output; nil selects the default.
    var form: LogDestination.Form?
    var colour = ColourChoice.auto
    /// Whether standard output shows the text of messages; nil selects the default.
    var showsBodies: Bool?
    var logTo: [LogDestination] = []
    var capture: String?
    var trigger: CaptureTrigger?
    var store: StoreRequest?
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

    /// Leaves standard output to a view of the terminal.
    ///
    /// - Parameter flag: The flag of the view, for errors.
    mutating func leaveOutput(to flag: String) throws(Failure) {
        let isOff = log.map { LogFilter($0).level == .off } ?? true
        guard isOff, !logTo.contains(where: { $0.path == "-" }) else {
            throw .usage("\(flag) draws on standard output, which can have no log then; use --log-to FILE")
        }
        log = LogSpec(level: .off)
    }
}

/// The logs to write, resolved from a ``LogRequest``.
struct LogPlan: Equatable {
    struct Log: Equatable {
        /// The file; nil means standard output.
        var path: String?
        var form: LogDestination.Form
        var spec: LogSpec
        /// The filter for records; nil shows all.
        var filter: RecordFilter?
        /// The trigger around whose matches records are kept; nil keeps all.
        var trigger: CaptureTrigger?
        var isTerminal = false
        var isColoured = false
        var showsBodies = false
        /// Whether records are shown as they arrive, and logins are not folded, because no timer would show slow ones.
        var isLive = false
        /// Whether records may be added to an existing file; in a folder, files are always new.
        var appends = true
        /// Whether the lines form a hash chain.
        var hasChain = false
        /// The flag that requested the log, for error messages.
        var flag = "--log-to"
        /// The audit store, if the path is that of one; nil for a log.
        var store: StoreRequest?
        /// Whether sessions are closed while it cannot be written.
        var isRequired = false

        /// The name of the log in error messages.
        var name: String { path ?? Self.standardOutput }
        static let standardOutput = "standard output"

        /// Whether the log is JSON and contains all records up to level verbose, as a capture must.
        var isComplete: Bool {
            let levels = [spec.level ?? .info] + spec.parts.values + spec.sessions.values + spec.jids.map(\.level)
            return form == .json && filter == nil && trigger == nil && levels.allSatisfy { $0 >= .verbose }
        }
    }

    /// The logs; standard output is the first.
    let logs: [Log]
    /// Size in bytes at which a log is rotated; nil disables rotation by size.
    let rotateSize: UInt64?
    /// Number of rotated files to keep; nil means ten of a log and all of a capture.
    let rotateKeep: Int?
    /// Age at which a log is rotated; nil disables rotation by age.
    let rotateAge: Duration?
    /// Age at which rotated files are removed; nil keeps them.
    let keepAge: Duration?
    /// Whether files are flushed to the disk after each write.
    let syncs: Bool
    /// The redaction of all logs.
    let redaction: RedactionPolicy
    /// Whether sessions are closed while a log or the store cannot be written.
    var isRequired: Bool { logs.contains { $0.isRequired } }

    /// Resolves a request.
    ///
    /// - Parameter defaultSpec: The selection for standard output without `--log`; nil means `info,send,recv` for text
    ///   on a terminal, JSON up to `verbose`, and otherwise `info`.
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
        if let store = request.store {
            let (path, spec, filter) = (store.destination.path, store.destination.spec, store.destination.filter)
            var log = Log(path: path, form: .json, spec: spec, filter: filter, flag: "--store")
            log.store = store
            logs.append(log)
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
        guard !request.isRequired || logs.contains(where: { $0.store == nil }) else {
            throw .usage("--log-required needs a log; add --log-to or --capture")
        }
        for index in logs.indices { logs[index].isRequired = logs[index].store?.isRequired ?? request.isRequired }
        self.logs = logs
        rotateSize = request.rotateSize.bytes == 0 ? nil : request.rotateSize.bytes
        rotateKeep = request.rotateKeep
        rotateAge = request.rotateAge
        keepAge = request.keepAge
        syncs = request.syncs
        redaction = request.showsSecrets ? .none : request.redact ?? .secrets
    }

    /// Refuses two logs with the same file, whose lines would be mixed. Devices are allowed.
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
    /// Returns the default selection for standard output in this form. Text on a terminal shows the XML of stanzas in
    /// addition; the compact form is an overview.
    func usualSpec(in surroundings: Surroundings) -> LogSpec {
        switch self {
        case .json: LogSpec(level: .verbose)
        case .compact: LogSpec(level: .info)
        case .text, .pretty: LogSpec(level: .info, send: surroundings.isTerminal, receive: surroundings.isTerminal)
        }
    }

    /// Returns whether standard output shows the text of messages by default: only in the compact form on a terminal.
    func usuallyShowsBodies(in surroundings: Surroundings) -> Bool { self == .compact && surroundings.isTerminal }
}
