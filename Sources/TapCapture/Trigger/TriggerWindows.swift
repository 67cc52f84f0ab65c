internal import TapRecord

/// Selects the records around each match of a ``CaptureTrigger``, for each session separately, and keeps their order.
///
/// ```
/// session-began … session-ready │ … │ 200 records, match, 500 records │ … │ session-ended
///     written at the first match  ↑               written             ↑       written
///                                 └── left out; a note says how many ─┘
/// ```
///
/// If a session has a match, its login and its session records are always written, so that the file can be read and
/// explained. Overlapping windows are merged. Uses no threads, clocks or files.
struct TriggerWindows {
    typealias Output = TriggerWindow.Output

    private let trigger: CaptureTrigger
    private let bounds: CaptureTrigger.Bounds
    /// The time at which the capture ends, in nanoseconds since the run began.
    private let end: Int64
    private var sessions: [UInt64: TriggerWindow] = [:]
    /// The number of sessions in which records after a match are still to be written.
    private var within = 0
    /// The number of buffered bytes of all sessions.
    private(set) var waiting = 0
    private(set) var matches = 0
    private var unmatched: (sessions: UInt64, records: UInt64) = (0, 0)
    private var lastUnmatched: RecordPlace?
    /// Whether the capture has ended.
    private(set) var isOver = false

    /// Creates the windows of a capture that began at `start`, in nanoseconds since the run began.
    init(_ trigger: CaptureTrigger, from start: Int64, bounds: CaptureTrigger.Bounds = CaptureTrigger.Bounds()) {
        self.trigger = trigger
        self.bounds = bounds
        let (end, isNever) = start.addingReportingOverflow(trigger.duration?.wholeNanoseconds ?? .max)
        self.end = isNever ? .max : end
    }

    /// Whether the capture has ended, or the maximum number of matches and the records after them are written. The
    /// next record is not written.
    var isComplete: Bool { isOver || isFull && within == 0 }

    private var isFull: Bool { trigger.matches.map { matches >= $0 } ?? false }

    /// Handles the next record and its line.
    ///
    /// - Parameter isMatch: Whether the record meets the condition.
    mutating func process(_ record: borrowing Record, _ line: RawSpan, isMatch: Bool, to output: Output) {
        guard !isOver else { return }
        guard record.monotonic < end, !isComplete else {
            let place = RecordPlace(record)
            close(to: output)
            return output.note(.ended(matches: matches, place))
        }
        let opens = isMatch && !isFull
        if opens { matches += 1 }
        // Removing the window from the dictionary before changing it avoids a copy.
        var window = sessions.removeValue(forKey: record.session) ?? TriggerWindow(session: record.session, bounds)
        let (byteCount, wasWithin) = (window.byteCount, window.remaining > 0)
        window.process(record, line, before: trigger.before, after: opens ? trigger.after : nil, to: output)
        let isEnd = record.code == Record.Code.sessionEnded
        if isEnd { endSession(&window, output) }
        waiting += window.byteCount - byteCount
        within += (window.remaining > 0 ? 1 : 0) - (wasWithin ? 1 : 0)
        if !isEnd { sessions[record.session] = window }
        if waiting > bounds.total { shrink(output) }
    }

    /// Ends the capture: writes the last session records, and notes about omitted records.
    mutating func close(to output: Output) {
        guard !isOver else { return }
        isOver = true
        for number in sessions.keys.sorted() {
            guard var window = sessions.removeValue(forKey: number) else { continue }
            endSession(&window, output)
        }
        waiting = 0
        guard unmatched.records > 0, let lastUnmatched else { return }
        output.note(.unmatched(sessions: unmatched.sessions, records: unmatched.records, last: lastUnmatched))
    }

    private mutating func endSession(_ window: inout TriggerWindow, _ output: Output) {
        window.end(output)
        guard !window.hasMatched, let last = window.last else { return }
        unmatched.sessions += window.session > 0 ? 1 : 0
        unmatched.records += window.records
        if lastUnmatched.map({ $0.sequence < last.sequence }) ?? true { lastUnmatched = last }
    }

    /// Discards the older half of the waiting records of every session. If the logins are still too large, also
    /// discards all records of each login except the first.
    private mutating func shrink(_ output: Output) {
        change { $0.halve(output) }
        if waiting > bounds.total / 4 * 3 { change { $0.shortenLogin() } }
    }

    private mutating func change(_ body: (inout TriggerWindow) -> Void) {
        waiting = 0
        for number in Array(sessions.keys) {
            guard var window = sessions.removeValue(forKey: number) else { continue }
            body(&window)
            waiting += window.byteCount
            sessions[number] = window
        }
    }
}
