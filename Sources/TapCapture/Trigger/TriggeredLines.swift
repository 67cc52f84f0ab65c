internal import Synchronization
internal import TapRecord
internal import TapRules

/// Forwards the lines of a capture that are near a match. Can be used from any thread.
final class TriggeredLines: Sendable {
    private let condition: RecordFilter
    private let windows: Mutex<TriggerWindows>
    private let isOver = Atomic<Bool>(false)
    private let isComplete = Atomic<Bool>(false)
    private let onCompletion: @Sendable (Int) -> Void

    /// Creates the lines of a capture.
    ///
    /// - Parameters:
    ///   - start: The time at which the capture begins, in nanoseconds since the run began.
    ///   - onCompletion: Called once, with the number of matches, when no more records will be written.
    init(_ trigger: CaptureTrigger, from start: Int64, onCompletion: @escaping @Sendable (Int) -> Void) {
        condition = trigger.condition
        windows = Mutex(TriggerWindows(trigger, from: start))
        self.onCompletion = onCompletion
    }

    /// Whether the capture has ended, so that lines need not be formatted any more.
    var takesNoMore: Bool { isOver.load(ordering: .relaxed) }

    /// Handles a record and its line; writes the selected lines to `output`, which is called while the lock is held.
    func process(_ record: borrowing Record, content: Span<UInt8>, _ line: RawSpan, to output: TriggerWindow.Output) {
        let isMatch = condition.matches(copy record, content: content)
        let completed: Int? = windows.withLock { windows in
            windows.process(record, line, isMatch: isMatch, to: output)
            if windows.isOver { isOver.store(true, ordering: .relaxed) }
            return windows.isComplete ? windows.matches : nil
        }
        guard let completed, !isComplete.exchange(true, ordering: .relaxed) else { return }
        onCompletion(completed)
    }

    /// Ends the capture: writes the last session records, and notes about omitted records.
    func close(to output: TriggerWindow.Output) {
        windows.withLock { $0.close(to: output) }
        isOver.store(true, ordering: .relaxed)
    }
}
