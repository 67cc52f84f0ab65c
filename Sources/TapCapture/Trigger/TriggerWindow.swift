internal import TapRecord

/// The records of one session that wait for a match, and those that follow one.
struct TriggerWindow {
    /// Takes what is written: a line of a record, or a note.
    struct Output {
        let line: (RawSpan) -> Void
        let note: (TriggerNote) -> Void
    }

    private struct Omission {
        var records: UInt64
        var last: RecordPlace
    }

    private struct LoginLine {
        /// The records left out before it.
        var omission: Omission?
        var line: [UInt8]
        var place: RecordPlace
    }

    let session: UInt64
    private let bounds: CaptureTrigger.Bounds
    /// Records that are still written after a match.
    private(set) var remaining = 0
    private(set) var hasMatched = false
    /// Records so far, and the last of them.
    private(set) var records: UInt64 = 0
    private(set) var last: RecordPlace?

    /// The newest records that are not written.
    private var waiting = RecordRing()
    /// Older ones that are written with the first match.
    private var login: [LoginLine] = []
    private var loginBytes = 0
    /// The records left out before ``waiting``.
    private var omission: Omission?
    private var isReady = false
    private var bytesBeforeReady = 0

    init(session: UInt64, _ bounds: CaptureTrigger.Bounds) {
        self.session = session
        self.bounds = bounds
    }

    /// Bytes of the lines that wait.
    var byteCount: Int { waiting.byteCount + loginBytes }

    /// Takes the next record. With `after`, it is a match and so many records are written after it; without, up to `before`
    /// records wait for one.
    mutating func take(
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
        tellOmission(output)
        output.line(line)
    }

    /// Ends the session: of the waiting records, the session records are written.
    mutating func end(_ output: Output) {
        remaining = 0
        while waiting.count > 0 { leaveOutFirst(output) }
        if hasMatched { tellOmission(output) }
        (login, loginBytes) = ([], 0)
    }

    /// Leaves out the older half of the waiting records.
    mutating func halve(_ output: Output) {
        let half = waiting.byteCount / 2
        while waiting.byteCount > half { leaveOutFirst(output) }
    }

    /// Leaves out the login except for its first record.
    mutating func shortenLogin() {
        guard login.count > 1, let end = login.last?.place else { return }
        let count = login.dropFirst().reduce(0) { $0 + 1 + ($1.omission?.records ?? 0) }
        omission = Omission(records: count + (omission?.records ?? 0), last: omission?.last ?? end)
        login.removeLast(login.count - 1)
        loginBytes = login.first?.line.count ?? 0
    }

    /// Whether a record is written wherever it stands: of the session itself always, of the login as far as there is room.
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
            tell(line.omission, output)
            output.line(line.line.span.bytes)
        }
        (login, loginBytes) = ([], 0)
        guard waiting.count > 0 else { return }
        tellOmission(output)
        while waiting.count > 0 {
            output.line(waiting.firstLine)
            waiting.dropFirst()
        }
    }

    private mutating func tellOmission(_ output: Output) {
        tell(omission, output)
        omission = nil
    }

    private func tell(_ omission: Omission?, _ output: Output) {
        guard let omission else { return }
        output.note(.omitted(session: session, records: omission.records, last: omission.last))
    }

    /// Leaves out the oldest record that waits, unless it is kept.
    private mutating func leaveOutFirst(_ output: Output) {
        guard let entry = waiting.first else { return }
        if entry.isKept, hasMatched {
            tellOmission(output)
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
