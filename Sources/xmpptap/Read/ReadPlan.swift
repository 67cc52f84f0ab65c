internal import TapCore
internal import TapRecord

/// What `read` shows of its files, and how.
struct ReadPlan {
    let files: [String]
    /// Where it shows it: standard output.
    let output: LogPlan.Log
    /// The sessions to show; empty is all.
    let sessions: Set<UInt64>
    /// The header of the first file.
    let header: RecordHeader
    /// Everything that the files hold up to verbose is shown, with what a capture has beside.
    let keepsAll: Bool
    /// What the user should know beforehand.
    let note: String?
    /// What was asked for; nil is all there is.
    private let spec: LogSpec?

    /// Resolves what was typed.
    init(
        files: [String],
        log: LogSpec?,
        filter: RecordFilter? = nil,
        isJSON: Bool,
        sessions: Set<UInt64>,
        header: RecordHeader,
        in surroundings: LogPlan.Surroundings
    ) {
        self.files = files
        let recorded = try? LogSpec(header.level)
        let isTerminal = surroundings.isTerminal
        // JSON shows all there is, and of each part of the files as it was recorded.
        spec = log ?? (isJSON ? nil : LogSpec(level: .info, send: isTerminal, receive: isTerminal))
        let output = LogPlan.Log(
            path: nil,
            form: isJSON ? .json : .text,
            spec: spec ?? LogSpec(level: .trace),
            filter: filter,
            isTerminal: isTerminal,
            isColoured: isTerminal && surroundings.wantsColour && !isJSON,
            flag: "--log"
        )
        self.output = output
        self.sessions = sessions
        self.header = header
        keepsAll = output.isComplete && sessions.isEmpty
        if let recorded, let spec, LogFilter(recorded).level < LogFilter(spec).level {
            note =
                "\(files.joined(separator: ", ")): recorded at \(header.level), so what lies beyond is not there to be shown"
        } else if let recorded, let filter, filter.readsXML, LogFilter(recorded).level < .verbose {
            note =
                "--filter: \(files.joined(separator: ", ")): recorded at \(header.level), so without the XML of stanzas; "
                + "record with --capture or --log verbose"
        } else {
            note = nil
        }
    }

    /// The header of what is shown of a part of the files.
    ///
    /// - Parameters:
    ///   - header: The header of that part.
    ///   - isWhole: No record of its run that stood before it is missing.
    func header(of header: RecordHeader, isWhole: Bool) -> RecordHeader {
        var shown = header
        shown.isComplete = header.isComplete && keepsAll && isWhole
        if let filter = output.filter {
            shown.filter = header.filter.map { RecordFilter.joined($0, filter.text) } ?? filter.text
        }
        // What was not recorded is not there, whatever was asked for.
        if let spec, let recorded = try? LogSpec(header.level), LogFilter(recorded).level >= LogFilter(spec).level {
            shown.level = spec.description
        }
        return shown
    }
}
