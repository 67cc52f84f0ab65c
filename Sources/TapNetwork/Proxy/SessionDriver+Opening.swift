internal import NIOCore
internal import TapCore
internal import TapRecord
internal import XMPPCore

// Handling of clients whose first bytes select the server.
extension SessionDriver {
    /// Reader of the client's first bytes. It is a class, so that sessions that do not need it use no memory for it.
    final class Opening {
        var reader: OpeningReader

        init(_ limits: StreamLimits) { reader = OpeningReader(limits: limits) }
    }

    /// Reads the client's first bytes until it has named its domain.
    func open(_ buffer: ByteBuffer) {
        guard case .domains(let dialer) = route else { return }
        postpone(.received(.client, buffer))
        guard let result = opening?.reader.append(buffer.readableBytesUInt8Span) else { return }
        let (name, isTLS): (String?, Bool)
        switch result {
        case .needMore: return
        case .header(let to): (name, isTLS) = (to, false)
        case .hello(let serverName): (name, isTLS) = (serverName, true)
        case .neither(let condition, let reason):
            return refuseClient(condition, "The client did not name a domain: \(reason).")
        }
        guard let domain = dialer.domain(named: name) else {
            let reason =
                name.map { "This proxy does not serve \($0)." } ?? "No domain named, and this proxy serves several."
            return refuseClient(.hostUnknown, reason)
        }
        opening = nil
        stage = .connecting
        updateReading()
        session.handle(.chose(domain: domain.name), at: now)
        // Without interception, the server must start the same way as the client: with direct TLS or without.
        let wish = interception == nil ? .mirroring(isTLS: isTLS) : loop.context.options.requirement(for: isTLS)
        search = ServiceDiscovery(dialer, domain: domain, wish, on: loop.eventLoop) { [self] loginStep in
            handle(.attempted(loginStep))
        } done: { [self] result in
            let beginsWithTLS = search?.beginsWithTLS == true
            search = nil
            switch result {
            case .success(let channel): connected(channel, beginsWithTLS: beginsWithTLS)
            case .failure(let failure): failed(failure.message, failure.fault)
            }
        }
        search?.start()
    }

    /// Closes the session of a client that names no domain, or one that is not served. No server is contacted.
    func refuseClient(_ condition: StreamErrorCondition, _ text: String) {
        guard stage == .awaitingDomain else { return }
        opening = nil
        stage = .relaying
        // Join the client's data, so that the session's record shows the whole ClientHello.
        deferred.join(.client)
        handle(.abort(condition, text, code: condition == .hostUnknown ? "host-unknown" : "aborted"))
    }

    /// Stops connecting, so that the session can end before a server is connected.
    func stopConnecting() {
        search?.cancel()
        search = nil
        opening = nil
        stage = .relaying
    }
}

extension SessionOptions {
    /// Returns which servers are accepted for a client that uses direct TLS, or does not.
    fileprivate func requirement(for isTLS: Bool) -> ServiceDiscovery.Requirement {
        switch (clientTLS, serverTLS) {
        case (_, .direct): .chosen(isTLS: true)
        case (_, .off): .chosen(isTLS: false)
        case (.off, .auto), (.off, .required): .any
        case (_, .auto), (_, .required): .mirroring(isTLS: isTLS)
        }
    }
}
