import Synchronization

extension Task where Success == Void {
    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }

    /// Returns whether the task ends in time.
    ///
    /// Waiting for a task cannot be cancelled: a test that awaits one which never ends would never end, either.
    package func ends(within limit: Duration = .seconds(280)) async throws -> Bool {
        let flag = Flag()
        Task<Void, Never> {
            _ = await self.result
            flag.isSet.store(true, ordering: .releasing)
        }
        let deadline = ContinuousClock.now + limit
        while !flag.isSet.load(ordering: .acquiring) {
            guard ContinuousClock.now < deadline else { return false }
            try await Task<Never, Never>.sleep(for: .milliseconds(1))
        }
        return true
    }
}
