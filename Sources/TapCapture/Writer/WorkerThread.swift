internal import Glibc

/// A worker thread, on which asynchronous signals are blocked.
package final class WorkerThread: Sendable {
    private let name: String
    private let body: @Sendable () -> Void

    private init(_ name: String, _ body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }

    /// Starts a thread, which ends when `body` returns.
    ///
    /// - Parameter name: The name that `top -H` and debuggers show, of at most 15 bytes.
    /// - Returns: The system's error number if the thread cannot be started; otherwise 0.
    package static func start(named name: String, _ body: @escaping @Sendable () -> Void) -> Int32 {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(WorkerThread(name, body))
        let result = pthread_create(
            &thread,
            nil,
            { context in
                guard let context else { return nil }
                Unmanaged<WorkerThread>.fromOpaque(context).takeRetainedValue().run()
                return nil
            },
            context.toOpaque()
        )
        guard result == 0 else {
            context.release()
            return result
        }
        pthread_detach(thread)
        return 0
    }

    private func run() {
        // With blocked signals, a broken pipe or an exceeded file size limit is an error of write(2), whatever the
        // process does about the signals; and signal handlers do not run on this thread.
        var signals = sigset_t()
        sigfillset(&signals)
        for signal in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT] { sigdelset(&signals, signal) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        setName()
        body()
    }

    /// Sets the name of the current thread. pthread_setname_np(3) cannot be used: it is declared only with
    /// `_GNU_SOURCE`.
    private func setName() {
        let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        _ = Array(name.utf8).withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        close(file)
    }
}
