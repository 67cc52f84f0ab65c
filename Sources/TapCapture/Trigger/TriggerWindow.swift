internal import TapRecord

/// Buffers the records of one session until a match, and counts the records to be written after it.
struct TriggerWindow {
    /// The functions that write a record's line, or a note.
    struct Output {
        let line: (RawSpan) -> Void
        let note: (TriggerNote) -> Void
    }

    private struct Omission {
        var records: UInt64
        var last: RecordPlace
    }

    private struct LoginLine {
        /// The records omitted before this line; nil if there are none.
        var omission: Omission?
        var line: [UInt8]
        var place: RecordPlace
    }

    let session: UInt64
    private let bounds: CaptureTrigger.Bounds
    /// The number of records that are still to be written after a match.
    private(set) var remaining = 0
    private(set) var hasMatched = false
    /// The number of records so far, and the position of the last one.
    private(set) var records: UInt64 = 0
    private(set) var last: RecordPlace?

    /// The newest unwritten records, which wait for a match.
    private var waiting = RecordRing()
    /// Older records, of the login or of the session itself, that are written at the first match.
    private var login: [LoginLine] = []
    private var loginBytes = 0
    /// The records omitted before ``waiting``; nil if there are none.
    private var omission: Omission?
    private var isReady = false
    private var bytesBeforeReady = 0

    init(session: UInt64, _ bounds: CaptureTrigger.Bounds) {
        self.session = session
        self.bounds = bounds
    }

    /// The number of bytes of the buffered lines.
    var byteCount: Int { waiting.byteCount + loginBytes }

    /// Handles the next record.
    ///
    /// - Parameters:
    ///   - before: The maximum number of records that are buffered until a match.
    ///   - after: The number of records to write after this one if it is a match; nil if it is not.
    mutating func process(
        _ record: borrowing Record,
        _ line: RawSpan,
        before: Int,
        after: Int?,
        to output: Output
    ) {
        let place = RecordPlace(record)
        records += 1
        last = place
        let isKept = isKept(record, line.byteCount)
        if let after {
            writeWaiting(output)
            remaining = after
        } else if remaining > 0 {
            remaining -= 1
        } else {
            waiting.append(line, place, isKept: isKept)
            while waiting.count > before || waiting.byteCount > bounds.session { leaveOutFirst(output) }
            return
        }
        writeOmission(output)
        output.line(line)
    }

    /// Ends the session. If it had a match, its buffered session records are written; other buffered records are
    /// omitted.
    mutating func end(_ output: Output) {
        remaining = 0
        while waiting.count > 0 { leaveOutFirst(output) }
        if hasMatched { writeOmission(output) }
        (login, loginBytes) = ([], 0)
    }

    /// Discards the older half of the waiting records, except those that are always written.
    mutating func halve(_ output: Output) {
        let half = waiting.byteCount / 2
        while waiting.byteCount > half { leaveOutFirst(output) }
    }

    /// Discards all records of the login except the first one.
    mutating func shortenLogin() {
        guard login.count > 1, let end = login.last?.place else { return }
        let count = login.dropFirst().reduce(0) { $0 + 1 + ($1.omission?.records ?? 0) }
        omission = Omission(records: count + (omission?.records ?? 0), last: omission?.last ?? end)
        login.removeLast(login.count - 1)
        loginBytes = login.first?.line.count ?? 0
    }

    /// Returns whether a record is kept even without a match near it: session records always, records of the login up
    /// to ``CaptureTrigger/Bounds/login`` bytes.
    private mutating func isKept(_ record: borrowing Record, _ length: Int) -> Bool {
        if record.code == Record.Code.sessionReady { isReady = true }
        if record.kind == .session { return true }
        guard !isReady, session > 0 else { return false }
        bytesBeforeReady += length
        return bytesBeforeReady <= bounds.login
    }

    private mutating func writeWaiting(_ output: Output) {
        hasMatched = true
        for line in login {
            writeOmission(line.omission, output)
            output.line(line.line.span.bytes)
        }
        (login, loginBytes) = ([], 0)
        guard waiting.count > 0 else { return }
        writeOmission(output)
        while waiting.count > 0 {
            output.line(waiting.firstLine)
            waiting.dropFirst()
        }
    }

    private mutating func writeOmission(_ output: Output) {
        writeOmission(omission, output)
        omission = nil
    }

    private func writeOmission(_ omission: Omission?, _ output: Output) {
        guard let omission else { return }
        output.note(.omitted(session: session, records: omission.records, last: omission.last))
    }

    /// Removes the oldest waiting record. A record to keep is written if the session has had a match; before that, it
    /// is buffered with the login, if the limit allows. All others are omitted.
    private mutating func leaveOutFirst(_ output: Output) {
        guard let entry = waiting.first else { return }
        if entry.isKept, hasMatched {
            writeOmission(output)
            output.line(waiting.firstLine)
        } else if entry.isKept, loginBytes + entry.length <= 2 * bounds.login {
            let line = waiting.firstLine.withUnsafeBytes { Array($0) }
            login.append(LoginLine(omission: omission, line: line, place: entry.place))
            loginBytes += entry.length
            omission = nil
        } else {
            omission = Omission(records: (omission?.records ?? 0) + 1, last: entry.place)
        }
        waiting.dropFirst()
    }
}
