internal import Glibc
internal import NIOCore
internal import NIOPosix

enum ProcessLimits {
    /// Prepares the process. Core dumps are disabled, because they would contain secrets that redaction keeps out of
    /// the logs. The limit of file descriptors is raised. A broken pipe, or a file at its size limit, causes an error
    /// of the write instead of ending the process.
    static func prepare() {
        preventCoreDumps()
        holdStandardDescriptors()
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        raiseDescriptors()
    }

    static var descriptors: (soft: UInt64, hard: UInt64) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return (0, 0) }
        return (UInt64(limit.rlim_cur), UInt64(limit.rlim_max))
    }

    /// Number of sessions for which the file descriptors suffice: two sockets each, after a reserve for logs, listeners
    /// and libraries.
    static var sessions: Int { sessions(descriptors: descriptors.soft) }

    /// Returns the number of sessions for which `descriptors` suffice.
    static func sessions(descriptors: UInt64) -> Int {
        descriptors > 64 ? Int(clamping: (descriptors - 64) / 2) : 1
    }

    /// Opens standard descriptors that the parent process has closed. Otherwise the next file or socket would get their
    /// numbers, and receive the program's output. They are opened for the wrong direction, so that using them fails.
    private static func holdStandardDescriptors() {
        for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(descriptor, F_GETFD) < 0 {
            // `open` returns the lowest free number, which is this one.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Disables core dumps. A limit of 0 does not prevent dumps that are piped to a program (core(5)), but a limit of 1
    /// byte prevents both kinds, because it is less than a page. Linux itself sets it for such programs.
    private static func preventCoreDumps() {
        let resource = __rlimit_resource_t(RLIMIT_CORE.rawValue)
        var (least, none) = (rlimit(rlim_cur: 1, rlim_max: 1), rlimit(rlim_cur: 0, rlim_max: 0))
        if setrlimit(resource, &least) != 0 { setrlimit(resource, &none) }
    }

    private static func raiseDescriptors() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }
}

/// The processors that this process may run on, which can be fewer than the machine has (`taskset`, cgroups).
enum Processors {
    /// Gives NIO's shared event loops one thread per processor. Call it before they are first used: more threads
    /// than processors only add context switches.
    static func limitEventLoops() {
        guard let status = try? TextFile.read("/proc/self/status"), let count = allowed(in: status) else { return }
        NIOSingletons.groupLoopCountSuggestion = min(count, System.coreCount)
    }

    /// Returns the number of processors in the line `Cpus_allowed` of a process's status, a hexadecimal mask in groups;
    /// nil if it is missing.
    static func allowed(in status: String) -> Int? {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed:") }) else {
            return nil
        }
        let count = line.dropFirst("Cpus_allowed:".count).reduce(0) { $0 + ($1.hexDigitValue?.nonzeroBitCount ?? 0) }
        return count > 0 ? count : nil
    }
}
