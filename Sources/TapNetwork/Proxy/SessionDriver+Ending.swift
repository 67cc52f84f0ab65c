internal import NIOCore
internal import TapCore
internal import TapRecord

// How a session ends: by a stream error, because the proxy stops, or because both connections are closed.
extension SessionDriver {
    /// How long a client may take to open its stream, if its server cannot be reached.
    private static let answerTimeout = TimeAmount.seconds(10)

    /// Ends the session with a stream error.
    func refuse(_ refusal: RelayLoop.Refusal) {
        guard isLive else { return }
        if stage == .negotiatingTLS {
            return negotiate(.stopped(TLSFailure(code: "tls-timeout", refusal.clause)))
        }
        if stage != .relaying { stopConnecting() }
        // What has passed already decides whether an error may follow it.
        perform()
        guard stage == .relaying else { return }
        session.abort(refusal.condition, refusal.text, at: now)
        perform()
        awaitHeader()
    }

    /// Ends the session because the proxy stops: both connections end after what has been read is written, without an
    /// end of the stream, so that a client with stream management can resume its session.
    func stop() {
        guard isLive else { return }
        if stage == .negotiatingTLS { negotiate(.stopped(nil)) }
        if stage != .relaying { stopConnecting() }
        session.stop(at: now)
        perform()
    }

    /// Ends the session at once.
    func abandon() {
        stop()
        client.close()
        server.close()
        conclude()
    }

    func beginClosing(reset: Bool) {
        guard stage == .relaying || stage == .negotiatingTLS else { return }
        stage = .closing
        negotiation = nil
        deferred.removeAll()
        for leg in [client, server] { if reset { leg.resetWhenWritten() } else { leg.finish() } }
        if !isPerforming { updateReading() }
        tick(reset: reset)
    }

    /// Once a second: gives up connections that do not end.
    private func tick(reset: Bool) {
        loop.eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { [weak self] in
            guard let self, stage == .closing else { return }
            for leg in [client, server] where leg.isStuck(resets: reset, isStopping: loop.isStopping) { leg.close() }
            tick(reset: reset)
        }
    }

    /// The last of it, once both connections are closed.
    func conclude() {
        guard stage != .over, stage != .connecting, stage != .opening, !client.isOpen, !server.isOpen else { return }
        stage = .over
        deferred.removeAll()
        if isAdmitted { loop.context.admission.leave(accepted.remote?.ipAddress) }
        session.closed(at: now)
        while let command = session.next() {
            if case .record(let record) = command {
                session.withContent { loop.records.write(record, content: $0) }
            }
        }
        loop.remove(self)
    }

    /// The stream error needs the client's own stream; a client that never opens one is closed.
    func awaitHeader() {
        loop.eventLoop.assumeIsolated().scheduleTask(in: Self.answerTimeout) { [weak self] in
            self?.beginClosing(reset: false)
        }
    }
}
