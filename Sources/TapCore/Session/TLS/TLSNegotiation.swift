package import TapDiagnosis
package import TapRecord

/// TLS negotiation on both legs of a session whose TLS xmpptap terminates: the server's leg first, then a certificate
/// for the client, then the client's leg, at most at the server's version. A leg without TLS is skipped.
///
/// Each input yields at most one output, to be performed before the next input; an output that ends the negotiation is
/// the last one. Inputs that do not fit the state are ignored, so a late result is harmless.
package struct TLSNegotiation: Sendable {
    enum Input: Sendable {
        /// TLS may begin after the consent that the session holds, which may be the server's or its own.
        ///
        /// `domain` is the `to` of the client's stream. `directProtocol` is the ALPN name for a server that begins with
        /// TLS (XEP-0368); nil if TLS was requested by STARTTLS.
        case consented(domain: String?, directProtocol: String?)
        case received(Leg, [UInt8])
        /// The handshake on a leg succeeded.
        case agreed(Leg, TLSAgreement)
        case failed(Leg, TLSFailure)
        /// The requested handshake cannot be started.
        case notStarted(TLSFailure)
        /// There is a certificate for the client; whether it is the server's own.
        case found(isServersOwn: Bool)
        /// The client cannot be given a certificate.
        case notFound(TLSFailure)
        /// The connection on a leg ended; the failure applies during its handshake.
        case ended(Leg, TLSFailure)
        /// The session ends; nil if no peer is given a reason.
        case stopped(TLSFailure?)
    }

    enum Output: Sendable, Hashable {
        /// The next step for the driver.
        case perform(TLSCommand)
        /// TLS is established on each leg that uses it: the streams begin. Ends the negotiation.
        case release(server: TLSAgreement?, client: TLSAgreement?)
        /// TLS will not begin, and the session ends for another reason. Ends the negotiation.
        case abandon
        /// TLS failed on a leg, and the session fails. Ends the negotiation.
        case fail(Leg, TLSFailure)
    }

    /// The client's request for TLS.
    private struct Request {
        /// The domain that the client named: in its stream, or in its ClientHello.
        let name: String?
        /// Protocols to offer to the server.
        let protocols: [String]
        /// The bytes received from a client that began with TLS; nil if it requested TLS instead.
        var early: [UInt8]?

        var isDirect: Bool { early != nil }
    }

    /// Indirect, because every session allocates space for it and few use it.
    private indirect enum State {
        case awaitingConsent
        case readingHello(ClientHelloReader, early: [UInt8])
        case serverHandshake(Request)
        case findingIdentity(Request, server: TLSAgreement?)
        case clientHandshake(Request, server: TLSAgreement?)
        case over
    }

    private var state: State
    /// Received bytes for the streams after TLS, by the raw value of the direction; beyond `limit` bytes the leg is not
    /// read.
    private var kept: [[UInt8]] = [[], []]
    private let limit: Int
    private let hasClientTLS: Bool
    private let hasServerTLS: Bool
    /// The client receives the server's own certificate.
    private(set) var showsServersOwn = false

    /// - Parameters:
    ///   - isDirect: The client begins with TLS. For a client that may receive the consent to TLS,
    ///     ``Input/consented(domain:directProtocol:)`` begins it.
    ///   - limit: The largest number of bytes that are buffered for each leg's stream after TLS; then it is not read.
    init(isDirect: Bool, hasClientTLS: Bool, hasServerTLS: Bool, limit: Int) {
        state = isDirect ? .readingHello(ClientHelloReader(), early: []) : .awaitingConsent
        self.limit = limit
        self.hasClientTLS = hasClientTLS
        self.hasServerTLS = hasServerTLS
    }

    // MARK: State

    /// Whether it has not begun yet, and waits for a consent.
    var awaitsConsent: Bool { if case .awaitingConsent = state { true } else { false } }

    /// Whether the leg may be read: the client only while the client must act, the server once its TLS has begun.
    func reads(_ leg: Leg) -> Bool {
        guard kept[Int(leg.inbound.rawValue)].count < limit else { return false }
        return switch state {
        case .readingHello: leg == .client
        case .serverHandshake: leg == .server
        case .findingIdentity: leg == .server && hasServerTLS
        case .clientHandshake: true
        case .awaitingConsent, .over: false
        }
    }

    /// The client has begun with TLS, instead of requesting it.
    package var isDirect: Bool {
        if case .readingHello = state { true } else { request?.isDirect == true }
    }

    /// The domain that the client named; nil if there is none.
    package var clientName: String? { request?.name }

    private var request: Request? {
        switch state {
        case .serverHandshake(let request), .findingIdentity(let request, _), .clientHandshake(let request, _): request
        case .awaitingConsent, .readingHello, .over: nil
        }
    }

    /// The bytes of a leg for the stream after TLS, in the order of arrival.
    func kept(_ direction: Direction) -> [UInt8] { kept[Int(direction.rawValue)] }

    /// The failure if a leg has sent bytes other than white space before TLS; nil if not.
    private func injection(_ direction: Direction) -> TLSFailure? {
        guard kept(direction).contains(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) else { return nil }
        return TLSFailure(code: "starttls-injection", "plaintext received where TLS was expected")
    }

    // MARK: Events

    /// Handles an input; returns nil if there is nothing to do.
    mutating func handle(_ input: Input) -> Output? {
        if case .received(let leg, let bytes) = input { return receive(leg, bytes) }
        switch (state, input) {
        case (.over, _): return nil
        case (.awaitingConsent, .consented(let domain, let directProtocol)):
            // A client that requested TLS in its stream, or not at all, offers no protocols.
            return begin(Request(name: domain, protocols: directProtocol.map { [$0] } ?? []))
        case (.serverHandshake(let request), .agreed(.server, let agreed)):
            if let failure = injection(.recv) { return fail(.server, failure) }
            return goOn(request, agreed)
        case (.findingIdentity(let request, let server), .found(let isServersOwn)):
            if let failure = injection(.send) ?? injection(.recv) { return fail(.client, failure) }
            showsServersOwn = isServersOwn
            return startClient(request, server)
        case (.clientHandshake(_, let server), .agreed(.client, let agreed)):
            return end(.release(server: server, client: agreed))

        case (_, .failed(let leg, let failure)): return fail(leg, failure)
        case (.findingIdentity, .notFound(let failure)): return fail(.client, failure)
        case (.serverHandshake, .notStarted(let failure)): return fail(.server, failure)
        case (.clientHandshake(let request, let server), .notStarted(let failure)):
            // The client has not been answered.
            state = .findingIdentity(request, server: server)
            return fail(.client, failure)

        case (.serverHandshake, .ended(.server, let failure)): return fail(.server, failure)
        case (.readingHello, .ended(.client, let failure)), (.clientHandshake, .ended(.client, let failure)):
            return fail(.client, failure)
        // The other peer ends the session without a TLS failure.
        case (_, .ended), (_, .stopped(nil)): return end(.abandon)
        case (.awaitingConsent, .stopped(let failure?)), (.serverHandshake, .stopped(let failure?)):
            return fail(.server, failure)
        case (_, .stopped(let failure?)): return fail(.client, failure)

        // The input is not awaited, or no longer awaited.
        case (_, .consented), (_, .received), (_, .agreed), (_, .found), (_, .notFound), (_, .notStarted): return nil
        }
    }

    private mutating func receive(_ leg: Leg, _ bytes: [UInt8]) -> Output? {
        switch state {
        case .readingHello where leg == .client: return readHello(bytes)
        // Bytes after the ClientHello are passed to the handshake with it.
        case .serverHandshake(var request) where leg == .client && request.isDirect:
            request.early? += bytes
            state = .serverHandshake(request)
        case .findingIdentity(var request, let server) where leg == .client && request.isDirect:
            request.early? += bytes
            state = .findingIdentity(request, server: server)
        case .over: break
        case .awaitingConsent, .readingHello, .serverHandshake, .findingIdentity, .clientHandshake:
            kept[Int(leg.inbound.rawValue)] += bytes
        }
        return nil
    }

    private mutating func readHello(_ bytes: [UInt8]) -> Output? {
        guard case .readingHello(var reader, var early) = state else { return nil }
        // Otherwise each read would copy the growing buffer.
        state = .over
        early += bytes
        switch reader.append(bytes.span) {
        case .needMore:
            state = .readingHello(reader, early: early)
            return nil
        case .hello(let hello):
            return begin(Request(name: hello.serverName, protocols: hello.protocols, early: early))
        case .malformed(let reason): return failHello("malformed ClientHello: \(reason)")
        case .notTLS: return failHello("not TLS, although it begins like a TLS record")
        }
    }

    private mutating func begin(_ request: Request) -> Output {
        guard hasServerTLS else { return goOn(request, nil) }
        state = .serverHandshake(request)
        return .perform(
            .startServer(
                name: request.name,
                // A client that hides the name hides it from the server too.
                sendsName: !request.isDirect || request.name != nil,
                protocols: request.protocols,
                isDirect: request.isDirect || !request.protocols.isEmpty
            )
        )
    }

    /// TLS on the server's leg is finished.
    private mutating func goOn(_ request: Request, _ server: TLSAgreement?) -> Output {
        guard hasClientTLS else { return end(.release(server: server, client: nil)) }
        state = .findingIdentity(request, server: server)
        return .perform(.findIdentity(name: request.name))
    }

    private mutating func startClient(_ request: Request, _ server: TLSAgreement?) -> Output {
        // The ALPN answer: the server's choice, or a choice in its place.
        let protocols = hasServerTLS ? server?.applicationProtocol.map { [$0] } : ["xmpp-client", "xmpp-server"]
        state = .clientHandshake(request, server: server)
        return .perform(
            .startClient(
                maximumVersion: server?.version,
                protocols: request.isDirect ? protocols : nil,
                isDirect: request.isDirect,
                first: request.early ?? []
            )
        )
    }

    private mutating func failHello(_ words: String) -> Output {
        end(.fail(.client, TLSFailure(code: "malformed-client-hello", words, alert: .decodeError)))
    }

    /// Ends with a failure, and with an alert if the client has begun with TLS and was not answered.
    private mutating func fail(_ leg: Leg, _ failure: TLSFailure) -> Output {
        let isUnanswered =
            switch state {
            case .readingHello: true
            case .serverHandshake(let request), .findingIdentity(let request, _): request.isDirect
            case .awaitingConsent, .clientHandshake, .over: false
            }
        var failure = failure
        failure.alert = isUnanswered ? failure.alert ?? .internalError : nil
        return end(.fail(leg, failure))
    }

    private mutating func end(_ output: Output) -> Output {
        state = .over
        return output
    }
}

/// The failure of TLS on a leg, with the known details.
package struct TLSFailure: Sendable, Hashable {
    /// A stable code, for the record.
    package var code: String
    /// The cause, as a sentence without its full stop.
    package var words: String
    /// The remedy; nil if unknown.
    package var remedy: Remedy?
    /// The alert for a client that began with TLS and was not answered; nil for the internal error.
    package var alert: HandshakeAlert?
    /// The name of the alert with which the peer ended it, such as `unknown_ca`; nil if it sent none.
    package var peerAlert: String?
    /// The certificate shown to the peer, for the record; nil if it does not matter.
    package var certificate: Attributes?
    /// The cause of the failed login, if the streams do not show it.
    package var cause: LoginCause?
    /// The side at fault; nil for the usual one.
    package var side: LoginCause.Side?

    /// Creates a failure with its code and text.
    package init(code: String, _ words: String, alert: HandshakeAlert? = nil) {
        self.code = code
        self.words = words
        self.alert = alert
    }
}
