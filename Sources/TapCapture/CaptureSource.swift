package import TapCore
internal import TapDiagnosis
package import TapRecord
internal import XMPPCore

/// Replays the records of a complete capture as events of its sessions, so that its items are parsed and judged
/// again.
///
/// It reads the records of one run, in the order in which they were written; ``CaptureReanalyzer`` uses it to read
/// whole files. `RecordedSession` documents how each kind of record is handled. A session without a recorded end stays
/// open. The records of a session without a recorded beginning are returned as stored.
package struct CaptureSource: Source {
    private var waiting: ArraySlice<SourceInput> = []
    /// Sessions that have begun but not ended.
    private var open: Set<UInt64> = []

    /// Creates a source without records.
    package init() {}

    /// Options for the sessions of a capture. Nothing is redacted again, and no limit applies: oversized items are not
    /// in the capture, and a placeholder may be longer than the secret was.
    package static var options: SessionOptions {
        let most = 1 << 30
        let limits = StreamLimits(
            itemBytes: most,
            tagBytes: most,
            depth: most,
            attributes: most,
            nameBytes: most,
            namespaces: most
        )
        var options = SessionOptions(redaction: .none, unauthenticatedLimits: limits, limits: limits)
        options.isRecorded = true
        return options
    }

    /// Creates the events for the next record; ``next()`` returns them.
    package mutating func add(_ line: RecordLine) {
        let record = line.record
        func input(_ kind: SourceInput.Kind) -> SourceInput {
            SourceInput(
                session: record.session,
                at: Run.Instant(time: record.time, monotonic: record.monotonic),
                kind
            )
        }
        // A session's streams can be parsed only from their beginning.
        if record.code == Record.Code.sessionBegan, open.insert(record.session).inserted {
            waiting.append(input(.began(Record.Beginning(of: record), remote: record.remote)))
        }
        if record.code == Record.Code.sessionEnded { open.remove(record.session) }
        waiting.append(input(.recorded(line)))
    }

    /// Returns the next event; nil if there is none until the next call of ``add(_:)``.
    package mutating func next() -> SourceInput? { waiting.popFirst() }
}

/// Reads files with a ``RecordReader``, and replaces the records of complete captures by those that the current code
/// makes of their items.
///
/// Sessions are numbered within a run. After the first gap or damaged line of a run, its records are returned as
/// stored.
package final class CaptureReanalyzer {
    private struct Part {
        var source = CaptureSource()
        var runner: SourceRunner

        init(_ advice: Advice?) {
            var options = CaptureSource.options
            options.advice = advice
            runner = SourceRunner(run: Run(), options: options)
        }
    }

    private let reader: RecordReader
    /// The runs so far; the value is nil if a run is incomplete.
    private var parts: [String: Part?] = [:]
    private var run = ""
    private var hasGap = false
    /// Whether the previous line could not be read. If a header follows it, the file was only cut off there.
    private var hasDamage = false
    /// The last headers of the runs so far, and the paths of their files.
    private var headers: [String: (header: RecordHeader, path: String)] = [:]
    /// The run of the last header in, or before, ``waiting``. The records after it belong to this run.
    private var begun = ""
    /// The entries to return before more are read.
    private var waiting: ArraySlice<RecordReader.Entry> = []

    /// False after a stored record was returned unchanged. Records made from clients' logs or packets are not stored
    /// records.
    package private(set) var isWhole = true
    /// The path of the file of the header returned last.
    package private(set) var path = ""

    /// Creates a reader for the entries that `reader` has not returned yet.
    package init(_ reader: RecordReader) { self.reader = reader }

    /// Returns the next entry; nil at the end of the last file.
    package func next() throws(ReaderFault) -> RecordReader.Entry? {
        while true {
            if let entry = waiting.popFirst() {
                if case .header(let header) = entry { path = headers[header.run]?.path ?? "" }
                return entry
            }
            guard let entry = try reader.next() else {
                for run in parts.keys.sorted() { release(run) }
                guard waiting.isEmpty else { continue }
                return nil
            }
            switch entry {
            case .header(let header):
                run = header.run
                headers[run] = (header, reader.path)
                begun = run
                waiting.append(entry)
                let isKnown = parts[run] != nil
                if !header.isComplete || hasGap || !isKnown && (header.recordsBefore ?? 0) > 0 { giveUp() }
                hasGap = false
                hasDamage = false
                if parts[run] == nil { parts[run] = Part(reader.advice) }
            case .record(let line):
                if hasDamage || line.record.code == RecordReader.droppedCode { giveUp() }
                hasDamage = false
                guard var part = parts[run] ?? nil else {
                    append(line, of: run)
                    continue
                }
                // Removing the part from the dictionary before changing it avoids a copy.
                parts[run] = .some(nil)
                part.source.add(line)
                part.runner.process(&part.source) { append($0, of: run) }
                parts[run] = part
            case .gap:
                hasGap = true
                return entry
            case .damage:
                hasDamage = true
                return entry
            }
        }
    }

    /// Returns the rest of the run as stored.
    private func giveUp() {
        release(run)
        parts[run] = .some(nil)
        isWhole = isWhole && reader.isForeignPart
    }

    /// Returns the records that the sessions of a run still hold, because no more of its records are replayed.
    private func release(_ run: String) {
        guard let part = parts[run] ?? nil else { return }
        part.runner.release { append($0, of: run) }
    }

    /// Appends a record to those that wait, after the header of its run if another one came last.
    private func append(_ line: RecordLine, of run: String) {
        if run != begun, let header = headers[run]?.header {
            waiting.append(.header(header))
            begun = run
        }
        waiting.append(.record(line))
    }
}
