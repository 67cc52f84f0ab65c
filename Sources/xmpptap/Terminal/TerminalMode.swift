internal import Glibc
internal import Synchronization

/// The mode of the terminal while the inspector owns it: no line editing, no echo, the alternate screen.
///
/// There is one terminal, and it must be restored on every way out: when the program exits, when it is suspended, and when
/// it fails. So this state belongs to the process, and ``restore()`` can be called by signal handlers.
enum TerminalMode {
    /// A byte that the handler of a signal sends to the loop.
    enum Notice: UInt8 {
        case resized = 0x57
        case suspended = 0x5A
        case continued = 0x43
        case ended = 0x51
        /// Another thread wants the loop to end, or has news.
        case woken = 0x4E
    }

    /// The alternate screen, a hidden cursor, bracketed paste, no wrapping at the last column.
    private static let begin: StaticString = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?2004h\u{1B}[?7l"
    private static let end: StaticString = "\u{1B}[0m\u{1B}[?7h\u{1B}[?2004l\u{1B}[?25h\u{1B}[?1049l"
    /// How long a terminal that takes nothing is waited for at the end, in milliseconds.
    private static let patience: Int32 = 200
    private static let failures = [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT]

    // The handlers use these after `enter` has made them: a lazy initialisation would take a lock.
    private static let isEntered = Atomic(false)
    private static let wakeEnd = Atomic<Int32>(-1)
    /// The mode before the inspector; written before ``isEntered`` is set for the first time, and not changed later. Handlers of signals
    /// read it: the runtime tracks each access to a variable, which is not safe there. It is not for speed.
    nonisolated(unsafe) private static let saved = UnsafeMutablePointer<termios>.allocate(capacity: 1)
    private static let hasSaved = Atomic(false)
    private static let atExit: Void = {
        // Whatever ends the process by exit(3), such as a second Ctrl-C.
        atexit { TerminalMode.restore() }
    }()

    /// Creates the pipe by which handlers and other threads wake the loop; returns the end to read, -1 on failure.
    static func openPipe() -> Int32 {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return -1 }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        wakeEnd.store(ends[1], ordering: .sequentiallyConsistent)
        return ends[0]
    }

    /// Sends a notice to the loop; async-signal-safe.
    static func send(_ notice: Notice) {
        let descriptor = wakeEnd.load(ordering: .relaxed)
        guard descriptor >= 0 else { return }
        var byte = notice.rawValue
        let error = errno
        // A full pipe wakes the loop, too.
        _ = Glibc.write(descriptor, &byte, 1)
        errno = error
    }

    /// Changes the mode.
    ///
    /// - Returns: The number of the system's error; 0 on success.
    static func enter() -> Int32 {
        if !hasSaved.load(ordering: .relaxed) {
            guard tcgetattr(STDIN_FILENO, saved) == 0 else { return errno }
            hasSaved.store(true, ordering: .sequentiallyConsistent)
        }
        var mode = saved.pointee
        mode.c_iflag &= ~tcflag_t(BRKINT | ICRNL | INLCR | IGNCR | INPCK | ISTRIP | IXON)
        mode.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | IEXTEN | ISIG)
        mode.c_cflag |= tcflag_t(CS8)
        withUnsafeMutableBytes(of: &mode.c_cc) { controls in
            controls[Int(VMIN)] = 1
            controls[Int(VTIME)] = 0
        }
        _ = atExit
        guard tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0 else { return errno }
        isEntered.store(true, ordering: .sequentiallyConsistent)
        write(begin)
        return 0
    }

    /// Restores the mode; does nothing if it is restored. Async-signal-safe.
    static func restore() {
        guard isEntered.exchange(false, ordering: .sequentiallyConsistent) else { return }
        // A program in the background would be stopped; the shell has restored the terminal then.
        let foreground = tcgetpgrp(STDOUT_FILENO)
        guard foreground < 0 || foreground == getpgrp() else { return }
        write(end)
        tcsetattr(STDIN_FILENO, TCSANOW, saved)
    }

    private static func write(_ sequence: StaticString) {
        var request = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&request, 1, patience) == 1, request.revents & Int16(POLLOUT) != 0 else { return }
        _ = Glibc.write(STDOUT_FILENO, sequence.utf8Start, sequence.utf8CodeUnitCount)
    }

    /// Handles the signals that concern a terminal.
    ///
    /// - Parameter endsProgram: Whether to handle those that end the program, too; a proxy handles them itself.
    static func installHandlers(endsProgram: Bool) {
        _ = isEntered.load(ordering: .relaxed)
        install(SIGWINCH) { _ in TerminalMode.send(.resized) }
        install(SIGTSTP) { _ in TerminalMode.send(.suspended) }
        install(SIGCONT) { _ in TerminalMode.send(.continued) }
        if endsProgram {
            for number in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] { install(number) { _ in TerminalMode.send(.ended) } }
        }
        for number in failures {
            install(number, once: true) { number in
                TerminalMode.restore()
                // The action is the default one again: the program fails as it would have.
                raise(number)
            }
        }
    }

    private static func install(
        _ number: Int32,
        once: Bool = false,
        _ handler: @escaping @convention(c) (Int32) -> Void
    ) {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = handler
        action.sa_flags = SA_RESTART | (once ? Int32(bitPattern: UInt32(SA_RESETHAND)) | SA_NODEFER : 0)
        sigemptyset(&action.sa_mask)
        sigaction(number, &action, nil)
    }

    /// Stops the program until it is continued, as Ctrl-Z does; the mode must be restored before.
    ///
    /// - Parameter descriptor: The end of the pipe to read.
    static func suspend(_ descriptor: Int32) {
        var byte: UInt8 = 0
        while read(descriptor, &byte, 1) == 1 {}
        signal(SIGTSTP, SIG_DFL)
        kill(getpid(), SIGTSTP)
        // The signal arrives soon. It has no effect in a group without a shell; then nothing continues the program.
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&request, 1, 1000)
        install(SIGTSTP) { _ in TerminalMode.send(.suspended) }
    }

    /// The size of the terminal in columns and rows.
    static var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }
}
