internal import TapCore

/// What `read` shows of its files, and how.
struct ReadPlan {
    /// Where it shows it: standard output.
    let output: LogPlan.Log
    /// The sessions to show; empty is all.
    let sessions: Set<UInt64>
    /// The header of the first file.
    let header: RecordHeader
    /// Nothing that the files hold up to verbose is left out.
    let isComplete: Bool
    /// What the user should know beforehand.
    let note: String?

    /// Resolves what was typed.
    init(
        files: [String],
        log: LogSpec?,
        isJSON: Bool,
        sessions: Set<UInt64>,
        header: RecordHeader,
        in surroundings: LogPlan.Surroundings
    ) {
        let recorded = try? LogSpec(header.level)
        let isTerminal = surroundings.isTerminal
        let usual =
            isJSON
            ? recorded ?? LogSpec(level: .trace)
            : LogSpec(level: .info, send: isTerminal, receive: isTerminal)
        let spec = log ?? usual
        let output = LogPlan.Log(
            path: nil,
            form: isJSON ? .json : .text,
            spec: spec,
            isTerminal: isTerminal,
            isColoured: isTerminal && surroundings.wantsColour && !isJSON,
            flag: "--log"
        )
        self.output = output
        self.sessions = sessions
        self.header = header
        isComplete = header.isComplete && output.isComplete && sessions.isEmpty
        if let recorded, LogFilter(recorded).level < LogFilter(spec).level {
            note =
                "\(files.joined(separator: ", ")): recorded at \(header.level), so what lies beyond is not there to be shown"
        } else {
            note = nil
        }
    }
}
