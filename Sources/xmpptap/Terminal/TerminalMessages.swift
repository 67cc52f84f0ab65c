internal import Synchronization
internal import TapRecord

/// The newest lines for standard error, which are not written to the terminal while the inspector owns it.
final class TerminalMessages: Sendable {
    /// Maximum number of lines, and of bytes of one.
    private static let maximumCount = 500
    private static let maximumLength = 2048

    private struct State {
        var lines: [String] = []
        var count = 0
    }

    private let state = Mutex(State())

    /// Adds a line, escaped.
    func add(_ line: String) { add(escaped: LineBuffer.escaped(line)) }

    /// Adds a line in the log form of ``Escape``.
    func add(escaped line: String) {
        let line = line.cut(to: Self.maximumLength)
        state.withLock { state in
            state.lines.append(line)
            state.count += 1
            if state.lines.count > Self.maximumCount { state.lines.removeFirst(state.lines.count - Self.maximumCount) }
        }
    }

    /// The lines that are kept.
    var lines: [String] { state.withLock { $0.lines } }

    /// Returns the lines that are kept of those after the first `count`.
    func lines(after count: Int) -> [String] {
        state.withLock { Array($0.lines.suffix(max(0, $0.count - count))) }
    }

    /// The newest line, and the number of all lines so far.
    var newest: (line: String?, count: Int) { state.withLock { ($0.lines.last, $0.count) } }
}
