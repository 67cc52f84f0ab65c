internal import NIOCore
internal import TapCore

// What a login has hashed, away from the event loop: its other sessions go on.
extension SessionDriver {
    /// Performs a step of a login on a separate thread, and returns its result to the session. The session may be over by
    /// then.
    func compute(_ step: SlowStep) {
        loop.context.slowSteps.perform(step, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] step in
            guard let self, stage == .relaying else { return }
            handle(.computed(step))
        }
    }
}
