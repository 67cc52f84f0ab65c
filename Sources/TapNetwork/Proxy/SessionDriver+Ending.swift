internal import NIOCore
internal import TapCore
internal import TapRecord

// How a session ends: by a stream error, because the proxy stops, or because both connections are closed.
extension SessionDriver {
    /// Ends the session with a stream error.
    func refuse(_ refusal: RelayLoop.Refusal) {
        guard isLive else { return }
        if stage != .relaying { stopConnecting() }
        // The forwarded bytes decide whether an error may follow them.
        perform()
        guard stage == .relaying else { return }
        handle(.abort(refusal.condition, refusal.text))
    }

    /// Handles the deadline of the session, or that of connections that do not close.
    func tick(_ now: Run.Instant) {
        if stage == .closing { return lookAtConnections(now) }
        guard isLive, let deadline = session.nextDeadline, now.monotonic >= deadline else { return }
        // Before there is a server the only deadline is the session's end.
        if stage != .relaying { stopConnecting() }
        // The forwarded bytes decide whether an error may follow them.
        perform()
        guard stage == .relaying else { return }
        handle(.tick)
    }

    /// Ends the session because the proxy stops: both connections are closed after the pending writes, without the end
    /// of the stream, so that a client with stream management can resume its session.
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

    /// Ends another session, which this one resumes, and then passes its counts to this one.
    func displace(_ other: UInt64) {
        let (sessions, number) = (loop.context.sessions, session.number)
        let driver = NIOLoopBound(self, eventLoop: loop.eventLoop)
        Task {
            // A session that has ended meanwhile has left its counts.
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

    /// Once a second: closes connections that do not end.
    private func lookAtConnections(_ now: Run.Instant) {
        guard now.monotonic >= nextLook else { return }
        nextLook = now.monotonic + Self.second
        for leg in [client, server] where leg.isStuck(resets: isReset, isStopping: loop.isStopping) { leg.close() }
    }

    /// Finishes the session after both connections are closed.
    func conclude() {
        guard stage != .over, stage != .connecting, stage != .awaitingDomain, !client.isOpen, !server.isOpen else {
            return
        }
        stage = .over
        deferred.removeAll()
        if isAdmitted { loop.context.admission.leave(accepted.remote?.ipAddress) }
        session.handle(.closed, at: now)
        // Both connections are closed: only the remaining records are written.
        runner.drain { loop.records.write($0, content: $1) }
        loop.remove(self)
    }
}
