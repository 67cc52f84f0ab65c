internal import Glibc

/// Shows long texts with the user's pager on a terminal.
enum Pager {
    /// Shows a text with the pager in `PAGER`, or else with less. Prints it if standard output is not a terminal, or
    /// the pager cannot be started.
    static func show(_ text: String) {
        guard let command, run(command, Array("\(text)\n".utf8)) else { return Console.print(text) }
    }

    /// The shell command that starts the pager; nil if the text is printed directly.
    private static var command: String? {
        guard Console.isTerminal, Console.environment("TERM") != "dumb" else { return nil }
        if let pager = Console.environment("PAGER") { return "exec \(pager)" }
        // If less is missing, the shell exits silently, and the text is printed.
        return "command -v less >/dev/null || exit \(notFound); exec less"
    }

    /// The exit codes of a shell if the program was not found, or cannot be executed.
    private static let notFound: Int32 = 127
    private static let notExecutable: Int32 = 126

    /// Runs the pager with the text as its input.
    ///
    /// - Returns: Whether the pager was started; it does not matter if the user quits it early.
    private static func run(_ command: String, _ text: [UInt8]) -> Bool {
        // The options that git uses: quit if the text fits on the screen, keep colours, and leave the text on the
        // screen.
        setenv("LESS", "FRX", 0)
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { return false }
        // The pager must not inherit the write end of the pipe: it would never see the end of the text.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { if ends[1] >= 0 { close(ends[1]) } }
        // Ctrl-C is meant for the pager.
        let (oldInterrupt, oldQuit) = (signal(SIGINT, SIG_IGN), signal(SIGQUIT, SIG_IGN))
        defer {
            signal(SIGINT, oldInterrupt)
            signal(SIGQUIT, oldQuit)
        }
        let pager = start(command, reading: ends[0])
        close(ends[0])
        guard let pager else { return false }
        write(text, to: ends[1])
        close(ends[1])
        ends[1] = -1
        var status: Int32 = 0
        while waitpid(pager, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F != 0 || ![notFound, notExecutable].contains(status >> 8 & 0xFF)
    }

    /// Starts a shell that runs the command; nil on failure.
    private static func start(_ command: String, reading input: Int32) -> pid_t? {
        ChildProgram.start("/bin/sh", ["sh", "-c", command]) { attributes, actions in
            posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
            var signals = sigset_t()
            sigemptyset(&signals)
            for number in [SIGINT, SIGQUIT, SIGPIPE] { sigaddset(&signals, number) }
            posix_spawnattr_setsigdefault(&attributes, &signals)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        }
    }

    private static func write(_ text: [UInt8], to descriptor: Int32) {
        var rest = text[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return }
        }
    }
}
