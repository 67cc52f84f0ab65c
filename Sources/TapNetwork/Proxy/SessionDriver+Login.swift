internal import NIOCore
internal import NIOPosix
internal import TapCore

// What a login has hashed, away from the event loop: its other sessions go on.
extension SessionDriver {
    /// Does a step of a login on a thread for such work, and brings back what came of it. The session may be over by then.
    func compute(_ step: SlowStep) {
        NIOThreadPool.singleton.runIfActive(eventLoop: loop.eventLoop) {
            var step = step
            step.perform()
            return step
        }.assumeIsolated().whenComplete { [weak self] result in
            guard let self, stage == .relaying, case .success(let step) = result else { return }
            session.computed(step, at: now)
            perform()
        }
    }
}
