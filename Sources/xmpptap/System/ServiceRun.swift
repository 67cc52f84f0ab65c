internal import Glibc
internal import Logging
internal import ServiceLifecycle
internal import Synchronization
internal import UnixSignals

/// Runs services until a signal ends the program, then finishes.
struct ServiceRun: Sendable {
    /// The last ends first.
    let services: [any Service]
    /// Time limit of the graceful shutdown.
    let grace: Duration
    /// Called for SIGHUP: log files were moved away, or rule files have changed.
    let onHangUp: @Sendable () -> Void
    /// Closes what the service used, within the given time. Returns whether nothing was lost.
    let finish: @Sendable (Duration) async -> Bool

    /// The least time for finishing: enough for a disk, not for a blocked reader.
    private static let least = Duration.milliseconds(250)

    /// When the first signal arrived.
    private final class Asked: Sendable {
        private let instant = Mutex<ContinuousClock.Instant?>(nil)

        /// Notes the time of the first call; returns whether this is it.
        func isFirst() -> Bool {
            instant.withLock { instant in
                guard instant == nil else { return false }
                instant = .now
                return true
            }
        }

        /// The time since then; zero if there was no signal.
        var elapsed: Duration { instant.withLock { $0?.duration(to: .now) ?? .zero } }
    }

    private enum Outcome {
        case ended(isWhole: Bool)
        case interrupted
    }

    /// Runs the services until they end, then `finish`.
    ///
    /// The first SIGINT or SIGTERM shuts them down gracefully; the second ends the process at once.
    ///
    /// - Returns: What `finish` returns.
    /// - Throws: The errors of the services.
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
            // The service ends its sessions at once; whatever is slower than that is not waited for.
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
