internal import UnixSignals

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
}
