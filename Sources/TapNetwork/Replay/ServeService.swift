package import NIOCore
package import TapCore
package import TapReplay
package import TapSecurity
package import XMPPCore

/// The recorded conversations to serve, and the settings for serving them.
package struct ServePlan: Sendable {
    /// The conversations: at least one, all with JIDs of the same domain in the recording.
    let conversations: [RecordedConversation]
    /// The recorded account for each live account, both as bare JIDs.
    let accounts: [JID: JID]
    /// Verifies logins; nil accepts every login.
    let authenticator: (any Authenticator)?
    /// The domain of the live accounts.
    package let domain: String
    /// Settings for sending items.
    package var settings = ServedSession.Settings()
    /// The permitted differences.
    package var rules = NoiseRules()
    /// Forwarding of requests that the recording does not answer; if nil, the answer is `<service-unavailable/>`.
    package var forwarding: ServeForwarding?

    /// - Parameters:
    ///   - conversations: The conversations; those that cannot be played are left out.
    ///   - accounts: Pairs of recorded and live accounts, if passwords are known.
    ///   - authenticator: Verifies the passwords of the accounts; if nil, every login with PLAIN is accepted.
    /// - Throws: ``ServePlanError`` if nothing can be served.
    package init(
        _ conversations: [RecordedConversation],
        accounts: [(recorded: JID, live: JID)] = [],
        authenticator: (any Authenticator)? = nil
    ) throws(ServePlanError) {
        let recorded = Set(conversations.compactMap(\.account))
        let conversations = RecordedConversation.joined(conversations)
        let known = accounts.filter { recorded.contains($0.recorded) }
        guard authenticator == nil || !known.isEmpty else { throw .unknownAccounts }
        guard let domain = known.first?.live.domain ?? conversations.first(where: { $0.jid != nil })?.domain else {
            throw .withoutLogin
        }
        let recordedDomain = known.first?.recorded.domain ?? domain
        self.conversations = conversations.filter { $0.domain == recordedDomain }
        self.accounts = Dictionary(known.map { ($0.live, $0.recorded) }) { first, _ in first }
        self.authenticator = authenticator
        self.domain = domain
    }

    /// Whether recorded clients could log in with SASL2 (XEP-0388); if so, it is offered.
    package var offersSASL2: Bool {
        let parser = StanzaParser()
        return conversations.contains { conversation in
            let features = conversation.features.flatMap {
                try? parser.parse($0.span, root: StanzaForm.clientDeclarations)
            }
            return features?.child("authentication", .sasl2) != nil
        }
    }

    /// The SASL mechanisms offered.
    package var mechanisms: [String] { authenticator?.mechanisms ?? ["PLAIN"] }
}

/// The reason why nothing can be served.
package enum ServePlanError: Error, Sendable, Hashable {
    /// No session has a completed login.
    case withoutLogin
    /// None of the given accounts appears in the recording.
    case unknownAccounts
}

/// An event while conversations are served.
package enum ServeEvent: Sendable {
    /// A client logged in, and gets the recorded session with this number.
    case began(JID, session: UInt64)
    /// A client's behaviour differs from the recording.
    case diverged(JID, Divergence)
    /// A request was not forwarded, or no more can be; with the reason, as a clause.
    case notForwarded(JID, String)
    /// A client was refused, or its stream ended with an error.
    case refused(ServerRefusal)
    /// A client lost its connection, and can resume its session (XEP-0198).
    case lost(JID)
    /// A client resumed its session.
    case resumed(JID)
    /// A client's session ended.
    case ended(JID)
}

/// Serves recorded conversations to clients, with the streams, TLS and logins of the built-in server.
package final class ServeService: Sendable {
    /// Where to listen for WebSockets.
    package struct WebPlace: Sendable {
        /// An IP address and a port; port 0 lets the system choose one.
        package var endpoint: Endpoint
        /// The path of WebSockets; nil accepts any.
        package var path: String?
        /// Which requests are accepted.
        package var options: WebOptions

        /// Creates a place.
        package init(_ endpoint: Endpoint, path: String?, _ options: WebOptions) {
            self.endpoint = endpoint
            self.path = path
            self.options = options
        }
    }

    private let server: BuiltInServer
    private let hasStreams: Bool

    private init(_ server: BuiltInServer, hasStreams: Bool) {
        self.server = server
        self.hasStreams = hasStreams
    }

    /// Starts to listen; serves clients until ``stop()``.
    ///
    /// - Parameters:
    ///   - plan: The conversations to serve.
    ///   - endpoint: An IP address and a port; port 0 lets the system choose one. Nil listens for WebSockets only.
    ///   - web: Where to listen for WebSockets.
    ///   - identity: The certificate shown to clients, which then must use TLS. If nil, TLS is not offered. Clients of
    ///     WebSockets on this machine need no TLS.
    ///   - cryptography: Digests and random bytes.
    ///   - group: The event loops; one of them is used.
    ///   - onEvent: Called on that event loop with each event.
    /// - Throws: ``ProxyError`` if listening fails; ``JIDError``; ``TLSContextError``.
    package static func start(
        _ plan: ServePlan,
        at endpoint: Endpoint?,
        web: [WebPlace] = [],
        identity: TLSIdentity?,
        cryptography: any Cryptography,
        group: any EventLoopGroup,
        onEvent: @escaping @Sendable (ServeEvent) -> Void
    ) async throws -> ServeService {
        var settings = ServerSettings(accounts: [], softwareVersion: "")
        settings.domain = plan.domain
        settings.mechanisms = plan.mechanisms
        settings.offersSASL2 = plan.offersSASL2
        settings.allowsRegistration = false
        settings.offersStartTLS = identity != nil
        settings.requiresTLS = identity != nil
        settings.connectionLimit = 1000
        var places = endpoint.map { [BuiltInServer.Place(endpoint: $0)] } ?? []
        for place in web {
            let access = WebAccess(options: place.options, ownHost: plan.domain, path: place.path)
            places.append(BuiltInServer.Place(endpoint: place.endpoint, access: access))
        }
        do {
            return ServeService(
                try await BuiltInServer.start(
                    at: places,
                    settings: settings,
                    identity: identity,
                    cryptography: cryptography,
                    group: group
                ) { ServeResponder(plan, on: $0, onEvent: onEvent) },
                hasStreams: endpoint != nil
            )
        } catch let error as BuiltInServer.ListenError {
            let endpoint = error.place.endpoint
            throw ProxyError(
                code: Listeners.code(error.reason, isLoopback: endpoint.isLoopback),
                address: "\(endpoint)"
            )
        }
    }

    /// The address on which the server listens for streams; nil without one.
    package var address: SocketAddress? { hasStreams ? server.address : nil }

    /// The addresses on which the server listens for WebSockets.
    package var webAddresses: [SocketAddress?] { Array(server.addresses.dropFirst(hasStreams ? 1 : 0)) }

    /// Stops listening and closes all streams.
    package func stop() async throws { try await server.stop() }
}
