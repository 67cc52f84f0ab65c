internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapRecord

/// Shows the progress of a command at the bottom of the terminal, if standard error is one.
final class ProgressLine: Sendable {
    /// The earliest time of the next update.
    private let due: Mutex<ContinuousClock.Instant>
    private let began = ContinuousClock.now
    private let isShown = isatty(STDERR_FILENO) == 1

    /// Creates a progress line that appears after a delay.
    init(after delay: Duration = .zero) { due = Mutex(.now + delay) }

    /// Shows a text, unless another one was shown less than 100 ms ago.
    func update(_ text: @autoclosure () -> String?) {
        guard isShown else { return }
        let isDue = due.withLock { due in
            guard due <= .now else { return false }
            due = .now + .milliseconds(100)
            return true
        }
        if isDue, let text = text() { BottomLine.show(text) }
    }

    /// Shows how much of a recording was read, and how fast.
    func update(_ reader: RecordReader) {
        update(reader.progress.map { Self.text(read: $0.read, size: $0.size, time: ContinuousClock.now - began) })
    }

    /// Returns the progress as text, such as `38% of 1.2 GB, 240 MB/s`.
    static func text(read: UInt64, size: UInt64, time: Duration) -> String {
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

    /// Removes the line.
    func clear() {
        if isShown { BottomLine.hide() }
    }
}
