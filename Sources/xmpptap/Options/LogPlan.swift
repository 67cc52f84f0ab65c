internal import TapRecord

/// What was typed about logs.
struct LogRequest {
    /// `--log`.
    var log: LogSpec?
    /// `--log-to`, each.
    var logTo: [LogDestination] = []
    /// `--capture`.
    var capture: String?
    /// `--rotate-size`.
    var rotateSize = ByteSize(bytes: 100_000_000)
    /// `--rotate-keep`.
    var rotateKeep = 10
    /// `--redact`.
    var redact: RedactionPolicy?
    /// `--no-redact`.
    var showsSecrets = false
    /// `--log-required`.
    var isRequired = false
}

/// What is meant by it: every log that is to be written, and how.
struct LogPlan: Equatable {
    /// One log.
    struct Log: Equatable {
        /// The file; nil is standard output.
        var path: String?
        /// How it is written.
        var form: LogDestination.Form
        /// What it shows.
        var spec: LogSpec
        /// A person reads it.
        var isTerminal = false
        /// In colours.
        var isColoured = false
        /// The flag that asked for it, for complaints.
        var flag = "--log-to"

        /// What it is called in complaints.
        var name: String { path ?? Self.standardOutput }
        static let standardOutput = "standard output"

        /// Whether a reader finds every record up to verbose in it: what makes a capture of a JSON log.
        var isComplete: Bool {
            let levels = [spec.level ?? .info] + spec.parts.values + spec.sessions.values + spec.jids.map(\.level)
            return form == .json && levels.allSatisfy { $0 >= .verbose }
        }
    }

    /// What is known of the place where the program runs.
    struct Surroundings {
        /// Standard output is a terminal.
        var isTerminal: Bool
        /// Colours are wanted there: no `NO_COLOR` in the environment and a terminal that knows them.
        var wantsColour: Bool

        /// The real ones.
        static var current: Surroundings {
            Surroundings(
                isTerminal: Console.isTerminal,
                wantsColour: Console.environment("NO_COLOR") == nil && Console.environment("TERM") != "dumb"
            )
        }
    }

    /// The logs, standard output first.
    let logs: [Log]
    /// Bytes at which a file is put aside; nil is never.
    let rotateSize: UInt64?
    /// Files kept beside the one being written.
    let rotateKeep: Int
    /// What is hidden from all of them.
    let redaction: RedactionPolicy
    /// Without them no session goes on.
    let isRequired: Bool

    /// Resolves a request.
    ///
    /// - Parameter defaultSpec: What standard output shows where nothing is said; by default `info,send,recv` on a
    ///   terminal, and `info` elsewhere.
    init(
        _ request: LogRequest,
        in surroundings: Surroundings,
        defaultSpec: LogSpec? = nil
    ) throws(Failure) {
        let onOutput = request.logTo.filter { $0.path == "-" }
        guard onOutput.count <= 1, onOutput.isEmpty || request.log == nil || request.log == LogSpec(level: .off) else {
            throw .usage("--log-to -: standard output holds one log only; leave --log out, or write to a file")
        }
        var logs: [Log] = []
        let usual = LogSpec(level: .info, send: surroundings.isTerminal, receive: surroundings.isTerminal)
        let spec = request.log ?? defaultSpec ?? usual
        if onOutput.isEmpty, LogFilter(spec).level > .off {
            logs.append(Log(path: nil, form: .text, spec: spec, flag: "--log"))
        }
        for destination in request.logTo {
            let path = destination.path == "-" ? nil : destination.path
            logs.append(Log(path: path, form: destination.form, spec: destination.spec))
        }
        if let capture = request.capture {
            guard !capture.isEmpty, capture != "-" else {
                throw .usage("--capture takes a file; for standard output use --log-to -,format=json,verbose")
            }
            logs.append(Log(path: capture, form: .json, spec: LogSpec(level: .verbose), flag: "--capture"))
        }
        try Self.refuseOneFileForTwo(logs)
        for index in logs.indices where logs[index].path == nil {
            logs[index].isTerminal = surroundings.isTerminal
            logs[index].isColoured = surroundings.isTerminal && surroundings.wantsColour && logs[index].form != .json
        }
        if request.showsSecrets, let policy = request.redact {
            throw .usage("--redact \(policy.rawValue) hides what --no-redact shows: say one of them")
        }
        guard !request.isRequired || !logs.isEmpty else {
            throw .usage("--log-required: there is no log that could be required; add --log-to or --capture")
        }
        self.logs = logs
        rotateSize = request.rotateSize.bytes == 0 ? nil : request.rotateSize.bytes
        rotateKeep = request.rotateKeep
        redaction = request.showsSecrets ? .none : request.redact ?? .secrets
        isRequired = request.isRequired
    }

    /// Two logs in one file would mix their lines. A device or descriptor takes any number.
    private static func refuseOneFileForTwo(_ logs: [Log]) throws(Failure) {
        func plain(_ path: String) -> Substring {
            var rest = path[...]
            while rest.hasPrefix("./") { rest = rest.dropFirst(2).drop { $0 == "/" } }
            return rest
        }
        for (index, log) in logs.enumerated() {
            guard let path = log.path, !path.hasPrefix("/dev/") else { continue }
            if let earlier = logs[..<index].first(where: { $0.path.map(plain) == plain(path) }) {
                throw .usage("\(log.flag): \(path) is the file of \(earlier.flag) too; give each log its own")
            }
        }
    }

    /// The least severe level that any of the logs shows.
    var level: Level { logs.map { LogFilter($0.spec).level }.max() ?? .off }
}
