internal import NIOCore
internal import TapCore

// Password hashing on a separate thread, so that the event loop can serve other sessions.
extension SessionDriver {
    /// Performs a slow login step on a separate thread, and passes its result to the session, unless it has ended.
    func compute(_ step: SlowStep) {
        loop.context.slowSteps.perform(step, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] step in
            guard let self, stage == .relaying else { return }
            handle(.computed(step))
        }
    }
}
