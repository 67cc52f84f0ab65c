internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// The server's side of one client's stream, from the stream header to the end, without I/O.
///
/// It receives bytes; its commands are collected in the ``ServerDirectory``, which all sessions share. Until a resource
/// is bound, the session answers; later stanzas are passed to the directory.
final class ServerSession {
    private enum State {
        /// Waiting for a stream header: the first one, or the one after the login, when the account is known.
        case opening(account: JID?)
        /// TLS is starting; data sent before it is discarded.
        case negotiatingTLS
        /// Features have been sent; the client is not authenticated.
        case negotiating
        /// A login is in progress; with SASL2, also the `<authenticate/>` with its inline requests.
        case authenticating(any SASLExchange, Element?)
        /// Logged in; the client has to bind a resource.
        case binding(account: JID)
        case bound(JID)
        /// The server has closed the stream, or both sides have.
        case closed
    }

    private let connection: ConnectionID
    private let directory: ServerDirectory
    private var state = State.opening(account: nil)
    /// Number of failed logins so far.
    private var failures = 0
    /// Whether the stream is inside TLS, or needs none.
    private var isSecure: Bool
    private var decoder = StreamDecoder(limits: .unauthenticated)
    /// Whether the answer to the current stream header has been sent.
    private var hasAnswered = false

    init(connection: ConnectionID, directory: ServerDirectory, isSecure: Bool = false) {
        self.isSecure = isSecure
        self.connection = connection
        self.directory = directory
    }

    private var isClosed: Bool { if case .closed = state { true } else { false } }

    /// Handles data from the client.
    func receive(_ bytes: Span<UInt8>, parser: StanzaParser) {
        guard !isClosed else { return }
        decoder.append(bytes)
        while !isClosed, let event = decoder.next() {
            receive(event, parser: parser)
            guard case .negotiatingTLS = state else { continue }
            // Discard plaintext after `<starttls/>` (CVE-2011-0411).
            decoder = StreamDecoder(limits: .unauthenticated)
            hasAnswered = false
            isSecure = true
            state = .opening(account: nil)
        }
    }

    private func receive(_ event: StreamEvent, parser: StanzaParser) {
        switch event.kind {
        case .item(.declaration), .item(.whitespace), .incomplete: break
        case .item(.header): open(event.head)
        case .item(.element):
            do {
                receive(try parser.parse(decoder))
            } catch {
                fail(.internalServerError, "\(error.message)")
            }
        case .item(.end): close()
        case .fragment:
            let text = "element larger than \(decoder.limits.itemBytes) bytes"
            fail(.policyViolation, text)
        case .fault(let fault): fail(fault.condition, fault.explanation)
        }
    }

    // MARK: Stream

    private func open(_ head: StanzaHead) {
        guard case .opening(let account) = state else {
            return fail(.badFormat, "unexpected stream restart")
        }
        answerHeader()
        let version = decoder.text(of: head.version)?.split(separator: ".").first.flatMap { Int($0) } ?? 0
        guard decoder.contentNamespace == .client else {
            return fail(.invalidNamespace, "this server accepts only client streams")
        }
        guard version >= 1 else {
            return fail(.unsupportedVersion, "version 1.0 is required")
        }
        guard let recipient = decoder.text(of: head.to) else {
            return fail(.improperAddressing, "the stream header has no 'to' domain")
        }
        guard Address(recipient).jid == directory.domain else {
            let text = "this server serves \(directory.domain)"
            return fail(.hostUnknown, text)
        }
        state = account.map { .binding(account: $0) } ?? .negotiating
        let bound = account.map { directory.responder?.features(of: $0) ?? Self.bindFeatures }
        directory.send(bound ?? loginFeatures, to: connection)
    }

    private func answerHeader() {
        hasAnswered = true
        var xml = XMLWriter()
        xml.verbatim("<?xml version='1.0'?>".utf8)
        xml.start(
            "stream:stream",
            xmlns: Namespace.client.uri.description,
            [
                "xmlns:stream": Namespace.streams.uri.description,
                "id": try? randomName(bytes: 8, directory.cryptography),
                "from": directory.domain.description, "version": "1.0", "xml:lang": "en",
            ]
        )
        directory.send(xml.take(), to: connection)
    }

    private static let bindFeatures = XMLWriter.bytes {
        $0.element("stream:features") {
            $0.element("bind", .bind)
            $0.element("session", .session) { $0.element("optional") }
        }
    }

    /// Expects a new stream: after SASL success, the client sends another header (RFC 6120 §6.4.6).
    private func restart(account: JID) {
        state = .opening(account: account)
        hasAnswered = false
        decoder.limits = .authenticated
    }

    /// Answers the client's closing tag with the server's own.
    private func close() {
        directory.send(Array("</stream:stream>".utf8), to: connection)
        directory.command(.close(connection))
        end()
    }

    /// Closes the stream with an error (RFC 6120 §4.9).
    func fail(_ condition: StreamErrorCondition, _ text: String? = nil) {
        guard !isClosed else { return }
        if condition != .systemShutdown, condition != .conflict {
            directory.responder?.refused(.stream(condition: condition.rawValue, text: text))
        }
        // If the client's header is invalid, the server's header must precede the error (RFC 6120 §4.9.1.2).
        if !hasAnswered { answerHeader() }
        let bytes = XMLWriter.bytes {
            $0.element("stream:error") {
                $0.element(condition.rawValue, .streamErrors)
                $0.element("text", .streamErrors, text: text)
            }
        }
        directory.send(bytes + Array("</stream:stream>".utf8), to: connection)
        directory.command(.close(connection))
        end()
    }

    /// Ends the session; all who saw the client's presence get unavailable presence.
    ///
    /// - Parameter isLost: Whether neither side has closed the stream.
    func end(isLost: Bool = false) {
        if case .bound(let jid) = state {
            if let responder = directory.responder {
                responder.unbind(connection, isLost: isLost)
            } else {
                directory.unbind(connection, jid)
            }
        }
        state = .closed
    }

    private func send(_ content: (inout XMLWriter) -> Void) { directory.send(XMLWriter.bytes(content), to: connection) }

    /// Answers a request with an error.
    private func refuse(_ iq: Element, _ error: StanzaError) {
        if let answer = error.answer(to: iq, from: nil) { directory.send(answer, to: connection) }
    }

    // MARK: Elements

    private func receive(_ element: Element) {
        switch state {
        case .bound(let jid): receive(element, as: jid)
        case .binding(let account): bind(element, account)
        case .negotiating, .authenticating: login(element)
        case .opening, .negotiatingTLS:
            fail(.notAuthorized, "stream restart required")
        case .closed: break
        }
    }

    private func receive(_ stanza: Element, as jid: JID) {
        let sender = ServerSender(connection: connection, jid: jid)
        let isNamedAsStanza = ["iq", "message", "presence"].contains(stanza.name)
        guard stanza.namespace == .client, isNamedAsStanza else {
            guard !isNamedAsStanza else {
                return fail(.invalidNamespace, "<\(stanza.name)/> is not in the stream's namespace")
            }
            guard let responder = directory.responder else {
                return fail(.unsupportedStanzaType, "<\(stanza.name)/> is not a stanza")
            }
            return responder.handle(stanza, from: sender)
        }
        if let from = stanza.attribute("from") {
            // RFC 6120 §8.1.2.1: only the client's own JID is allowed, full or bare.
            guard let from = Address(from).jid, from == jid || from == jid.bare else {
                return fail(.invalidFrom, "this stream is bound to \(jid)")
            }
        }
        if let responder = directory.responder {
            responder.handle(stanza, from: sender)
        } else {
            directory.handle(stanza, from: sender)
        }
    }

    /// Handles the only requests allowed before a resource is bound: resource binding (RFC 6120 §7) and resumption
    /// (XEP-0198 §5).
    private func bind(_ iq: Element, _ account: JID) {
        if iq.matches("resume", .streamManagement) || iq.matches("resume", .streamManagement2) {
            if let (jid, answer) = directory.responder?.resume(connection, iq, of: account) {
                state = .bound(jid)
                directory.send(answer, to: connection)
                return directory.responder?.opened(connection) ?? ()
            }
            // After the failure, the client can bind a resource (XEP-0198 §5).
            return send {
                $0.element("failed", xmlns: iq.namespaceURI) { $0.element("item-not-found", .stanzaErrors) }
            }
        }
        guard iq.matches("iq", .client), iq.attribute("type") == "set", let payload = iq.child("bind", .bind) else {
            return fail(.notAuthorized, "bind a resource first")
        }
        do throws(StanzaError) {
            guard iq.attribute("id") != nil else { throw .badRequest }
            let requested = payload.childText("resource", .bind).flatMap { $0.isEmpty ? nil : $0 }
            let jid =
                if let responder = directory.responder {
                    try responder.bind(connection, to: account, resource: requested)
                } else {
                    try directory.bind(connection, to: account, resource: requested)
                }
            state = .bound(jid)
            let answer = directory.result(of: iq, nil) {
                $0.element("bind", .bind) { $0.element("jid", text: jid.description) }
            }
            directory.send(answer, to: connection)
            directory.responder?.opened(connection)
        } catch {
            refuse(iq, error)
        }
    }
}

extension StreamDecoder {
    /// Returns the value of an attribute of the last item; nil if it is absent.
    fileprivate func text(of attribute: StanzaHead.Attribute?) -> String? {
        guard let attribute else { return nil }
        var value: [UInt8] = []
        AttributeValue.decode(bytes.slice(attribute.range), into: &value)
        return String(decoding: value, as: UTF8.self)
    }
}

/// Steps before the login is complete: STARTTLS, authentication, account registration.
extension ServerSession {
    private var loginFeatures: [UInt8] {
        let settings = directory.settings
        return XMLWriter.bytes {
            $0.element("stream:features") {
                if settings.offersStartTLS, !isSecure {
                    $0.element("starttls", .tls) { if settings.requiresTLS { $0.element("required") } }
                }
                if settings.requiresTLS, !isSecure { return }
                $0.element("mechanisms", .sasl) {
                    for mechanism in settings.mechanisms { $0.element("mechanism", text: mechanism) }
                }
                if settings.offersSASL2 {
                    $0.element("authentication", .sasl2) {
                        for mechanism in settings.mechanisms { $0.element("mechanism", text: mechanism) }
                        $0.element("inline") {
                            $0.element("sm", .streamManagement)
                            $0.element("bind", .bind2) {
                                $0.element("inline") {
                                    for feature in Self.inlineFeatures {
                                        $0.element("feature", ["var": feature.uri.description])
                                    }
                                }
                            }
                        }
                    }
                }
                if settings.allowsRegistration { $0.element("register", .registerFeature) }
            }
        }
    }

    /// Features that a client may enable inline with its SASL2 login (XEP-0386).
    private static let inlineFeatures: [Namespace] = [.streamManagement, .carbons, .clientState]

    private func login(_ element: Element) {
        let isSASL2 = element.namespace == .sasl2 && directory.settings.offersSASL2
        switch (element.name, element.namespace) {
        case ("auth", .sasl): begin(element, element.text, nil)
        case ("authenticate", .sasl2) where isSASL2:
            begin(element, element.childText("initial-response", .sasl2) ?? "", element)
        case ("response", .sasl),
            ("response", .sasl2) where isSASL2:
            guard case .authenticating(let exchange, let request) = state, (request != nil) == isSASL2 else {
                return refuse(.malformedRequest, "unsolicited response", isSASL2)
            }
            step(exchange, element.text, request)
        case ("abort", .sasl),
            ("abort", .sasl2) where isSASL2:
            refuse(.aborted, nil, isSASL2)
        case ("starttls", .tls) where directory.settings.offersStartTLS && !isSecure:
            send { $0.element("proceed", .tls) }
            directory.command(.startTLS(connection))
            state = .negotiatingTLS
        case ("starttls", .tls):
            // STARTTLS was not offered: the stream is closed after the failure (RFC 6120 §5.4.2.2).
            send { $0.element("failure", .tls) }
            fail(.unsupportedFeature, "TLS is not supported")
        case ("compress", .compression):
            send { $0.element("failure", .compression) { $0.element("setup-failed") } }
        case ("iq", .client) where element.child("query", .register) != nil:
            register(element)
        default:
            fail(.notAuthorized, "log in first")
        }
    }

    // MARK: SASL

    /// Starts a login.
    ///
    /// - Parameters:
    ///   - text: The initial response; an empty text means none, and `=` an empty response (RFC 6120 §6.4.2).
    ///   - request: The `<authenticate/>` of SASL2; nil with SASL.
    private func begin(_ element: Element, _ text: String, _ request: Element?) {
        guard !directory.settings.requiresTLS || isSecure else {
            return refuse(.encryptionRequired, "begin TLS first", request != nil)
        }
        let name = element.attribute("mechanism") ?? ""
        guard let exchange = exchange(name) else {
            return refuse(.invalidMechanism, "\(name) is not supported", request != nil)
        }
        step(exchange, text.isEmpty ? nil : text, request)
    }

    private func exchange(_ name: String) -> (any SASLExchange)? {
        guard directory.settings.mechanisms.contains(name) else { return nil }
        if let responder = directory.responder { return responder.exchange(name) }
        let (credentials, cryptography) = (directory.credentials, directory.cryptography)
        let domain = directory.settings.domain
        let kept = { @Sendable (name: String) in
            (try? JID(local: name, domain: domain)).flatMap { credentials[$0] }
        }
        guard let mechanism = SCRAMMechanism(name: name) else {
            return PlainServer { names, password in
                kept(names.authentication)?.match(password, cryptography: cryptography) ?? false
            }
        }
        guard !mechanism.isPlus, let nonce = try? SCRAMMechanism.makeNonce(cryptography) else { return nil }
        return SCRAMServer(
            mechanism,
            settings: .init(
                nonce: nonce,
                decoyKey: directory.decoyKey,
                decoy: { name in
                    let account = try? JID(local: name, domain: domain)
                    return .init(account: account?.normalized.description ?? name)
                },
                credentials: { kept($0)?[mechanism.algorithm] }
            ),
            cryptography: cryptography
        )
    }

    private func step(_ exchange: any SASLExchange, _ text: String?, _ request: Element?) {
        var exchange = exchange
        var incoming: [UInt8]?
        let isSASL2 = request != nil
        if let text {
            guard let bytes = text == "=" ? [] : Base64.decode(text) else {
                return refuse(.incorrectEncoding, "not base64", isSASL2)
            }
            incoming = bytes
        }
        switch exchange.step(incoming) {
        case .send(let challenge):
            state = .authenticating(exchange, request)
            send { $0.element("challenge", isSASL2 ? .sasl2 : .sasl, text: Base64.encode(challenge)) }
        case .done(let data):
            guard let names = exchange.identity, let account = directory.address(of: names.authentication) else {
                return refuse(.notAuthorized, nil, isSASL2)
            }
            // The client must not act for another account.
            guard names.authorization.map({ Address($0).jid == account }) ?? true else {
                return refuse(.invalidAuthzid, nil, isSASL2)
            }
            if let request { return open(account, request, data) }
            send { $0.element("success", .sasl) { if let data { $0.text(Base64.encode(data)) } } }
            restart(account: account)
        case .failed(let condition, let text):
            refuse(condition, text, isSASL2)
        }
    }

    /// Completes a SASL2 login: performs its inline requests, and sends the results. The stream is not restarted.
    private func open(_ account: JID, _ request: Element, _ data: [UInt8]?) {
        decoder.limits = .authenticated
        state = .binding(account: account)
        var answers: [UInt8] = []
        let resume = request.child("resume", .streamManagement)
        if let resume, let (jid, answer) = directory.responder?.resume(connection, resume, of: account) {
            state = .bound(jid)
            answers = answer
        } else if resume != nil {
            answers = XMLWriter.bytes {
                $0.element("failed", .streamManagement) { $0.element("item-not-found", .stanzaErrors) }
            }
        }
        let isResumed = if case .bound = state { true } else { false }
        // A resumed session already has a resource (XEP-0386).
        if !isResumed, let bind = request.child("bind", .bind2),
            let jid = try? directory.responder?.bind(connection, to: account, resource: nil)
        {
            state = .bound(jid)
            let enabled = bind.child("enable", .streamManagement).flatMap {
                directory.responder?.enable($0, for: connection)
            }
            answers += XMLWriter.bytes { $0.element("bound", .bind2) { $0.verbatim(enabled ?? []) } }
        }
        let identity = if case .bound(let jid) = state { jid } else { account }
        send {
            $0.element("success", .sasl2) {
                $0.element("additional-data", text: data.map(Base64.encode))
                $0.element("authorization-identifier", text: identity.description)
                $0.verbatim(answers)
            }
        }
        // No features are sent if the session is resumed (XEP-0198).
        if !isResumed {
            directory.send(directory.responder?.features(of: account) ?? Self.bindFeatures, to: connection)
        }
        if case .bound = state { directory.responder?.opened(connection) }
    }

    /// Sends the failure of a login; after too many failures, the stream is closed as well (RFC 6120 §6.4.5).
    private func refuse(_ condition: SASLCondition, _ text: String?, _ isSASL2: Bool) {
        state = .negotiating
        failures += 1
        directory.responder?.refused(.login(condition: condition.description))
        send {
            $0.element("failure", isSASL2 ? .sasl2 : .sasl) {
                $0.element(condition.description, xmlns: isSASL2 ? Namespace.sasl.uri.description : nil)
                $0.element("text", ["xml:lang": "en"], text: text)
            }
        }
        guard failures >= directory.settings.loginAttempts else { return }
        fail(.policyViolation, "\(failures) failed logins")
    }

    // MARK: Registration

    private func register(_ iq: Element) {
        let type = iq.attribute("type")
        guard let payload = iq.child("query", .register), type == "get" || type == "set", iq.attribute("id") != nil
        else { return refuse(iq, .badRequest) }
        switch directory.registerStranger(payload, isSet: type == "set") {
        case .result(let payload): directory.send(directory.result(of: iq, nil, payload), to: connection)
        case .error(let error): refuse(iq, error)
        case .forwarded: break
        }
    }
}
