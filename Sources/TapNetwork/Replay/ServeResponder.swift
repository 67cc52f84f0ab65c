internal import NIOCore
internal import TapCore
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

/// Answers the clients of the built-in server from recorded conversations. Used on the server's event loop only.
final class ServeResponder: ServerResponder {
    private final class Client {
        var session: ServedSession
        let jid: JID
        /// The client's connection; nil while it is lost.
        var connection: ConnectionID?
        var timer: Scheduled<Void>?
        var forwarder: ServeForwarder?

        init(_ session: ServedSession, _ jid: JID, _ connection: ConnectionID) {
            self.session = session
            self.jid = jid
            self.connection = connection
        }
    }

    private let plan: ServePlan
    private let loop: any EventLoop
    private let onEvent: (ServeEvent) -> Void
    private let parser = StanzaParser()
    private weak var directory: ServerDirectory?
    private weak var state: ServerState?
    private var clients: [ConnectionID: Client] = [:]
    /// Clients that may resume their sessions, by resumption ID.
    private var resumable: [String: Client] = [:]
    /// Time for which a client without a connection can resume its session.
    private static let resumptionTime = TimeAmount.minutes(5)
    /// Indices of the conversations that have been served.
    private var served: Set<Int> = []

    init(_ plan: ServePlan, on loop: any EventLoop, onEvent: @escaping (ServeEvent) -> Void) {
        self.plan = plan
        self.loop = loop
        self.onEvent = onEvent
    }

    func attach(to directory: ServerDirectory, _ state: ServerState) {
        self.directory = directory
        self.state = state
    }

    private var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    // MARK: Login

    func exchange(_ mechanism: String) -> (any SASLExchange)? {
        guard let authenticator = plan.authenticator else { return PlainServer { _, _ in true } }
        let leg = LoginLeg(offer: LoginOffer(mechanisms: plan.mechanisms))
        return authenticator.serverExchange(mechanism, domain: plan.domain, leg)
    }

    func refused(_ refusal: ServerRefusal) { onEvent(.refused(refusal)) }

    func features(of account: JID) -> [UInt8] {
        let conversation = plan.conversations[choice(for: account)]
        return ServedFeatures.bytes(recorded: conversation.features, parser: parser)
    }

    func bind(_ connection: ConnectionID, to account: JID, resource: String?) throws(StanzaError) -> JID {
        let index = choice(for: account)
        let conversation = plan.conversations[index]
        guard let jid = try? account.with(resource: resource ?? conversation.jid?.resource ?? "xmpptap") else {
            throw .badRequest
        }
        for client in resumable.values where client.connection == nil && client.jid == jid { finish(client) }
        if let (old, _) = clients.first(where: { $0.value.jid == jid }), let directory {
            // A lost connection may look open for a long time (RFC 6120 §7.7.2.2).
            unbind(old, isLost: false)
            directory.command(.terminate(old, .conflict))
        } else if let limit = directory?.settings.resourceLimit,
            clients.values.count(where: { $0.jid.bare == jid.bare }) >= limit
        {
            throw .resourceConstraint
        }
        served.insert(index)
        let resumptionID = directory.flatMap { try? randomName(bytes: 8, $0.cryptography) }
        let session = ServedSession(
            conversation,
            live: jid,
            resumptionID: resumptionID,
            settings: plan.settings,
            rules: plan.rules,
            parser: parser,
            at: now
        )
        let client = Client(session, jid, connection)
        clients[connection] = client
        if let resumptionID { resumable[resumptionID] = client }
        onEvent(.began(jid, session: conversation.number))
        return jid
    }

    /// Returns the index of the conversation for an account. It prefers conversations of this account, and then one
    /// that has not been served yet.
    private func choice(for account: JID) -> Int {
        let recorded = plan.accounts[account.bare] ?? account.bare
        let own = plan.conversations.indices.filter { plan.conversations[$0].account == recorded }
        let all = own.isEmpty ? Array(plan.conversations.indices) : own
        return all.first { !served.contains($0) } ?? all.last ?? 0
    }

    // MARK: After the login

    func opened(_ connection: ConnectionID) {
        if let client = clients[connection] { perform(client) }
    }

    func handle(_ element: Element, from sender: ServerSender) {
        guard let client = clients[sender.connection] else { return }
        client.session.receive(element, at: now)
        perform(client)
    }

    func resume(_ connection: ConnectionID, _ request: Element, of account: JID) -> (jid: JID, answer: [UInt8])? {
        guard let client = request.attribute("previd").flatMap({ resumable[$0] }), client.jid.bare == account.bare,
            let handled = request.attribute("h").flatMap({ UInt32($0) })
        else { return nil }
        if let old = client.connection {
            // The server may not know yet that the earlier connection is lost.
            unbind(old, isLost: true)
            directory?.command(.terminate(old, .conflict))
        }
        guard client.connection == nil,
            let answer = client.session.resume(handled: handled, xmlns: request.namespaceURI, at: now)
        else { return nil }
        client.connection = connection
        clients[connection] = client
        onEvent(.resumed(client.jid))
        return (client.jid, answer)
    }

    func enable(_ request: Element, for connection: ConnectionID) -> [UInt8]? {
        clients[connection]?.session.enable(request)
    }

    func unbind(_ connection: ConnectionID, isLost: Bool) {
        guard let client = clients[connection] else { return }
        let lost = resumable.values.count { $0.connection == nil }
        guard isLost, client.session.isResumable, lost < directory?.settings.connectionLimit ?? 0 else {
            return finish(client)
        }
        clients[connection] = nil
        client.connection = nil
        client.session.suspend()
        client.timer?.cancel()
        client.timer = loop.assumeIsolated().scheduleTask(in: Self.resumptionTime) { [weak self, weak client] in
            if let client { self?.finish(client) }
        }
        onEvent(.lost(client.jid))
    }

    func stop() {
        for client in resumable.values.sorted(by: { $0.jid.description < $1.jid.description }) { finish(client) }
    }

    /// Ends a client's session.
    private func finish(_ client: Client) {
        client.forwarder?.close()
        client.session.end()
        perform(client)
        if let connection = client.connection { clients[connection] = nil }
        resumable = resumable.filter { $0.value !== client }
        client.timer?.cancel()
        onEvent(.ended(client.jid))
    }

    private func perform(_ client: Client) {
        guard let directory else { return }
        while let event = client.session.next() {
            if case .report(let divergence) = event { onEvent(.diverged(client.jid, divergence)) }
            guard let connection = client.connection else { continue }
            switch event {
            case .send(let bytes): directory.send(bytes, to: connection)
            case .ask(let iq): ask(iq, for: client)
            case .report: break
            case .close:
                directory.send(Array("</stream:stream>".utf8), to: connection)
                directory.command(.close(connection))
            case .overflow: directory.command(.terminate(connection, .policyViolation))
            }
        }
        guard client.connection != nil else { return }
        client.timer?.cancel()
        client.timer = client.session.deadline.map { deadline in
            loop.assumeIsolated().scheduleTask(in: .nanoseconds(max(0, deadline - now))) { [weak self, weak client] in
                if let client { self?.tick(client) }
            }
        }
    }

    // MARK: Requests without a recorded answer

    private func ask(_ iq: Element, for client: Client) {
        guard let forwarder = forwarder(of: client) else { return refuse(iq, .serviceUnavailable, client) }
        do {
            try forwarder.forward(iq)
            client.session.await(iq)
        } catch {
            onEvent(.notForwarded(client.jid, error.text ?? error.condition))
            refuse(iq, error, client)
        }
    }

    private func refuse(_ iq: Element, _ error: StanzaError, _ client: Client) {
        guard let answer = error.answer(to: iq, from: client.jid) else { return }
        client.session.answer(iq, with: answer, at: now)
    }

    /// Returns the forwarder of a client's requests; nil if its requests are not forwarded.
    private func forwarder(of client: Client) -> ServeForwarder? {
        guard let forwarding = plan.forwarding, let password = forwarding.passwords[client.jid.bare] else { return nil }
        if let forwarder = client.forwarder, !forwarder.isLost { return forwarder }
        let account = LiveAccount(jid: client.jid.bare, password: password, resource: nil, resumption: nil)
        let forwarder = ServeForwarder(account, at: forwarding.server, parser: parser, on: loop) {
            [weak self, weak client] event in
            guard let self, let client else { return }
            switch event {
            case .answered(let iq, let answer):
                let to = client.jid.description
                let bytes = XMLWriter.bytes {
                    $0.element(answer, inheriting: Namespace.client.uri.description, setting: ["to": to])
                }
                client.session.answer(iq, with: bytes, at: now)
            case .unanswered(let iq):
                refuse(iq, .remoteServerTimeout.saying("the server that answers requests did not answer"), client)
            case .ended(let reason):
                onEvent(.notForwarded(client.jid, "the connection to \(forwarding.server.address) ended: \(reason)"))
            }
            perform(client)
            state?.performPending()
        }
        client.forwarder = forwarder
        return forwarder
    }

    private func tick(_ client: Client) {
        client.session.tick(at: now)
        perform(client)
        state?.performPending()
    }
}

/// The stream features for a client after its login.
enum ServedFeatures {
    /// Returns the recorded features without those that only concern the login, and with those that every client needs.
    static func bytes(recorded: [UInt8]?, parser: StanzaParser) -> [UInt8] {
        let features = recorded.flatMap { try? parser.parse($0.span, root: StanzaForm.clientDeclarations) }
            // Ignore features recorded before a SASL2 login: they do not include those that follow a SASL login.
            .flatMap { $0.child("bind", .bind) == nil ? nil : $0 }
        let kept = (features?.children ?? []).filter { !ofLogin.contains($0.namespace) && !$0.matches("bind", .bind) }
        return XMLWriter.bytes {
            $0.element("stream:features") {
                $0.element("bind", .bind)
                for feature in kept { $0.element(feature, inheriting: Namespace.client.uri.description) }
                guard features == nil else { return }
                $0.element("session", .session) { $0.element("optional") }
                $0.element("sm", .streamManagement)
            }
        }
    }

    private static let ofLogin: Set<Namespace> = [
        .tls, .sasl, .sasl2, .sasl2Legacy, .saslChannelBinding, .compressionFeature, .registerFeature, .iqAuthFeature,
    ]
}
