internal import Glibc
internal import Synchronization
internal import TapRecord

/// The line at the bottom of the terminal, rewritten in place below other output.
///
/// It is drawn at the end of all output and removed before more follows. The cursor rests at its beginning: wherever a
/// terminal moves it during a resize, the whole line is after the cursor. Without a terminal, or on a small one,
/// nothing is drawn.
enum BottomLine {
    private struct State {
        /// The text to show; nil shows none.
        var text: String?
        /// The terminal's size when it was drawn; nil while it is not there.
        var drawn: Size?
        /// Lines that are being printed, within which nothing can be drawn.
        var writers = 0
        /// Nothing is to be shown any more.
        var isClosed = false
    }

    private struct Size: Equatable {
        let columns: Int
        let rows: Int
    }

    private static let state = Mutex(State())
    private static let isTerminal = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].map { isatty($0) == 1 }
    private static let paint = Paint(isOn: Surroundings.current.wantsColour)

    /// The terminal, which understands the necessary sequences; nil if neither output is one.
    private static let descriptor: Int32? = {
        guard let kind = Console.environment("TERM"), kind != "dumb" else { return nil }
        return [STDERR_FILENO, STDOUT_FILENO].first { isTerminal[Int($0)] }
    }()

    /// The smallest terminal that has room for it.
    private static let smallest = Size(columns: 24, rows: 5)

    /// Shows a text in the place of the one before, without control characters and cut to the terminal.
    static func show(_ text: String) {
        guard descriptor != nil else { return }
        let text = Console.escaped(text)
        // Whoever prints draws it behind that.
        state.withLockIfAvailable { state in
            guard !state.isClosed, state.text != text || state.drawn != size else { return }
            state.text = text
            draw(&state)
        }
    }

    /// Shows nothing.
    ///
    /// - Parameter isEnd: Nothing is shown later, either.
    static func hide(isEnd: Bool = false) {
        state.withLock { state in
            state.text = nil
            state.isClosed = state.isClosed || isEnd
            remove(&state)
        }
    }

    /// Makes room for lines that are printed to a descriptor; ``end(_:)`` follows.
    static func begin(_ descriptor: Int32) {
        guard isOnTerminal(descriptor) else { return }
        state.withLock { state in
            state.writers += 1
            remove(&state)
        }
    }

    /// The lines are printed.
    static func end(_ descriptor: Int32) {
        guard isOnTerminal(descriptor) else { return }
        state.withLock { state in
            state.writers -= 1
            draw(&state)
        }
    }

    private static func isOnTerminal(_ descriptor: Int32) -> Bool {
        self.descriptor != nil && isTerminal.indices.contains(Int(descriptor)) && isTerminal[Int(descriptor)]
    }

    private static var size: Size? {
        guard let descriptor else { return nil }
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, Int(size.ws_col) >= smallest.columns,
            Int(size.ws_row) >= smallest.rows
        else { return nil }
        return Size(columns: Int(size.ws_col), rows: Int(size.ws_row))
    }

    private static func draw(_ state: inout State) {
        guard state.writers == 0, let text = state.text else { return }
        guard let size else { return remove(&state) }
        let line = paint(Columns.cut(text, to: size.columns - 1), .dim)
        // Without wrapping (DECAWM): the terminal may have become narrower since it was asked.
        let shown = "\u{1B}[?7l\(Console.hasUTF8 ? line : Columns.ascii(line))\r\u{1B}[?7h"
        let drawing = (state.drawn == nil ? "" : removal) + shown
        if write(drawing, patience: 0) { state.drawn = size }
    }

    private static func remove(_ state: inout State) {
        guard state.drawn != nil else { return }
        state.drawn = nil
        // Later output, which waits for a stopped terminal, must not be written into the line.
        _ = write(removal, patience: 1000)
    }

    /// Clears the line, then what is behind it; tmux saves what is cleared from the top of the screen on for who scrolls back.
    private static let removal = "\r\u{1B}[K\u{1B}[J"

    /// Writes to a terminal, unless it takes nothing within so many milliseconds, or another program is in its foreground.
    private static func write(_ text: String, patience: Int32) -> Bool {
        guard let descriptor else { return false }
        let foreground = tcgetpgrp(descriptor)
        guard foreground < 0 || foreground == getpgrp() else { return false }
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&request, 1, patience) == 1, request.revents & Int16(POLLERR | POLLHUP | POLLNVAL) == 0 else {
            return false
        }
        let bytes = Array(text.utf8)
        return bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) } > 0
    }
}
