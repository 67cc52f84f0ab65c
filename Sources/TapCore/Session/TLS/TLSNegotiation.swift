public import TapDiagnosis
public import TapRecord

/// TLS negotiation on both legs of a session whose TLS is terminated here: the server's leg first, then a certificate for the
/// client, then the client's leg, at most at the server's version. A leg that stays in clear is left out.
///
/// Deterministic, without sockets and cryptography. Each input yields at most one output, to be performed before the next
/// input; an output that ends the negotiation is the last one. Inputs that do not fit the state are ignored, so a late
/// result does no harm.
///
/// `Identity` is the certificate with its key; it is only passed on.
public struct TLSNegotiation<Identity: Sendable>: Sendable {
    /// What a handshake agreed on.
    public struct Agreed: Sendable, Hashable {
        /// Version as in the protocol (0x0304 is TLS 1.3); nil for an unknown one.
        public var version: UInt16?
        /// Protocol chosen by ALPN (RFC 7301); nil where there is none.
        public var applicationProtocol: String?

        /// The result of a handshake.
        public init(version: UInt16?, applicationProtocol: String? = nil) {
            self.version = version
            self.applicationProtocol = applicationProtocol
        }
    }

    /// What happened.
    public enum Input: Sendable {
        /// TLS may begin behind the consent that the session holds, which may be the server's or its own.
        ///
        /// `domain` is the `to` of the client's stream. `directProtocol` is the ALPN name for a server that begins with TLS
        /// (XEP-0368); nil where the server was asked by STARTTLS.
        case consented(domain: String?, directProtocol: String?)
        /// The client sent more of its ClientHello; only while ``TLSNegotiation/readsHello``.
        case received([UInt8])
        /// The handshake on a leg succeeded.
        case agreed(Leg, Agreed)
        /// The handshake on a leg failed.
        case failed(Leg, TLSFailure)
        /// The last output asked for a handshake that cannot be started.
        case notStarted(TLSFailure)
        /// There is a certificate for the client. `plaintextWaits`: bytes other than white space came on a leg in clear since
        /// the negotiation began.
        case found(Identity, plaintextWaits: Bool)
        /// There is no certificate for the client.
        case notFound(TLSFailure)
        /// The connection on a leg ended; the failure that this is in the middle of its handshake.
        case ended(Leg, TLSFailure)
        /// The session ends; nil if no peer gets a reason.
        case stopped(TLSFailure?)
    }

    /// What is to be done.
    public enum Output: Sendable {
        /// Start the handshake with the server, whose certificate must stand for `name` and which is offered `protocols` by
        /// ALPN. `sendsName`: by SNI. `isDirect`: the leg begins with TLS, without STARTTLS.
        case startServer(name: String, sendsName: Bool, protocols: [String], isDirect: Bool)
        /// Find a certificate for `name`. `isNamed`: the client has named it; otherwise it is the upstream's own name.
        case findIdentity(name: String, isNamed: Bool)
        /// Start the handshake with the client.
        case startClient(ClientHandshake)
        /// TLS is up on each leg that has some: the streams begin. Ends the negotiation.
        case release(server: Agreed?, client: Agreed?)
        /// TLS will not begin, and the session ends for another reason. Ends the negotiation.
        case abandon
        /// TLS failed on a leg, and so does the session. Ends the negotiation.
        case fail(Leg, TLSFailure)
    }

    /// A handshake with the client.
    public struct ClientHandshake: Sendable {
        /// What to show to the client.
        public let identity: Identity
        /// The highest version to accept; nil for any.
        public let maximumVersion: UInt16?
        /// Protocols to choose from by ALPN; nil ignores what the client offers.
        public let protocols: [String]?
        /// The ciphertext that the client has sent already; nil where it waits for the consent, which goes first, in clear.
        public let early: [UInt8]?
    }

    /// What the client has asked for.
    private struct Request {
        /// The domain that the client has named: in its stream, or in its ClientHello.
        let name: String?
        /// Protocols to offer to the server.
        let protocols: [String]
        /// What the client has said so far; nil where it has not begun with TLS, but asked for it.
        var early: [UInt8]?

        var isDirect: Bool { early != nil }
    }

    /// Indirect, because every session has room for it and few are in it.
    private indirect enum State {
        case awaitingConsent
        case readingHello(ClientHelloReader, early: [UInt8])
        case serverHandshake(Request)
        case findingIdentity(Request, server: Agreed?)
        case clientHandshake(Request, server: Agreed?, Identity)
        case over
    }

    private var state: State
    private let upstream: String
    private let hasClientTLS: Bool
    private let hasServerTLS: Bool

    private init(_ state: State, _ options: SessionOptions, upstream: String) {
        self.state = state
        self.upstream = upstream
        hasClientTLS = options.clientTLS != .off
        hasServerTLS = options.serverTLS != .off
    }

    /// For a client that may be given the consent to TLS; ``Input/consented(domain:directProtocol:)`` begins it.
    ///
    /// - Parameter upstream: The name of the server where the client names no domain.
    public init(_ options: SessionOptions, upstream: String) {
        self.init(.awaitingConsent, options, upstream: upstream)
    }

    /// For a client that begins with TLS; nil where its first byte, or what is wanted of its leg, says that it does not.
    public init?(_ options: SessionOptions, upstream: String, first: UInt8) {
        guard first == 0x16, options.clientTLS != .off else { return nil }
        self.init(.readingHello(ClientHelloReader(), early: []), options, upstream: upstream)
    }

    // MARK: What is known

    /// Whether bytes from the client belong to its ClientHello. Others wait until the negotiation is over.
    public var readsHello: Bool { if case .readingHello = state { true } else { false } }

    /// Whether the leg may be read: the client only while it is its turn, the server once its TLS has begun.
    public func reads(_ leg: Leg) -> Bool {
        switch state {
        case .readingHello: leg == .client
        case .serverHandshake: leg == .server
        case .findingIdentity: leg == .server && hasServerTLS
        case .clientHandshake: true
        case .awaitingConsent, .over: false
        }
    }

    /// The client has begun with TLS, rather than asked for it.
    public var isDirect: Bool { readsHello || request?.isDirect == true }

    /// The domain that the client has named; nil where it has named none.
    public var clientName: String? { request?.name }

    /// The name that certificates are verified and made for: the client's or else the upstream's.
    public var name: String { clientName ?? upstream }

    /// What the client is shown, once its handshake has begun.
    public var identity: Identity? { if case .clientHandshake(_, _, let identity) = state { identity } else { nil } }

    private var request: Request? {
        switch state {
        case .serverHandshake(let request), .findingIdentity(let request, _), .clientHandshake(let request, _, _):
            request
        case .awaitingConsent, .readingHello, .over: nil
        }
    }

    // MARK: What happens

    /// Takes an input; nil where there is nothing to do.
    public mutating func handle(_ input: Input) -> Output? {
        if case .received(let bytes) = input { return readHello(bytes) }
        switch (state, input) {
        case (.over, _): return nil
        case (.awaitingConsent, .consented(let domain, let directProtocol)):
            // A client that has asked for TLS in its stream, or not at all, names no protocol.
            return begin(Request(name: domain, protocols: directProtocol.map { [$0] } ?? []))
        case (.serverHandshake(let request), .agreed(.server, let agreed)): return goOn(request, agreed)
        case (.findingIdentity(let request, let server), .found(let identity, plaintextWaits: false)):
            return startClient(request, server, identity)
        case (.findingIdentity, .found(_, plaintextWaits: true)):
            let words = "plaintext received where TLS was expected"
            return fail(.client, TLSFailure(code: "starttls-injection", words))
        case (.clientHandshake(_, let server, _), .agreed(.client, let agreed)):
            return end(.release(server: server, client: agreed))

        case (_, .failed(let leg, let failure)): return fail(leg, failure)
        case (.findingIdentity, .notFound(let failure)): return fail(.client, failure)
        case (.serverHandshake, .notStarted(let failure)): return fail(.server, failure)
        case (.clientHandshake(let request, let server, _), .notStarted(let failure)):
            // The client has had no answer after all.
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

        // Nobody waits for it, or not any more.
        case (_, .consented), (_, .received), (_, .agreed), (_, .found), (_, .notFound), (_, .notStarted): return nil
        }
    }

    private mutating func readHello(_ bytes: [UInt8]) -> Output? {
        guard case .readingHello(var reader, var early) = state else { return nil }
        // Else what grows with each read would be copied with each.
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
        return .startServer(
            name: request.name ?? upstream,
            // A client that hides the name hides it from the server too.
            sendsName: !request.isDirect || request.name != nil,
            protocols: request.protocols,
            isDirect: request.isDirect || !request.protocols.isEmpty
        )
    }

    /// The server's leg is done.
    private mutating func goOn(_ request: Request, _ server: Agreed?) -> Output {
        guard hasClientTLS else { return end(.release(server: server, client: nil)) }
        state = .findingIdentity(request, server: server)
        return .findIdentity(name: request.name ?? upstream, isNamed: request.name != nil)
    }

    private mutating func startClient(_ request: Request, _ server: Agreed?, _ identity: Identity) -> Output {
        // What ALPN is answered with: what the server has chosen, or as it would.
        let protocols = hasServerTLS ? server?.applicationProtocol.map { [$0] } : ["xmpp-client", "xmpp-server"]
        state = .clientHandshake(request, server: server, identity)
        return .startClient(
            ClientHandshake(
                identity: identity,
                maximumVersion: server?.version,
                protocols: request.isDirect ? protocols : nil,
                early: request.early
            )
        )
    }

    private mutating func failHello(_ words: String) -> Output {
        end(.fail(.client, TLSFailure(code: "malformed-client-hello", words, alert: .decodeError)))
    }

    /// Ends with a failure, and with an alert where the client has begun with TLS and has had no answer.
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

extension TLSNegotiation.ClientHandshake: Equatable where Identity: Equatable {}
extension TLSNegotiation.Output: Equatable where Identity: Equatable {}

/// Why TLS on a leg failed or could not begin, and what becomes known of it.
public struct TLSFailure: Sendable, Hashable {
    /// A stable code, for the record.
    public var code: String
    /// The cause, as a sentence without its full stop.
    public var words: String
    /// What can be done about it; nil where nothing is known.
    public var remedy: Remedy?
    /// The alert for a client that began with TLS and waits for an answer; nil is the internal error where there is such a
    /// client.
    public var alert: Session.Alert?
    /// The name of the alert by which the peer ended it, `unknown_ca`; nil where it sent none.
    public var peerAlert: String?
    /// What the peer was shown, for the record; nil where that does not matter.
    public var certificate: Attributes?
    /// Why the login fails, where the streams do not show it.
    public var cause: LoginCause?
    /// Where that cause lies; nil is where it usually does.
    public var side: LoginCause.Side?

    /// A failure that needs no more than its code and its words.
    public init(code: String, _ words: String, alert: Session.Alert? = nil) {
        self.code = code
        self.words = words
        self.alert = alert
    }
}
