package import TapCore
internal import TapDiagnosis
package import TapRecord
internal import XMPPCore

/// The records of a complete capture, as what happened to its sessions.
///
/// The records of one run, in the order in which they were written; ``Reanalysis`` reads whole files by it. What becomes of
/// each record is documented at `RecordedSession`. A session whose end was not recorded stays open; one whose beginning was
/// not recorded is given as it is stored.
package struct CaptureSource: Source {
    private var waiting: ArraySlice<SourceInput> = []
    /// Sessions that have begun and not ended.
    private var open: Set<UInt64> = []

    /// A source that has nothing yet.
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

    /// Takes the next record.
    package mutating func take(_ line: RecordLine) {
        let record = line.record
        func input(_ kind: SourceInput.Kind) -> SourceInput {
            SourceInput(
                session: record.session,
                at: Run.Instant(time: record.time, monotonic: record.monotonic),
                kind
            )
        }
        // Without its beginning, a session's streams cannot be read.
        if record.code == Record.Code.sessionBegan, open.insert(record.session).inserted {
            waiting.append(input(.began(Record.Beginning(of: record), remote: record.remote)))
        }
        if record.code == Record.Code.sessionEnded { open.remove(record.session) }
        waiting.append(input(.recorded(line)))
    }

    /// Returns the next event; nil until another record has been taken.
    package mutating func next() -> SourceInput? { waiting.popFirst() }
}

/// Reads files as a ``RecordReader`` does, and of complete captures gives the records that today's code makes of their items.
///
/// Session numbers count within a run. After the first gap or damaged line of a run, its records are returned as stored.
package final class Reanalysis {
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
    /// The runs so far; nil is one that is not complete.
    private var parts: [String: Part?] = [:]
    private var run = ""
    private var hasGap = false
    /// A line could not be read. If a new beginning follows, the file was only cut off there.
    private var hasDamage = false
    private var waiting: ArraySlice<RecordLine> = []
    /// The entry after ``waiting``.
    private var held: RecordReader.Entry?

    /// Whether nothing was given as it is stored, but what was made of clients' logs just now.
    package private(set) var isWhole = true

    /// Reads on what a reader has not given yet.
    package init(_ reader: RecordReader) { self.reader = reader }

    /// The next entry, or `nil` at the end of the last file.
    package func next() throws(ReaderFault) -> RecordReader.Entry? {
        while true {
            if let record = waiting.popFirst() { return .record(record) }
            if let entry = held {
                held = nil
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
                let isKnown = parts[run] != nil
                if !header.isComplete || hasGap || !isKnown && (header.recordsBefore ?? 0) > 0 { giveUp() }
                hasGap = false
                hasDamage = false
                if parts[run] == nil { parts[run] = Part(reader.advice) }
                held = entry
            case .record(let line):
                if hasDamage || line.record.code == RecordReader.droppedCode { giveUp() }
                hasDamage = false
                guard var part = parts[run] ?? nil else {
                    held = entry
                    continue
                }
                // Out of the dictionary while it changes, or it would be copied.
                parts[run] = .some(nil)
                part.source.take(line)
                part.runner.take(&part.source) { waiting.append($0) }
                parts[run] = part
            case .gap:
                hasGap = true
                return entry
            case .damage:
                hasDamage = true
                held = entry
            }
        }
    }

    /// Gives the rest of the run as it is stored.
    private func giveUp() {
        release(run)
        parts[run] = .some(nil)
        isWhole = isWhole && reader.isForeignPart
    }

    /// Gives what the sessions of a run still hold, since nothing more of them is read.
    private func release(_ run: String) {
        guard let part = parts[run] ?? nil else { return }
        part.runner.release { waiting.append($0) }
    }
}
