package import NIOCore
package import TapCore
package import TapReplay
package import TapSecurity
package import XMPPCore

/// Which recorded conversations are served, and how.
package struct ServePlan: Sendable {
    /// At least one, all with a JID of the same domain in the recording.
    let conversations: [RecordedConversation]
    /// The accounts of the recording by the live ones, as bare JIDs.
    let accounts: [JID: JID]
    /// Checks logins; nil lets everybody in.
    let authenticator: (any Authenticator)?
    /// The domain of the live accounts.
    package let domain: String
    /// How items are sent.
    package var settings = ServedSession.Settings()
    /// The permitted differences.
    package var rules = NoiseRules()
    /// Where requests go that the recording has no answer to; nil answers them with service-unavailable.
    package var forwarding: ServeForwarding?

    /// - Parameters:
    ///   - conversations: Those that cannot be played are left out.
    ///   - accounts: Recorded and live accounts, if passwords are known.
    ///   - authenticator: Knows their passwords; nil accepts every login, by PLAIN.
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

    /// Whether recorded clients logged in with SASL2 (XEP-0388), which is offered then.
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

/// Why nothing can be served.
package enum ServePlanError: Error, Sendable, Hashable {
    /// No session has a completed login.
    case withoutLogin
    /// None of the accounts given is one of the recording.
    case unknownAccounts
}

/// An event while conversations are served.
package enum ServeEvent: Sendable {
    /// A client has logged in, and gets a session of the recording.
    case began(JID, session: UInt64)
    /// A client did something else than in the recording.
    case diverged(JID, Divergence)
    /// A request was not forwarded, or no more can be; why, as a clause.
    case notForwarded(JID, String)
    /// A client was refused, or its stream ended with an error.
    case refused(ServerRefusal)
    /// A client lost its connection, and can resume its session (XEP-0198).
    case lost(JID)
    /// It has resumed it.
    case resumed(JID)
    /// A client is gone.
    case ended(JID)
}

/// Serves recorded conversations to clients, with the built-in server's streams, TLS and logins.
package final class ServeService: Sendable {
    private let server: BuiltInServer

    private init(_ server: BuiltInServer) { self.server = server }

    /// Listens, and serves until ``stop()``.
    ///
    /// - Parameters:
    ///   - endpoint: An IP address; port 0 for any that is free.
    ///   - identity: The certificate shown to clients; TLS is required of them. Nil offers none.
    ///   - group: One event loop of it is used.
    ///   - tell: Called on the event loop.
    /// - Throws: ``ProxyError`` if the port cannot be had; ``JIDError``; ``TLSContextError``.
    package static func start(
        _ plan: ServePlan,
        at endpoint: Endpoint,
        identity: TLSIdentity?,
        cryptography: any Cryptography,
        group: any EventLoopGroup,
        tell: @escaping @Sendable (ServeEvent) -> Void
    ) async throws -> ServeService {
        var settings = ServerSettings(accounts: [], softwareVersion: "")
        settings.domain = plan.domain
        settings.mechanisms = plan.mechanisms
        settings.offersSASL2 = plan.offersSASL2
        settings.allowsRegistration = false
        settings.offersStartTLS = identity != nil
        settings.requiresTLS = identity != nil
        settings.connectionLimit = 1000
        do {
            return ServeService(
                try await BuiltInServer.start(
                    host: endpoint.host,
                    port: endpoint.port,
                    settings: settings,
                    identity: identity,
                    cryptography: cryptography,
                    group: group
                ) { ServeResponder(plan, on: $0, tell: tell) }
            )
        } catch let error as IOError {
            throw ProxyError(code: Listeners.code(error, isLoopback: endpoint.isLoopback), address: "\(endpoint)")
        }
    }

    /// The address it listens on.
    package var address: SocketAddress? { server.address }

    /// Stops listening and closes all streams.
    package func stop() async throws { try await server.stop() }
}
