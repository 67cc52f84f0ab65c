package import TapRecord

/// Copies the selected records of files to a log, and returns all other entries.
///
/// The command line is compiled without optimisation. The loop over records is therefore in this target.
package struct RecordCopier {
    /// The reason why ``next()`` returned.
    package enum Stop {
        /// A header was read.
        case header(RecordHeader)
        /// Records are missing.
        case gap(MissingRecords)
        /// A line was skipped.
        case damage(DamagedLine)
        /// ``RecordCopier/interval`` entries were read since the last pause.
        case pause
        /// No entry is available now.
        case end
    }

    /// The number of entries between two pauses.
    private static let interval = 1024

    /// The sessions and runs of all entries so far.
    package private(set) var found = SessionsFound()
    private let reader: RecordReader
    private let reanalysis: CaptureReanalyzer?
    private let selection: RecordSelection
    private let sink: LogSink
    private let capture: LogSink?
    private let onRecord: ((borrowing RecordLine) -> Void)?
    private var entries = 0
    /// The number of records that the log has shown since the last call of ``takeCount()``.
    private var count: UInt64 = 0

    /// - Parameters:
    ///   - reader: The files.
    ///   - reanalysis: Provides the entries of `reader`; nil copies them as they are stored.
    ///   - selection: The records that the log gets.
    ///   - sink: The log.
    ///   - capture: A log that gets all records; nil if there is none.
    ///   - onRecord: Called with all records.
    package init(
        _ reader: RecordReader,
        _ reanalysis: CaptureReanalyzer?,
        _ selection: RecordSelection,
        to sink: LogSink,
        capture: LogSink?,
        onRecord: ((borrowing RecordLine) -> Void)? = nil
    ) {
        self.reader = reader
        self.reanalysis = reanalysis
        self.selection = selection
        self.sink = sink
        self.capture = capture
        self.onRecord = onRecord
    }

    /// Copies records, and returns at an entry of another kind, at the end, or after 1,024 records.
    ///
    /// - Throws: ``ReaderFault`` if a file becomes unreadable.
    package mutating func next() throws(ReaderFault) -> Stop {
        while let entry = try nextEntry() {
            entries &+= 1
            switch entry {
            case .record(let line):
                found.add(session: line.record.session)
                capture?.write(line)
                onRecord?(line)
                if selection.includes(line), sink.write(line) { count &+= 1 }
            case .header(let header):
                found.add(run: header.run)
                return .header(header)
            case .gap(let gap): return .gap(gap)
            case .damage(let line): return .damage(line)
            }
            if entries.isMultiple(of: Self.interval) { return .pause }
        }
        return .end
    }

    /// Returns the number of records that the log has shown since the last call.
    package mutating func takeCount() -> UInt64 {
        defer { count = 0 }
        return count
    }

    private func nextEntry() throws(ReaderFault) -> RecordReader.Entry? {
        if let reanalysis, let entry = try reanalysis.next() { return entry }
        return try reader.next()
    }
}
