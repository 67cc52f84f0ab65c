internal import Glibc
internal import Synchronization
internal import TapReplay

/// Says on a terminal, once a second, how far a replay has come.
final class ReplayProgress: Sendable {
    private let last = Mutex(ContinuousClock.now)
    private let isShown = isatty(STDERR_FILENO) == 1

    func note(_ progress: Replayer.Progress) {
        guard isShown else { return }
        let isDue = last.withLock { last in
            guard ContinuousClock.now - last >= .seconds(1) else { return false }
            last = .now
            return true
        }
        guard isDue else { return }
        Console.tell("\(progress.sent + progress.matched) of \(progress.total) stanzas")
    }
}
