internal import TapCore
internal import TapRecord

/// The log flags as typed.
struct LogRequest {
    var log: LogSpec?
    var filter: RecordFilter?
    var logTo: [LogDestination] = []
    var capture: String?
    var rotateSize = ByteSize(bytes: 100_000_000)
    var rotateKeep = 10
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
        var isTerminal = false
        var isColoured = false
        /// The flag that requested it, for errors.
        var flag = "--log-to"

        /// Its name in errors.
        var name: String { path ?? Self.standardOutput }
        static let standardOutput = "standard output"

        /// Whether it is JSON and has every record up to verbose, as a capture must.
        var isComplete: Bool {
            let levels = [spec.level ?? .info] + spec.parts.values + spec.sessions.values + spec.jids.map(\.level)
            return form == .json && filter == nil && levels.allSatisfy { $0 >= .verbose }
        }
    }

    /// The environment of the process.
    struct Surroundings {
        /// Standard output is a terminal.
        var isTerminal: Bool
        /// Neither `NO_COLOR` nor `TERM=dumb` is set.
        var wantsColour: Bool

        static var current: Surroundings {
            Surroundings(
                isTerminal: Console.isTerminal,
                wantsColour: Console.environment("NO_COLOR") == nil && Console.environment("TERM") != "dumb"
            )
        }
    }

    /// The logs, standard output first.
    let logs: [Log]
    /// Bytes at which a log is rotated; nil disables rotation.
    let rotateSize: UInt64?
    let rotateKeep: Int
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
        let usual = LogSpec(level: .info, send: surroundings.isTerminal, receive: surroundings.isTerminal)
        let spec = request.log ?? defaultSpec ?? usual
        if onOutput.isEmpty, LogFilter(spec).level > .off {
            logs.append(Log(path: nil, form: .text, spec: spec, filter: request.filter, flag: "--log"))
        } else if request.filter != nil {
            throw .usage("--filter is about standard output, which has no log; use --log-to PATH,filter=EXPRESSION")
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
            logs.append(
                Log(path: capture, form: .json, spec: LogSpec(level: .verbose), filter: filter, flag: "--capture")
            )
        }
        try Self.refuseOneFileForTwo(logs)
        for index in logs.indices where logs[index].path == nil {
            logs[index].isTerminal = surroundings.isTerminal
            logs[index].isColoured = surroundings.isTerminal && surroundings.wantsColour && logs[index].form != .json
        }
        if request.showsSecrets, let policy = request.redact {
            throw .usage("--redact \(policy.rawValue) and --no-redact contradict each other; leave one out")
        }
        guard !request.isRequired || !logs.isEmpty else {
            throw .usage("--log-required needs a log; add --log-to or --capture")
        }
        self.logs = logs
        rotateSize = request.rotateSize.bytes == 0 ? nil : request.rotateSize.bytes
        rotateKeep = request.rotateKeep
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
