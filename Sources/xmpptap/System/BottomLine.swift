internal import Glibc
internal import Synchronization
internal import TapRecord

/// A status line at the bottom of the terminal, which is rewritten in place below other output.
///
/// It is drawn after all output, and removed before more output follows. The cursor stays at the beginning of the line,
/// so that the whole line is after the cursor even if a terminal moves the cursor during a resize. Without a terminal,
/// or on a very small one, nothing is drawn.
enum BottomLine {
    private struct State {
        /// The text to show; nil shows none.
        var text: String?
        /// The terminal's size when the line was drawn; nil while it is not on the screen.
        var drawn: Size?
        /// Number of outputs in progress, during which nothing may be drawn.
        var writers = 0
        /// Whether the line is disabled for the rest of the run.
        var isClosed = false
    }

    private struct Size: Equatable {
        let columns: Int
        let rows: Int
    }

    private static let state = Mutex(State())
    private static let isTerminal = [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].map { isatty($0) == 1 }
    private static let paint = Paint(isOn: Surroundings.current.wantsColour)

    /// The terminal, if it supports the necessary escape sequences; nil if neither standard error nor standard output
    /// is a terminal.
    private static let descriptor: Int32? = {
        guard let kind = Console.environment("TERM"), kind != "dumb" else { return nil }
        return [STDERR_FILENO, STDOUT_FILENO].first { isTerminal[Int($0)] }
    }()

    /// The smallest terminal on which the line is drawn.
    private static let smallest = Size(columns: 24, rows: 5)

    /// Shows a text in place of the previous one, without control characters, and cut to the width of the terminal.
    static func show(_ text: String) {
        guard descriptor != nil else { return }
        let text = Console.escaped(text)
        // If another thread is printing, it draws the line after its output.
        state.withLockIfAvailable { state in
            guard !state.isClosed, state.text != text || state.drawn != size else { return }
            state.text = text
            draw(&state)
        }
    }

    /// Removes the line.
    ///
    /// - Parameter isEnd: Whether no line may be shown later either.
    static func hide(isEnd: Bool = false) {
        state.withLock { state in
            state.text = nil
            state.isClosed = state.isClosed || isEnd
            remove(&state)
        }
    }

    /// Removes the line before output to a descriptor; ``end(_:)`` must follow.
    static func begin(_ descriptor: Int32) {
        guard isOnTerminal(descriptor) else { return }
        state.withLock { state in
            state.writers += 1
            remove(&state)
        }
    }

    /// Draws the line again after output to a descriptor.
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
        // Disable wrapping (DECAWM): the terminal may have become narrower in the meantime.
        let shown = "\u{1B}[?7l\(Console.hasUTF8 ? line : Columns.ascii(line))\r\u{1B}[?7h"
        let drawing = (state.drawn == nil ? "" : removal) + shown
        if write(drawing, patience: 0) { state.drawn = size }
    }

    private static func remove(_ state: inout State) {
        guard state.drawn != nil else { return }
        state.drawn = nil
        // Wait for a stopped terminal: later output must not be written into the line.
        _ = write(removal, patience: 1000)
    }

    /// Clears the line, and then everything after it. If the screen were cleared from its top, tmux would save the line
    /// to its scrollback.
    private static let removal = "\r\u{1B}[K\u{1B}[J"

    /// Writes to the terminal, unless it does not accept data within `patience` milliseconds, or another program is in
    /// the foreground.
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
