internal import Glibc
internal import Synchronization
internal import UnixSignals

/// Whether a signal has arrived.
private let interruption = Atomic(false)

/// Support for work that the user ends with Ctrl-C.
enum Interruption {
    /// Runs work until it ends, or until SIGINT or SIGTERM cancels it; in both cases, waits for its end.
    static func cancels(_ work: @escaping @Sendable () async throws -> Void) async throws {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask(operation: work)
            tasks.addTask { for await _ in signals { break } }
            try await tasks.next()
            tasks.cancelAll()
            try await tasks.waitForAll()
        }
    }

    /// Whether the user has requested the end, since ``installHandlers()`` was called.
    static var hasCome: Bool { interruption.load(ordering: .relaxed) }

    /// Makes SIGINT and SIGTERM set ``hasCome`` instead of ending the program, for work that blocks.
    static func installHandlers() {
        for number in [SIGINT, SIGTERM] { signal(number) { _ in interruption.store(true, ordering: .relaxed) } }
    }

    /// Restores the default actions of the signals, after work that handled them.
    static func endsProgram() { for number in [SIGINT, SIGTERM, SIGHUP] { signal(number, SIG_DFL) } }

    /// Ends the program by SIGINT, as if it did not handle the signal, so that a loop in a shell ends too.
    static func interruptsProgram() {
        endsProgram()
        // Threads of Swift tasks block signals.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(SIGINT)
    }
}
