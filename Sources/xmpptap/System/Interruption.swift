internal import Glibc
internal import Synchronization
internal import UnixSignals

/// Set by a signal.
private let interruption = Atomic(false)

/// Work that the user ends with Ctrl-C.
enum Interruption {
    /// Runs work until it ends, or is cancelled by SIGINT or SIGTERM. Its own end is waited for.
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

    /// The user has asked for the end, once ``note()`` was called.
    static var hasCome: Bool { interruption.load(ordering: .relaxed) }

    /// From now on records SIGINT and SIGTERM instead of ending the program, for work that blocks.
    static func note() {
        for number in [SIGINT, SIGTERM] { signal(number) { _ in interruption.store(true, ordering: .relaxed) } }
    }

    /// Restores the default action of the signals, after work that handled them.
    static func endsProgram() { for number in [SIGINT, SIGTERM, SIGHUP] { signal(number, SIG_DFL) } }

    /// Ends the program as Ctrl-C ends one that does not take it for itself: a shell's loop ends, too.
    static func interruptsProgram() {
        endsProgram()
        // The threads of Swift's tasks block signals.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(SIGINT)
    }
}
