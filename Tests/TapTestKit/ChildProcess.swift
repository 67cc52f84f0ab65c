import Glibc
import Synchronization

/// A child process whose inputs and outputs are files. It starts with default signal handling, and the first query
/// after its end reaps it.
///
/// Foundation's `Process` passes on the signal mask of the current thread, and threads of Swift's pool block SIGTERM
/// and SIGHUP, so that these signals could not end its children.
final class ChildProcess: Sendable {
    let identifier: pid_t
    private let ended = Mutex<ToolProcess.Ending?>(nil)

    /// Spawns a program in the folder and session of this process, with all signals unblocked and with default actions.
    ///
    /// - Parameter files: Paths of existing files for standard input, output and error.
    init(_ program: String, _ arguments: [String], environment: [String: String], files: (String, String, String))
        throws
    {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, files.0, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, files.1, O_WRONLY | O_APPEND, 0)
        posix_spawn_file_actions_addopen(&actions, 2, files.2, O_WRONLY | O_APPEND, 0)
        // Children inherit NIO's sockets by default: a socket that a test closes would stay open in another test's
        // child. Unused numbers are skipped.
        for descriptor in Int32(3)..<4096 { posix_spawn_file_actions_addclose(&actions, descriptor) }

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        let variables = environment.map { "\($0)=\($1)" }
        var spawned: pid_t = 0
        let outcome = Self.withCStrings([program] + arguments) { arguments in
            Self.withCStrings(variables) { posix_spawn(&spawned, program, &actions, &attributes, arguments, $0) }
        }
        guard outcome == 0 else { throw KitError("cannot start \(program): \(String(cString: strerror(outcome)))") }
        identifier = spawned
    }

    deinit {
        send(SIGKILL)
        while ending() == nil { usleep(1000) }
    }

    /// Returns how the process ended; nil while it runs.
    func ending() -> ToolProcess.Ending? {
        ended.withLock { ended in
            guard ended == nil else { return ended }
            var status: Int32 = 0
            guard waitpid(identifier, &status, WNOHANG) == identifier else { return nil }
            // The macros of wait.h: the low seven bits are the signal, the next byte the code.
            ended = status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .signalled(status & 0x7f)
            return ended
        }
    }

    /// Sends a signal, unless the process has been reaped: another process may then have its id.
    func send(_ signal: Int32) {
        ended.withLock { ended in
            if ended == nil { kill(identifier, signal) }
        }
    }

    private static func withCStrings<Result>(
        _ strings: [String],
        _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let pointers = strings.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers + [nil])
    }
}
