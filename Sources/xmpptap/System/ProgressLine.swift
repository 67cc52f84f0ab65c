internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapRecord

/// Shows on a terminal how far a command has come, in one line of standard error that is rewritten in place; nothing elsewhere.
final class ProgressLine: Sendable {
    private struct State {
        /// When the line is to be written next.
        var due: ContinuousClock.Instant
        var isThere = false
    }

    private let state: Mutex<State>
    private let began = ContinuousClock.now
    private let isShown = isatty(STDERR_FILENO) == 1

    /// A line that appears once the command has taken so long.
    init(after delay: Duration = .zero) {
        state = Mutex(State(due: .now + delay))
    }

    /// Shows these words, unless others were shown just before.
    func note(_ words: @autoclosure () -> String?) {
        guard isShown else { return }
        let isDue = state.withLock { state in
            guard state.due <= .now else { return false }
            state.due = .now + .milliseconds(100)
            return true
        }
        guard isDue, let words = words() else { return }
        state.withLock { $0.isThere = true }
        Console.rewrite(words)
    }

    /// Shows how much of a recording was read, and how fast.
    func note(_ reader: RecordReader) {
        note(reader.progress.map { Self.words(read: $0.read, size: $0.size, time: ContinuousClock.now - began) })
    }

    /// `38% of 1.2 GB, 240 MB/s`
    static func words(read: UInt64, size: UInt64, time: Duration) -> String {
        let (seconds, fraction) = time.components
        let elapsed = max(Double(seconds) + Double(fraction) / 1e18, 0.001)
        return LineBuffer.text { line in
            line.append(decimal: size < 100 ? 100 : min(100, read / (size / 100)))
            line.append("% of ")
            line.append(size: size)
            line.append(", ")
            line.append(size: UInt64(min(Double(read) / elapsed, 1e18)))
            line.append("/s")
        }
    }

    /// Removes the line, so that what follows stands in its place.
    func clear() {
        if state.withLock({ $0.isThere }) { Console.rewrite("") }
    }
}
