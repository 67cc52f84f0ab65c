internal import NIOCore
internal import TapCore

// What a login has hashed, away from the event loop: its other sessions go on.
extension SessionDriver {
    /// Has a step of a login done on a thread for such work, and brings back what came of it. The session may be over by
    /// then.
    func compute(_ step: SlowStep) {
        loop.context.slowSteps.perform(step, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] step in
            guard let self, stage == .relaying else { return }
            session.computed(step, at: now)
            perform()
        }
    }
}
