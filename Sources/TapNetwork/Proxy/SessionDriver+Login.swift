internal import NIOCore
internal import TapCore

// Password hashing on a separate thread, so that the event loop can serve other sessions.
extension SessionDriver {
    /// Performs a step of a login on a separate thread, and returns its result to the session. The session may have
    /// ended by then.
    func compute(_ step: SlowStep) {
        loop.context.slowSteps.perform(step, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] step in
            guard let self, stage == .relaying else { return }
            handle(.computed(step))
        }
    }
}
