internal import NIOCore

/// Measures how late an event loop runs its tasks. During that time this program could not read received data, so that
/// the delay is not the peer's. Used on the event loop only.
final class LoopLag {
    private static let interval = TimeAmount.milliseconds(50)
    /// Delay that is ignored, because tasks are never exactly on time.
    private static let tolerance = TimeAmount.milliseconds(5)

    private let loop: any EventLoop
    private let noticed: (Int64) -> Void
    private var timer: Scheduled<Void>?

    /// - Parameter noticed: Called with the delay up to now, in nanoseconds.
    init(on loop: any EventLoop, _ noticed: @escaping (Int64) -> Void) {
        self.loop = loop
        self.noticed = noticed
        measure(at: .now() + Self.interval)
    }

    private func measure(at due: NIODeadline) {
        timer = loop.assumeIsolated().scheduleTask(deadline: due) { [weak self] in
            guard let self else { return }
            let now = NIODeadline.now()
            if now - due > Self.tolerance { noticed((now - due).nanoseconds) }
            measure(at: now + Self.interval)
        }
    }

    func stop() { timer?.cancel() }
}
