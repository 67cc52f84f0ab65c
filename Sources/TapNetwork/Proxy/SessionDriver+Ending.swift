internal import NIOCore
internal import TapCore
internal import TapRecord

// The ways in which a session ends: with a stream error, because the proxy stops, or when both connections are closed.
extension SessionDriver {
    /// Closes the session with a stream error.
    func refuse(_ refusal: RelayLoop.Refusal) {
        guard isLive else { return }
        if stage != .relaying { stopConnecting() }
        // Decode the forwarded bytes first: they decide whether a stream error may follow.
        perform()
        guard stage == .relaying else { return }
        handle(.abort(refusal.condition, refusal.text))
    }

    /// Checks the deadlines of the session, and after its end those of its connections.
    func tick(_ now: Run.Instant) {
        if stage == .closing { return closeStuckConnections(now) }
        guard isLive, let deadline = session.nextDeadline, now.monotonic >= deadline else { return }
        // Before the server is connected, the only deadline is one that ends the session.
        if stage != .relaying { stopConnecting() }
        // Decode the forwarded bytes first: they decide whether a stream error may follow.
        perform()
        guard stage == .relaying else { return }
        handle(.tick)
    }

    /// Ends the session because the proxy is stopping. Both connections are closed after pending writes, without
    /// closing the streams, so that a client with stream management can resume its session.
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

    /// Ends the session with this number, which this session resumes. Its stream-management counts are kept for this
    /// one.
    func displace(_ other: UInt64) {
        let (sessions, number) = (loop.context.sessions, session.number)
        let driver = NIOLoopBound(self, eventLoop: loop.eventLoop)
        Task {
            // An error means that the session has ended, and has already left its counts.
            try? await sessions.deliver(.displaced(by: number), to: other)
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

    /// Closes connections that do not end; checks once a second.
    private func closeStuckConnections(_ now: Run.Instant) {
        guard now.monotonic >= nextLook else { return }
        nextLook = now.monotonic + Self.second
        for leg in [client, server] where leg.isStuck(resets: isReset, isStopping: loop.isStopping) { leg.close() }
    }

    /// Completes the session after both connections are closed.
    func conclude() {
        guard stage != .over, stage != .connecting, stage != .awaitingDomain, !client.isOpen, !server.isOpen else {
            return
        }
        stage = .over
        deferred.removeAll()
        if isAdmitted { loop.context.admission.leave(accepted.remote?.ipAddress) }
        session.handle(.closed, at: now)
        // Both connections are closed: only the remaining records have to be written.
        runner.drain { loop.records.write($0, content: $1) }
        loop.remove(self)
    }
}
