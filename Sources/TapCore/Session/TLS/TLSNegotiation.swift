package import TapDiagnosis
package import TapRecord

/// The TLS negotiation on both legs of a session whose TLS xmpptap terminates: TLS on the server leg, then a
/// certificate for the client, then TLS on the client leg, at most at the server's version. A leg without TLS is
/// skipped.
///
/// A server that requests a certificate of another server waits in the middle of its handshake, after its own
/// certificate was verified: which certificate it may get is known when TLS on the client leg is established.
///
/// Each input causes at most one output, which the caller must perform before the next input. An output that ends the
/// negotiation is the last one. Inputs that do not fit the state are ignored, so a late result is harmless.
package struct TLSNegotiation: Sendable {
    enum Input: Sendable {
        /// TLS may begin after the consent that the session holds, which is the server's or xmpptap's own.
        ///
        /// `domain` is the `to` of the client's stream. `directProtocol` is the ALPN name for a server that uses direct
        /// TLS (XEP-0368); nil if TLS was requested by STARTTLS.
        case consented(domain: String?, directProtocol: String?)
        case received(Leg, [UInt8])
        /// The handshake on a leg succeeded.
        case agreed(Leg, TLSAgreement)
        case failed(Leg, TLSFailure)
        /// The server requests a certificate, and has agreed to the rest.
        case identityRequested(TLSAgreement)
        /// The requested handshake cannot be started.
        case notStarted(TLSFailure)
        /// A certificate for the client was found.
        case found(isServersOwn: Bool)
        /// No certificate for the client was found.
        case notFound(TLSFailure)
        /// The connection on a leg ended; the failure applies if the leg's handshake is in progress.
        case ended(Leg, TLSFailure)
        /// The session ends, and the peers get this reason; nil if they get none.
        case stopped(TLSFailure?)
    }

    enum Output: Sendable, Hashable {
        /// Perform the next step of the negotiation.
        case perform(TLSCommand)
        /// TLS is established on each leg that uses it, so the streams begin. Ends the negotiation.
        case release(server: TLSAgreement?, client: TLSAgreement?)
        /// TLS will not begin, and the session ends for another reason. Ends the negotiation.
        case abandon
        /// TLS failed on a leg, and the session fails. Ends the negotiation.
        case fail(Leg, TLSFailure)
    }

    /// The client's request for TLS.
    private struct Request {
        /// The domain that the client named, in its stream or its ClientHello.
        let name: String?
        /// The ALPN protocols to offer to the server.
        let protocols: [String]
        /// The bytes received from a client that began with TLS; nil for STARTTLS.
        var early: [UInt8]?

        var isDirect: Bool { early != nil }
    }

    /// The progress of TLS on the server leg.
    private enum ServerTLS {
        /// The leg has no TLS.
        case off
        /// The server waits for a certificate.
        case waiting(TLSAgreement)
        case established(TLSAgreement)

        /// The server's agreement so far; nil without TLS.
        var agreement: TLSAgreement? {
            switch self {
            case .off: nil
            case .waiting(let agreement), .established(let agreement): agreement
            }
        }
    }

    /// Indirect, because every session reserves space for the state, and few sessions use it.
    private indirect enum State {
        case awaitingConsent
        case readingHello(ClientHelloReader, early: [UInt8])
        case serverHandshake(Request)
        case findingIdentity(Request, server: ServerTLS)
        case clientHandshake(Request, server: ServerTLS)
        /// The server gets its certificate. TLS on the client leg is established, or there is none.
        case presenting(client: TLSAgreement?)
        case over
    }

    private var state: State
    /// The received bytes that belong to the streams after TLS, indexed by the raw value of the direction. Beyond
    /// `limit` bytes, the leg is not read.
    private var kept: [[UInt8]] = [[], []]
    private let limit: Int
    private let hasClientTLS: Bool
    private let hasServerTLS: Bool
    /// Whether the client receives the server's own certificate.
    private(set) var showsServersOwn = false

    /// Creates a negotiation.
    ///
    /// - Parameters:
    ///   - isDirect: Whether the client begins with TLS. If not, ``Input/consented(domain:directProtocol:)`` begins the
    ///     negotiation.
    ///   - limit: The largest number of bytes that are buffered for the stream of each leg; beyond it, the leg is not
    ///     read.
    init(isDirect: Bool, hasClientTLS: Bool, hasServerTLS: Bool, limit: Int) {
        state = isDirect ? .readingHello(ClientHelloReader(), early: []) : .awaitingConsent
        self.limit = limit
        self.hasClientTLS = hasClientTLS
        self.hasServerTLS = hasServerTLS
    }

    // MARK: State

    /// Whether the negotiation has not begun yet, and waits for a consent.
    var awaitsConsent: Bool { if case .awaitingConsent = state { true } else { false } }

    /// Returns whether the leg may be read: the client only while the client must act, the server only after its TLS
    /// has begun.
    func reads(_ leg: Leg) -> Bool {
        guard kept[Int(leg.inbound.rawValue)].count < limit else { return false }
        return switch state {
        case .readingHello: leg == .client
        case .serverHandshake: leg == .server
        case .findingIdentity: leg == .server && hasServerTLS
        case .clientHandshake: true
        case .presenting(let client): leg == .server || client != nil
        case .awaitingConsent, .over: false
        }
    }

    /// Whether the client began with TLS, without STARTTLS.
    package var isDirect: Bool {
        if case .readingHello = state { true } else { request?.isDirect == true }
    }

    /// The domain that the client named; nil if it named none.
    package var clientName: String? { request?.name }

    private var request: Request? {
        switch state {
        case .serverHandshake(let request), .findingIdentity(let request, _), .clientHandshake(let request, _): request
        case .awaitingConsent, .readingHello, .presenting, .over: nil
        }
    }

    /// Returns the received bytes of a direction that belong to the stream after TLS.
    func kept(_ direction: Direction) -> [UInt8] { kept[Int(direction.rawValue)] }

    /// Returns the failure if a peer has sent bytes other than white space before TLS; nil otherwise.
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
            // The client offers no ALPN protocols here, because it did not begin with TLS.
            return begin(Request(name: domain, protocols: directProtocol.map { [$0] } ?? []))
        case (.serverHandshake(let request), .agreed(.server, let agreed)):
            if let failure = injection(.recv) { return fail(.server, failure) }
            return goOn(request, .established(agreed))
        case (.serverHandshake(let request), .identityRequested(let agreed)):
            if let failure = injection(.recv) { return fail(.server, failure) }
            return goOn(request, .waiting(agreed))
        case (.findingIdentity(let request, let server), .found(let isServersOwn)):
            if let failure = injection(.send) ?? injection(.recv) { return fail(.client, failure) }
            showsServersOwn = isServersOwn
            return startClient(request, server)
        case (.clientHandshake(_, .waiting), .agreed(.client, let agreed)):
            state = .presenting(client: agreed)
            return .perform(.presentIdentity)
        case (.clientHandshake(_, let server), .agreed(.client, let agreed)):
            return end(.release(server: server.agreement, client: agreed))
        case (.presenting(let client), .agreed(.server, let agreed)):
            return end(.release(server: agreed, client: client))

        case (_, .failed(let leg, let failure)): return fail(leg, failure)
        case (.findingIdentity, .notFound(let failure)): return fail(.client, failure)
        case (.serverHandshake, .notStarted(let failure)): return fail(.server, failure)
        case (.clientHandshake(let request, let server), .notStarted(let failure)):
            // The client has not been answered, so it may still get an alert.
            state = .findingIdentity(request, server: server)
            return fail(.client, failure)

        case (.serverHandshake, .ended(.server, let failure)), (.presenting, .ended(.server, let failure)),
            (.findingIdentity(_, .waiting), .ended(.server, let failure)),
            (.clientHandshake(_, .waiting), .ended(.server, let failure)):
            return fail(.server, failure)
        case (.readingHello, .ended(.client, let failure)), (.clientHandshake, .ended(.client, let failure)):
            return fail(.client, failure)
        // The other peer has ended the session, without a TLS failure.
        case (_, .ended), (_, .stopped(nil)): return end(.abandon)
        case (.awaitingConsent, .stopped(let failure?)), (.serverHandshake, .stopped(let failure?)),
            (.presenting, .stopped(let failure?)):
            return fail(.server, failure)
        case (_, .stopped(let failure?)): return fail(.client, failure)

        // The input does not fit the state.
        case (_, .consented), (_, .received), (_, .agreed), (_, .identityRequested), (_, .found), (_, .notFound),
            (_, .notStarted):
            return nil
        }
    }

    private mutating func receive(_ leg: Leg, _ bytes: [UInt8]) -> Output? {
        switch state {
        case .readingHello where leg == .client: return readHello(bytes)
        // Bytes after the ClientHello are passed to the handshake together with it.
        case .serverHandshake(var request) where leg == .client && request.isDirect:
            request.early? += bytes
            state = .serverHandshake(request)
        case .findingIdentity(var request, let server) where leg == .client && request.isDirect:
            request.early? += bytes
            state = .findingIdentity(request, server: server)
        case .over: break
        case .awaitingConsent, .readingHello, .serverHandshake, .findingIdentity, .clientHandshake, .presenting:
            kept[Int(leg.inbound.rawValue)] += bytes
        }
        return nil
    }

    private mutating func readHello(_ bytes: [UInt8]) -> Output? {
        guard case .readingHello(var reader, var early) = state else { return nil }
        // Without this assignment, each read would copy the growing buffer.
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
        guard hasServerTLS else { return goOn(request, .off) }
        state = .serverHandshake(request)
        return .perform(
            .startServer(
                name: request.name,
                // If the client hides the name, xmpptap does not send it to the server either.
                sendsName: !request.isDirect || request.name != nil,
                protocols: request.protocols,
                isDirect: request.isDirect || !request.protocols.isEmpty
            )
        )
    }

    /// Continues with the client leg after TLS on the server leg is established, or waits for a certificate.
    private mutating func goOn(_ request: Request, _ server: ServerTLS) -> Output {
        guard hasClientTLS else {
            // Without TLS, no client can prove that it may use a certificate.
            if case .waiting = server {
                state = .presenting(client: nil)
                return .perform(.presentIdentity)
            }
            return end(.release(server: server.agreement, client: nil))
        }
        state = .findingIdentity(request, server: server)
        return .perform(.findIdentity(name: request.name))
    }

    private mutating func startClient(_ request: Request, _ server: ServerTLS) -> Output {
        let agreement = server.agreement
        // The protocol to choose for the client is the server's choice. Without TLS on the server leg, xmpptap chooses.
        let protocols = hasServerTLS ? agreement?.applicationProtocol.map { [$0] } : ["xmpp-client", "xmpp-server"]
        state = .clientHandshake(request, server: server)
        return .perform(
            .startClient(
                maximumVersion: agreement?.version,
                protocols: request.isDirect ? protocols : nil,
                isDirect: request.isDirect,
                first: request.early ?? []
            )
        )
    }

    private mutating func failHello(_ explanation: String) -> Output {
        end(.fail(.client, TLSFailure(code: "malformed-client-hello", explanation, alert: .decodeError)))
    }

    /// Ends the negotiation with a failure, and with an alert if the client began with TLS and was not answered.
    private mutating func fail(_ leg: Leg, _ failure: TLSFailure) -> Output {
        let isUnanswered =
            switch state {
            case .readingHello: true
            case .serverHandshake(let request), .findingIdentity(let request, _): request.isDirect
            case .awaitingConsent, .clientHandshake, .presenting, .over: false
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
    /// The stable code for the record.
    package var code: String
    /// The cause, as a sentence without a full stop.
    package var explanation: String
    /// The remedy; nil if unknown.
    package var remedy: Remedy?
    /// The alert for a client that began with TLS and was not answered; nil means `internalError`.
    package var alert: HandshakeAlert?
    /// The name of the alert that the peer sent, such as `unknown_ca`; nil if it sent none.
    package var peerAlert: String?
    /// The certificate that the peer received, for the record; nil if it is irrelevant.
    package var certificate: Attributes?
    /// The cause of the failed login, if the streams do not show it.
    package var cause: LoginCause?
    /// The side at fault; nil for the default side of the cause.
    package var side: LoginCause.Side?

    /// Creates a failure with its code and text.
    package init(code: String, _ explanation: String, alert: HandshakeAlert? = nil) {
        self.code = code
        self.explanation = explanation
        self.alert = alert
    }
}
