internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// An XMPP client without I/O: stream headers, features, STARTTLS, SASL or SASL2, resource binding. Requests after
/// resource binding are left to the owner.
///
/// ``receive(_:)`` accepts bytes, and ``next()`` returns the actions until it returns nil. The owner has to act in
/// three cases: TLS (``Action/beginTLS``, then ``secured(_:)``), the login (``Action/offered(_:)``, then
/// ``authenticate(_:password:nonce:)``), and the end (``close()``).
struct ClientSession: ~Copyable {
    /// An action for the owner, or an event.
    enum Action {
        /// Send these bytes.
        case send([UInt8])
        /// Start TLS: the server answered `<proceed/>`.
        case beginTLS
        /// The server sent its features before the login: without TLS, inside TLS, or first the one and then the other.
        case announced(StreamFeatures)
        /// Log in with one of the mechanisms in these features: TLS is negotiated, or not used.
        case offered(StreamFeatures)
        /// The server accepted the login, and authenticated itself if the mechanism supports that.
        case authenticated
        /// A resource is bound; with the features of the last stream.
        case bound(JID, StreamFeatures)
        /// The earlier session is resumed (XEP-0198 §5); `handled` is the number of this client's stanzas that the
        /// server has handled.
        case resumed(handled: UInt32)
        /// The server created the account (XEP-0077), or refused with this condition. The login can follow on the same
        /// stream.
        case registered(refused: String?)
        /// An element that is not part of the login, and its bytes.
        case element(Element, [UInt8])
        /// Both streams are closed.
        case ended
        /// The session failed. If the stream was open, its closing tag has been sent.
        case failed(ClientFault)
    }

    /// How TLS starts.
    enum Security: Sendable, Hashable {
        /// No TLS.
        case clear
        /// STARTTLS; if `isRequired`, the client fails if the server does not offer it.
        case startTLS(isRequired: Bool)
        /// Direct TLS, before the first stream.
        case direct
    }

    private enum State {
        case opening, negotiating, negotiatingTLS, offered, registering
        case authenticating(Login)
        case reopening, binding, resumeAwaited(StreamFeatures), bindAwaited(StreamFeatures)
        /// The resource was bound with SASL2; the features that follow have not arrived yet.
        case boundInline(JID)
        case establishing(JID, StreamFeatures)
        case open, closing, finished
    }

    /// A login in progress.
    private struct Login {
        var exchange: any SASLExchange
        let choice: LoginChoice
        /// Whether the server has proven its identity in a challenge, so that only `<success/>` is missing.
        var isProven = false
    }

    /// The session to resume (XEP-0198 §5).
    struct Resumption: Sendable {
        /// The id that the server assigned when stream management was enabled.
        var id: String
        /// Number of stanzas that the client has received since then, modulo 2^32.
        var handled: UInt32
    }

    let account: JID
    private let resumption: Resumption?
    private let language: String?
    private let cryptography: any Cryptography
    /// The requested resource; nil lets the server assign one.
    private let resource: String?
    private let parser: StanzaParser
    private var security: Security
    private var decoder = StreamDecoder(limits: .authenticated)
    private var state = State.opening
    private var queue: [Action] = []
    /// Properties of the connection that affect the login.
    private(set) var channel = ClientChannel()
    /// The results of checking the signatures in the server's challenge; `.absent` until it arrives.
    private(set) var signatures = (mechanisms: SCRAMClient.Signature.absent, version: SCRAMClient.Signature.absent)

    /// - Parameters:
    ///   - account: The account of the session.
    ///   - resource: The requested resource; the server may assign another.
    ///   - language: The `xml:lang` of the client's streams; nil omits it.
    ///   - resumption: The session to resume; if the server cannot resume it, a resource is bound.
    init(
        account: JID,
        resource: String?,
        language: String? = nil,
        resumption: Resumption? = nil,
        security: Security,
        cryptography: any Cryptography,
        parser: StanzaParser
    ) {
        self.resumption = resumption
        self.language = language
        self.account = account.bare
        self.resource = resource
        self.security = security
        self.cryptography = cryptography
        self.parser = parser
    }

    // MARK: Input

    /// Starts the session after the connection is established; with direct TLS, after the handshake.
    mutating func start(_ channel: ClientChannel = ClientChannel()) {
        self.channel = channel
        sendHeader()
    }

    /// Continues after the TLS handshake that ``Action/beginTLS`` requested.
    mutating func secured(_ channel: ClientChannel) {
        guard case .negotiatingTLS = state else { return }
        self.channel = channel
        // Discard data received before TLS: an attacker may have injected it.
        decoder = StreamDecoder(limits: .authenticated)
        state = .opening
        sendHeader()
    }

    /// Receives data from the server.
    mutating func receive(_ bytes: Span<UInt8>) {
        decoder.append(bytes)
        while !isOver, let event = decoder.next() {
            do throws(ClientFault) {
                try receive(event)
            } catch {
                fail(error)
            }
        }
    }

    /// Handles the end of the connection or of TLS; `reason` is a clause.
    mutating func disconnected(_ reason: String) {
        guard !isOver else { return }
        if case .closing = state { return finish() }
        let fault = fault(.broken, reason)
        state = .finished
        queue.append(.failed(fault))
    }

    /// Number of bytes received so far of the next, incomplete item.
    var pendingCount: Int { decoder.pendingCount }

    /// Handles a timeout: the server's answer did not arrive in time.
    mutating func expired() {
        guard !isOver else { return }
        if case .closing = state { return finish() }
        guard pendingCount > 0 else { return fail(fault(.silent, "no answer")) }
        let bytes = "\(pendingCount) \(pendingCount == 1 ? "byte" : "bytes")"
        fail(fault(.incomplete, "no complete answer in time: \(bytes) of it arrived"))
    }

    /// Closes the stream and waits for the server to close its own.
    mutating func close() {
        guard !isOver else { return }
        if case .closing = state { return }
        state = .closing
        send("</stream:stream>")
    }

    /// Returns the next action; nil if there is none until the next input.
    mutating func next() -> Action? { queue.isEmpty ? nil : queue.removeFirst() }

    // MARK: Streams

    private var isOver: Bool { if case .finished = state { true } else { false } }

    private mutating func finish() {
        state = .finished
        queue.append(.ended)
    }

    private mutating func fail(_ fault: ClientFault) {
        state = .finished
        queue += [.send(Array("</stream:stream>".utf8)), .failed(fault)]
    }

    private mutating func emit(_ action: Action) { queue.append(action) }

    private mutating func send(_ text: String) { queue.append(.send(Array(text.utf8))) }

    private mutating func send(_ content: (inout XMLWriter) -> Void) { queue.append(.send(XMLWriter.bytes(content))) }

    private mutating func sendHeader() {
        var xml = XMLWriter()
        xml.verbatim("<?xml version='1.0'?>".utf8)
        xml.start(
            "stream:stream",
            xmlns: Namespace.client.uri.description,
            [
                "xmlns:stream": Namespace.streams.uri.description, "to": account.domain, "version": "1.0",
                "xml:lang": language,
            ]
        )
        queue.append(.send(xml.take()))
    }

    private func fault(_ code: ClientFault.Code, _ reason: String) -> ClientFault {
        ClientFault(step: step, code: code, reason: reason)
    }

    /// The current step.
    private var step: ClientFault.Step {
        switch state {
        case .opening, .reopening, .negotiating: .stream
        case .negotiatingTLS: .startTLS
        case .offered, .registering: .mechanisms
        case .authenticating: .login
        case .binding, .resumeAwaited, .bindAwaited, .boundInline: .bind
        case .establishing: .session
        case .open, .closing, .finished: .open
        }
    }

    private mutating func receive(_ event: StreamEvent) throws(ClientFault) {
        switch event.kind {
        case .item(.declaration), .item(.whitespace): break
        case .item(.header):
            switch state {
            case .opening: state = .negotiating
            case .reopening: state = .binding
            case .closing: break
            default: throw fault(.broken, "unexpected stream header")
            }
        case .item(.element):
            let element: Element
            do {
                element = try parser.parse(decoder)
            } catch {
                throw fault(.broken, "\(error)")
            }
            var bytes: [UInt8] = []
            bytes.append(decoder.bytes)
            try receive(element, bytes)
        case .item(.end):
            guard case .closing = state else { throw fault(.broken, "the server closed the stream") }
            finish()
        case .fault(let fault): throw self.fault(.broken, "the server sent bad XML: \(fault.explanation)")
        case .fragment: throw fault(.broken, "the server sent an item that is too long")
        case .incomplete: throw fault(.broken, "the server ended within an item")
        }
    }

    private mutating func receive(_ element: Element, _ bytes: [UInt8]) throws(ClientFault) {
        if element.matches("error", .streams) {
            if case .closing = state { return finish() }
            let condition = element.firstChild { $0.namespace == .streamErrors && !$0.isNamed("text") }?.name
            let text = element.childText("text", .streamErrors).map { ": \($0)" } ?? ""
            throw fault(.refused(condition), "stream error \(condition ?? "without a condition")\(text)")
        }
        switch state {
        case .negotiating:
            guard let features = StreamFeatures(element) else { return }
            try negotiate(features)
        case .negotiatingTLS:
            guard element.matches("proceed", .tls) else {
                throw fault(.refused(element.name), "the server answered <failure/> to <starttls/>")
            }
            emit(.beginTLS)
        case .authenticating(let login): try answer(element, login)
        case .binding:
            guard let features = StreamFeatures(element) else { return }
            try resumption == nil ? bind(features) : resume(features)
        case .resumeAwaited(let features): try resumed(element, features)
        case .registering:
            guard element.matches("iq", .client), element.attribute("id") == "register" else { return }
            state = .offered
            let isDone = element.attribute("type") == "result"
            emit(.registered(refused: isDone ? nil : Self.condition(of: element) ?? "no condition"))
        case .boundInline(let jid):
            guard let features = StreamFeatures(element) else { return emit(.element(element, bytes)) }
            establish(jid, features)
        case .bindAwaited(let features):
            guard element.matches("iq", .client), element.attribute("id") == "bind" else { return }
            try bound(element, features)
        case .establishing(let jid, let features):
            guard element.matches("iq", .client), element.attribute("id") == "session" else { return }
            open(jid, features)
        case .open, .closing: emit(.element(element, bytes))
        case .opening, .offered, .reopening, .finished: break
        }
    }

    private mutating func negotiate(_ features: StreamFeatures) throws(ClientFault) {
        emit(.announced(features))
        guard case .startTLS(let isRequired) = security, !channel.isSecure else {
            state = .offered
            return emit(.offered(features))
        }
        if features.startTLS != .absent {
            state = .negotiatingTLS
            return send { $0.element("starttls", .tls) }
        }
        guard !isRequired else { throw fault(.broken, "the server does not offer TLS") }
        state = .offered
        emit(.offered(features))
    }
}

// Login with SASL (RFC 6120 §6) or with SASL2 (XEP-0388) and inline resource binding (XEP-0386).
extension ClientSession {
    /// Starts the login.
    ///
    /// - Parameters:
    ///   - choice: The result of ``LoginChoice/strongest(of:on:isLocal:)`` for the server's features.
    ///   - nonce: Printable ASCII without a comma, never used before.
    mutating func authenticate(_ choice: LoginChoice, password: String, nonce: String) {
        guard case .offered = state else { return }
        let identity = SASLIdentity(authentication: account.local ?? "")
        var exchange: any SASLExchange
        if let mechanism = SCRAMMechanism(name: choice.mechanism) {
            exchange = SCRAMClient(
                mechanism,
                identity: identity,
                secret: .password(password),
                nonce: nonce,
                binding: choice.binding,
                offer: choice.offer,
                cryptography: cryptography
            )
        } else {
            exchange = PlainClient(identity: identity, password: password)
        }
        guard case .send(let message) = exchange.step(nil) else {
            let reason = "the user name or the password has characters that SASL does not allow (RFC 4013)"
            emit(.failed(ClientFault(step: .login, code: .unable, reason: reason)))
            return close()
        }
        state = .authenticating(Login(exchange: exchange, choice: choice))
        switch choice.profile {
        case .sasl:
            send { $0.element("auth", .sasl, ["mechanism": choice.mechanism], text: Base64.encode(message)) }
        case .sasl2(let bindsInline):
            let binds = bindsInline && resumption == nil
            send {
                $0.element("authenticate", .sasl2, ["mechanism": choice.mechanism]) {
                    $0.element("initial-response", text: Base64.encode(message))
                    // Resumption follows after the next features; a resource bound inline would create a second
                    // session.
                    if binds { $0.element("bind", .bind2) { $0.element("tag", text: "xmpptap") } }
                }
            }
        }
    }

    /// Requests the creation of the account (XEP-0077 §3.1); must precede the login.
    mutating func register(password: String) {
        guard case .offered = state else { return }
        state = .registering
        let user = account.local
        send {
            $0.element("iq", ["type": "set", "id": "register"]) {
                $0.element("query", .register) {
                    $0.element("username", text: user)
                    $0.element("password", text: password)
                }
            }
        }
    }

    /// Handles the server's answer to a SASL message.
    private mutating func answer(_ element: Element, _ login: Login) throws(ClientFault) {
        let namespace = login.choice.profile.namespace
        guard element.namespace == namespace else { throw fault(.broken, "unexpected <\(element.name)/>") }
        switch element.name {
        case "challenge": try respond(element.text, login)
        case "success": try succeed(element, login)
        case "failure":
            let condition = element.firstChild { $0.namespace == .sasl && !$0.isNamed("text") }?.name
            let text = element.childText("text", namespace).map { ": \($0)" } ?? ""
            throw fault(.refused(condition), "the server answered \(condition ?? "<failure/>")\(text)")
        case "continue":
            throw fault(.broken, "the server requires a second step that this client does not support (XEP-0388)")
        default: throw fault(.broken, "unexpected <\(element.name)/>")
        }
    }

    private mutating func respond(_ text: String, _ login: Login) throws(ClientFault) {
        guard let message = Base64.decode(text), !login.isProven else {
            throw fault(.broken, "the challenge is not base64, or unexpected")
        }
        var login = login
        let step = login.exchange.step(message)
        if let exchange = login.exchange as? SCRAMClient {
            signatures = (exchange.mechanismSignature, exchange.versionSignature)
        }
        let response: [UInt8]
        switch step {
        case .send(let bytes): response = bytes
        case .done:
            // The server sent its proof in a challenge, which requires an empty response (RFC 6120 §6.4.3).
            login.isProven = true
            response = []
        case .failed(_, let text): throw giveUp(text, login, isServerAtFault: login.exchange.isPeerAtFault)
        }
        state = .authenticating(login)
        send { $0.element("response", login.choice.profile.namespace, text: Base64.encode(response)) }
    }

    private mutating func succeed(_ success: Element, _ login: Login) throws(ClientFault) {
        let isSASL = login.choice.profile == .sasl
        let text = isSASL ? success.text : success.childText("additional-data", .sasl2) ?? ""
        guard let data = Base64.decode(text) else { throw fault(.broken, "the data of <success/> is not base64") }
        if !login.isProven {
            var exchange = login.exchange
            switch exchange.step(data.isEmpty ? nil : data) {
            case .done: break
            case .failed(_, let text): throw fault(exchange.isPeerAtFault ? .unproven : .unable, text)
            case .send: throw fault(.broken, "the server sent <success/> too early")
            }
        }
        emit(.authenticated)
        guard !isSASL else {
            state = .reopening
            return sendHeader()
        }
        let bound = success.firstChild {
            $0.isNamed("bound") && ($0.namespace == .bind2 || $0.namespace == .bind2Legacy)
        }
        let identifier = success.childText("authorization-identifier", .sasl2)
        if bound != nil, let jid = identifier.flatMap({ Address($0).jid }) {
            state = .boundInline(jid)
        } else {
            // SASL2 does not restart the stream: new features follow immediately (XEP-0388 §2.4).
            state = .binding
        }
    }

    /// Aborts a login whose challenge the client does not accept, and returns the fault.
    private mutating func giveUp(_ reason: String, _ login: Login, isServerAtFault: Bool) -> ClientFault {
        let isAltered = signatures.mechanisms == .altered || signatures.version == .altered
        send { $0.element("abort", login.choice.profile.namespace) }
        return fault(isAltered ? .altered : isServerAtFault ? .unproven : .unable, reason)
    }
}

// Resource binding (RFC 6120 §7), and the session of RFC 3921 if a server requires it.
extension ClientSession {
    private mutating func bind(_ features: StreamFeatures) throws(ClientFault) {
        guard features.offersBinding else { throw fault(.broken, "the server does not offer resource binding") }
        state = .bindAwaited(features)
        let resource = resource
        send {
            $0.element("iq", ["type": "set", "id": "bind"]) {
                $0.element("bind", .bind) { $0.element("resource", text: resource) }
            }
        }
    }

    private mutating func bound(_ answer: Element, _ features: StreamFeatures) throws(ClientFault) {
        let text = answer.child("bind", .bind)?.childText("jid", .bind)
        guard answer.attribute("type") == "result", let jid = text.flatMap({ Address($0).jid }) else {
            let condition = Self.condition(of: answer)
            throw fault(.refused(condition), "the server did not bind a resource\(condition.map { " (\($0))" } ?? "")")
        }
        establish(jid, features)
    }

    private static func condition(of answer: Element) -> String? {
        answer.child("error", .client)?.firstChild { $0.namespace == .stanzaErrors }?.name
    }

    private mutating func resume(_ features: StreamFeatures) throws(ClientFault) {
        guard let resumption, let namespace = features.streamManagement else { return try bind(features) }
        state = .resumeAwaited(features)
        send { $0.element("resume", namespace, ["previd": resumption.id, "h": String(resumption.handled)]) }
    }

    private mutating func resumed(_ answer: Element, _ features: StreamFeatures) throws(ClientFault) {
        if answer.isNamed("failed") { return try bind(features) }
        guard answer.isNamed("resumed"), let handled = answer.attribute("h").flatMap({ UInt32($0) }) else {
            throw fault(.broken, "unexpected <\(answer.name)/> as the answer to <resume/>")
        }
        state = .open
        emit(.resumed(handled: handled))
    }

    /// Requests a session, which servers of RFC 3921 require after resource binding.
    private mutating func establish(_ jid: JID, _ features: StreamFeatures) {
        guard features.session == .required else { return open(jid, features) }
        state = .establishing(jid, features)
        send { $0.element("iq", ["type": "set", "id": "session"]) { $0.element("session", .session) } }
    }

    private mutating func open(_ jid: JID, _ features: StreamFeatures) {
        state = .open
        emit(.bound(jid, features))
    }
}
