internal import Glibc

/// Runs another program on the terminal of this one.
enum ForegroundProgram {
    /// Runs a program of the search path in the foreground, and waits for its end. SIGTTOU must be blocked on this thread.
    ///
    /// It runs in a separate process group, so that Ctrl-C reaches only that program.
    ///
    /// - Returns: Its exit code, or 128 and the number of the signal that ended it; nil if it cannot be started.
    static func run(_ program: String, _ words: [String]) -> Int32? {
        let started = ChildProgram.start(program, [program] + words) { attributes, _ in
            // Signal actions and the signal mask are inherited otherwise.
            var signals = sigset_t()
            sigfillset(&signals)
            for number in [SIGKILL, SIGSTOP] { sigdelset(&signals, number) }
            posix_spawnattr_setsigdefault(&attributes, &signals)
            var none = sigset_t()
            sigemptyset(&none)
            posix_spawnattr_setsigmask(&attributes, &none)
            posix_spawnattr_setflags(
                &attributes,
                Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP)
            )
            posix_spawnattr_setpgroup(&attributes, 0)
        }
        guard let child = started else { return nil }
        defer { tcsetpgrp(STDIN_FILENO, getpgrp()) }
        while true {
            tcsetpgrp(STDIN_FILENO, child)
            var status: Int32 = 0
            guard waitpid(child, &status, WUNTRACED) >= 0 else {
                guard errno == EINTR else { return nil }
                continue
            }
            let signal = status & 0x7F
            // The program read the terminal before it was in the foreground, or the user pressed Ctrl-Z.
            guard signal != 0x7F else {
                tcsetpgrp(STDIN_FILENO, child)
                kill(-child, SIGCONT)
                continue
            }
            return signal == 0 ? status >> 8 & 0xFF : 128 + signal
        }
    }
}
