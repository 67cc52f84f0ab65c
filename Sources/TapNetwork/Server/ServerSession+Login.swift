internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// What a client may do before it has logged in: begin TLS, authenticate, make an account.
extension ServerSession {
    func loginFeatures(_ settings: ServerSettings) -> [UInt8] {
        XMLWriter.bytes {
            $0.element("stream:features") {
                if settings.offersStartTLS, !isSecure { $0.element("starttls", .tls) }
                $0.element("mechanisms", .sasl) {
                    for mechanism in settings.mechanisms { $0.element("mechanism", text: mechanism) }
                }
                if settings.allowsRegistration { $0.element("register", .registerFeature) }
            }
        }
    }

    func login(
        _ element: Element,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        switch (element.name, element.namespace) {
        case ("auth", .sasl):
            let name = element.attribute("mechanism") ?? ""
            guard let exchange = exchange(name, directory) else {
                return refuse(.invalidMechanism, "\(name) is not supported", directory: &directory, &output)
            }
            // No text is no initial response, and "=" an empty one (RFC 6120 §6.4.2).
            let text = element.text
            step(exchange, text.isEmpty ? nil : text, directory: &directory, &output)
        case ("response", .sasl):
            guard case .authenticating(let exchange) = state else {
                return refuse(.malformedRequest, "unsolicited response", directory: &directory, &output)
            }
            step(exchange, element.text, directory: &directory, &output)
        case ("abort", .sasl):
            refuse(.aborted, nil, directory: &directory, &output)
        case ("starttls", .tls) where directory.settings.offersStartTLS && !isSecure:
            output.append(.write(connection, XMLWriter.bytes { $0.element("proceed", .tls) }))
            output.append(.startTLS(connection))
            state = .negotiatingTLS
        case ("starttls", .tls):
            // Not offered; RFC 6120 §5.4.2.2 wants the stream to end.
            output.append(.write(connection, XMLWriter.bytes { $0.element("failure", .tls) }))
            fail(.unsupportedFeature, "TLS is not supported", directory: &directory, &output)
        case ("compress", .compression):
            let failure = XMLWriter.bytes {
                $0.element("failure", .compression) { $0.element("setup-failed") }
            }
            output.append(.write(connection, failure))
        case ("iq", .client) where element.child("query", .register) != nil:
            register(element, directory: &directory, &output)
        default:
            fail(.notAuthorized, "log in first", directory: &directory, &output)
        }
    }

    // MARK: SASL

    private func exchange(_ name: String, _ directory: ServerDirectory) -> (any SASLExchange)? {
        guard directory.settings.mechanisms.contains(name) else { return nil }
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
            settings: .init(nonce: nonce, decoyKey: directory.decoyKey) { kept($0)?[mechanism.algorithm] },
            cryptography: cryptography
        )
    }

    private func step(
        _ exchange: any SASLExchange,
        _ text: String?,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        var exchange = exchange
        var incoming: [UInt8]?
        if let text {
            guard let bytes = text == "=" ? [] : Base64.decode(text) else {
                return refuse(.incorrectEncoding, "not base64", directory: &directory, &output)
            }
            incoming = bytes
        }
        switch exchange.step(incoming) {
        case .send(let challenge):
            state = .authenticating(exchange)
            let bytes = XMLWriter.bytes { $0.element("challenge", .sasl, text: Base64.encode(challenge)) }
            output.append(.write(connection, bytes))
        case .done(let data):
            guard let names = exchange.identity, let account = directory.address(of: names.authentication) else {
                return refuse(.notAuthorized, nil, directory: &directory, &output)
            }
            // Nobody may act for anybody else.
            guard names.authorization.map({ Address($0).jid == account }) ?? true else {
                return refuse(.invalidAuthzid, nil, directory: &directory, &output)
            }
            let bytes = XMLWriter.bytes {
                $0.element("success", .sasl) { if let data { $0.text(Base64.encode(data)) } }
            }
            output.append(.write(connection, bytes))
            restart(account: account)
        case .failed(let condition, let text):
            refuse(condition, text, directory: &directory, &output)
        }
    }

    /// Says why the log-in failed; after some failures the stream ends as well (RFC 6120 §6.4.5).
    private func refuse(
        _ condition: SASLCondition,
        _ text: String?,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        state = .negotiating
        failures += 1
        let bytes = XMLWriter.bytes {
            $0.element("failure", .sasl) {
                $0.element(condition.description)
                $0.element("text", ["xml:lang": "en"], text: text)
            }
        }
        output.append(.write(connection, bytes))
        guard failures >= directory.settings.loginAttempts else { return }
        fail(.policyViolation, "\(failures) failed logins", directory: &directory, &output)
    }

    // MARK: Registration

    private func register(
        _ iq: Element,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        let type = iq.attribute("type")
        guard let payload = iq.child("query", .register), type == "get" || type == "set", iq.attribute("id") != nil
        else {
            if let answer = StanzaError.badRequest.answer(to: iq, from: nil) {
                output.append(.write(connection, answer))
            }
            return
        }
        switch directory.registerStranger(payload, isSet: type == "set") {
        case .result(let payload): output.append(.write(connection, directory.result(of: iq, nil, payload)))
        case .error(let error):
            if let answer = error.answer(to: iq, from: nil) { output.append(.write(connection, answer)) }
        case .forwarded: break
        }
    }
}
