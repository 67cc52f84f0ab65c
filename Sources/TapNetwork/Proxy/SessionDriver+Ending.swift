internal import NIOCore
internal import TapCore
internal import TapRecord

// How a session ends: by a stream error, because the proxy stops, or because both connections are closed.
extension SessionDriver {
    /// Ends the session with a stream error.
    func refuse(_ refusal: RelayLoop.Refusal) {
        guard isLive else { return }
        if stage != .relaying { stopConnecting() }
        // What has passed already decides whether an error may follow it.
        perform()
        guard stage == .relaying else { return }
        handle(.abort(refusal.condition, refusal.text))
    }

    /// Time has passed: the session's deadline, or that of connections that do not end.
    func tick(_ now: Run.Instant) {
        if stage == .closing { return lookAtConnections(now) }
        guard isLive, let deadline = session.nextDeadline, now.monotonic >= deadline else { return }
        // Before there is a server the only deadline is the session's end.
        if stage != .relaying { stopConnecting() }
        // What has passed already decides whether an error may follow it.
        perform()
        guard stage == .relaying else { return }
        handle(.tick)
    }

    /// Ends the session because the proxy stops: both connections end after what has been read is written, without an
    /// end of the stream, so that a client with stream management can resume its session.
    func stop() {
        guard isLive else { return }
        if stage != .relaying { stopConnecting() }
        handle(.stop)
    }

    func abandon() {
        stop()
        client.close()
        server.close()
        conclude()
    }

    /// Ends another session, which this one resumes, and then hands its counts to this one.
    func displace(_ other: UInt64) {
        let (sessions, number) = (loop.context.sessions, session.number)
        let driver = NIOLoopBound(self, eventLoop: loop.eventLoop)
        Task {
            // One that has ended in between has left its counts.
            try? await sessions.tell(.displaced(by: number), to: other)
            driver.eventLoop.execute {
                if driver.value.isLive { driver.value.handle(.displaces) }
            }
        }
    }

    func beginClosing(reset: Bool) {
        guard stage == .relaying else { return }
        stage = .closing
        deferred.removeAll()
        for leg in [client, server] { if reset { leg.resetWhenWritten() } else { leg.finish() } }
        if !isPerforming { updateReading() }
        isReset = reset
        nextLook = now.monotonic + Self.second
    }

    private static let second: Int64 = 1_000_000_000

    /// Once a second: gives up connections that do not end.
    private func lookAtConnections(_ now: Run.Instant) {
        guard now.monotonic >= nextLook else { return }
        nextLook = now.monotonic + Self.second
        for leg in [client, server] where leg.isStuck(resets: isReset, isStopping: loop.isStopping) { leg.close() }
    }

    /// The last of it, once both connections are closed.
    func conclude() {
        guard stage != .over, stage != .connecting, stage != .awaitingDomain, !client.isOpen, !server.isOpen else {
            return
        }
        stage = .over
        deferred.removeAll()
        if isAdmitted { loop.context.admission.leave(accepted.remote?.ipAddress) }
        session.handle(.closed, at: now)
        // What it would still have relayed has nobody to go to.
        runner.drain { loop.records.write($0, content: $1) }
        loop.remove(self)
    }
}
