internal import Glibc
internal import Logging
internal import ServiceLifecycle
internal import Synchronization
internal import UnixSignals

/// Runs services until they end or a signal shuts them down, and then finishes.
struct ServiceRun: Sendable {
    /// The services; they are shut down in reverse order.
    let services: [any Service]
    /// Time limit of the graceful shutdown.
    let grace: Duration
    /// Called for SIGHUP: log files were moved, or rule files have changed.
    let onHangUp: @Sendable () -> Void
    /// Closes the resources of the services within the given time; returns whether all data was written.
    let finish: @Sendable (Duration) async -> Bool

    /// Minimum time for finishing: sufficient for a disk, but not for a blocked reader.
    private static let least = Duration.milliseconds(250)

    /// The time of the first signal.
    private final class Asked: Sendable {
        private let instant = Mutex<ContinuousClock.Instant?>(nil)

        /// Records the time of the first call; returns whether this is the first.
        func isFirst() -> Bool {
            instant.withLock { instant in
                guard instant == nil else { return false }
                instant = .now
                return true
            }
        }

        /// The time since the first signal; zero if there was none.
        var elapsed: Duration { instant.withLock { $0?.duration(to: .now) ?? .zero } }
    }

    private enum Outcome {
        case ended(isWhole: Bool)
        case interrupted
    }

    /// Runs the services until they end, and then `finish`.
    ///
    /// The first SIGINT or SIGTERM shuts them down gracefully; the second ends the process at once.
    ///
    /// - Returns: The result of `finish`.
    /// - Throws: Errors of the services.
    func run() async throws -> Bool {
        let group = ServiceGroup(services: services, logger: DiagnosticHandler.logger())
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        let asked = Asked()
        return try await withThrowingTaskGroup(of: Outcome.self) { tasks in
            tasks.addTask {
                do {
                    try await group.run()
                } catch is CancellationError {
                } catch {
                    _ = await finish(grace)
                    throw error
                }
                let time = Task.isCancelled ? Self.least : max(grace - asked.elapsed, Self.least)
                return .ended(isWhole: await finish(time))
            }
            tasks.addTask {
                for await signal in signals {
                    if signal == .sighup {
                        onHangUp()
                    } else if asked.isFirst() {
                        ServiceManager.stopping()
                        await group.triggerGracefulShutdown()
                    } else {
                        break
                    }
                }
                return .interrupted
            }
            let first = try await tasks.next()
            tasks.cancelAll()
            if case .ended(let isWhole) = first { return isWhole }
            // The services end their sessions at once: wait only briefly for that.
            tasks.addTask {
                try? await Task.sleep(for: Self.least * 2)
                return .interrupted
            }
            if case .ended(let isWhole) = try await tasks.next() { return isWhole }
            BottomLine.hide(isEnd: true)
            Glibc.exit(ExitStatus.success.rawValue)
        }
    }
}
