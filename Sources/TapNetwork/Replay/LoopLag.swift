internal import NIOCore

/// How late an event loop runs its tasks: time in which this program could not read what had come, and for which no peer is to be
/// blamed. All on the event loop.
final class LoopLag {
    private static let interval = TimeAmount.milliseconds(50)
    /// Tasks are never on time to the millisecond.
    private static let tolerance = TimeAmount.milliseconds(5)

    private let loop: any EventLoop
    private let noticed: (Int64) -> Void
    private var timer: Scheduled<Void>?

    /// - Parameter noticed: Called with the nanoseconds up to now for which the loop was late.
    init(on loop: any EventLoop, _ noticed: @escaping (Int64) -> Void) {
        self.loop = loop
        self.noticed = noticed
        look(at: .now() + Self.interval)
    }

    private func look(at due: NIODeadline) {
        timer = loop.assumeIsolated().scheduleTask(deadline: due) { [weak self] in
            guard let self else { return }
            let now = NIODeadline.now()
            if now - due > Self.tolerance { noticed((now - due).nanoseconds) }
            look(at: now + Self.interval)
        }
    }

    func stop() { timer?.cancel() }
}
