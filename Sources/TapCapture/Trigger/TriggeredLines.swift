internal import Synchronization
internal import TapRecord
internal import TapRules

/// Passes on the lines of a capture that are near a match. Used from any thread.
final class TriggeredLines: Sendable {
    private let condition: RecordFilter
    private let windows: Mutex<TriggerWindows>
    private let isOver = Atomic<Bool>(false)
    private let isComplete = Atomic<Bool>(false)
    private let onCompletion: @Sendable (Int) -> Void

    /// - Parameters:
    ///   - start: When the capture begins, in nanoseconds of the run.
    ///   - onCompletion: Told once, with the number of matches, when no more is written.
    init(_ trigger: CaptureTrigger, from start: Int64, onCompletion: @escaping @Sendable (Int) -> Void) {
        condition = trigger.condition
        windows = Mutex(TriggerWindows(trigger, from: start))
        self.onCompletion = onCompletion
    }

    /// Whether nothing more is written, so that no line need be formed.
    var takesNoMore: Bool { isOver.load(ordering: .relaxed) }

    /// Takes a record and its line; writes the selected lines to `output`, which is called with the lock held.
    func take(_ record: borrowing Record, content: Span<UInt8>, _ line: RawSpan, to output: TriggerWindow.Output) {
        let isMatch = condition.matches(copy record, content: content)
        let completed: Int? = windows.withLock { windows in
            windows.take(record, line, isMatch: isMatch, to: output)
            if windows.isOver { isOver.store(true, ordering: .relaxed) }
            return windows.isComplete ? windows.matches : nil
        }
        guard let completed, !isComplete.exchange(true, ordering: .relaxed) else { return }
        onCompletion(completed)
    }

    /// Writes what was left out, at the end.
    func close(to output: TriggerWindow.Output) {
        windows.withLock { $0.close(to: output) }
        isOver.store(true, ordering: .relaxed)
    }
}
