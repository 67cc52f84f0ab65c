internal import TapCapture
internal import TapRecord
internal import TapRules

/// The plan for `read`: which records it shows, and how.
struct ReadPlan {
    let files: [String]
    /// The output.
    let output: LogPlan.Log
    /// The sessions to show; empty shows all.
    let sessions: Set<UInt64>
    /// The times of the records to show; nil shows all.
    let times: Range<Timestamp>?
    /// The header of the first file.
    let header: RecordHeader
    /// Whether all records up to level verbose are shown, with the additional fields of a capture.
    let keepsAll: Bool
    /// Whether records are selected, so that many may be read before one is shown.
    var selects: Bool {
        output.filter != nil || times != nil || !sessions.isEmpty || LogFilter(output.spec).level < .info
    }
    /// A note that is printed before the output.
    let note: String?
    /// The requested selection; nil shows everything.
    private let spec: LogSpec?

    /// Resolves the options; `path` is the file to write, nil for standard output.
    init(
        files: [String],
        log: LogSpec?,
        filter: RecordFilter? = nil,
        form: LogDestination.Form? = nil,
        colour: ColourChoice = .auto,
        showsBodies: Bool? = nil,
        sessions: Set<UInt64>,
        times: Range<Timestamp>? = nil,
        header: RecordHeader,
        isLive: Bool = false,
        path: String? = nil,
        in surroundings: Surroundings
    ) {
        self.files = files
        let recorded = try? LogSpec(header.level)
        let isTerminal = surroundings.isTerminal
        // JSON shows all records of each file, at the level at which it was recorded.
        let form = form ?? surroundings.usualForm
        spec = log ?? (form == .json ? nil : form.usualSpec(in: surroundings))
        let output = LogPlan.Log(
            path: path,
            form: form,
            spec: spec ?? LogSpec(level: .trace),
            filter: filter,
            isTerminal: isTerminal,
            isColoured: colour.isColoured(in: surroundings) && form != .json,
            showsBodies: showsBodies ?? form.usuallyShowsBodies(in: surroundings),
            isLive: isLive,
            flag: "--log"
        )
        self.output = output
        self.sessions = sessions
        self.times = times
        self.header = header
        keepsAll = output.isComplete && sessions.isEmpty && times == nil
        if let recorded, let spec, LogFilter(recorded).level < LogFilter(spec).level {
            note =
                "\(files.joined(separator: ", ")): recorded at \(header.level); records of more detailed levels are missing"
        } else if let recorded, let filter, filter.readsXML, LogFilter(recorded).level < .verbose {
            note =
                "--filter: \(files.joined(separator: ", ")): recorded at \(header.level), so without the XML of stanzas; "
                + "record with --capture or --log verbose"
        } else {
            note = nil
        }
    }

    /// Whether all sessions and times are shown.
    var includesAll: Bool { sessions.isEmpty && times == nil }

    /// The sessions and times that are shown. The output filters their records.
    var selection: RecordSelection { RecordSelection(sessions: sessions, times: times) }

    /// Returns the header of the output for one file of the recording.
    ///
    /// - Parameters:
    ///   - header: The header of that file.
    ///   - isWhole: Whether all earlier records of its run are present.
    func header(of header: RecordHeader, isWhole: Bool) -> RecordHeader {
        var shown = header
        shown.isComplete = header.isComplete && keepsAll && isWhole
        if let filter = output.filter {
            shown.filter = header.filter.map { RecordFilter.joined($0, filter.text) } ?? filter.text
        }
        // The level of the recording limits the level shown.
        if let spec, let recorded = try? LogSpec(header.level), LogFilter(recorded).level >= LogFilter(spec).level {
            shown.level = spec.description
        }
        return shown
    }
}
