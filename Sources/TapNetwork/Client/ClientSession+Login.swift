internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

// Logging in: SASL (RFC 6120 §6) and SASL2 (XEP-0388) with the resource bound along with it (XEP-0386).
extension ClientSession {
    /// Logs in.
    ///
    /// - Parameters:
    ///   - choice: As ``LoginChoice/strongest(of:on:)`` gives it for what was offered.
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
            let words = "the user name or the password has characters that SASL does not allow (RFC 4013)"
            tell(.failed(ClientFault(step: .login, code: .given, reason: words)))
            return close()
        }
        state = .authenticating(Login(exchange: exchange, choice: choice))
        switch choice.profile {
        case .sasl:
            send { $0.element("auth", .sasl, ["mechanism": choice.mechanism], text: Base64.encode(message)) }
        case .sasl2(let bindsInline):
            send {
                $0.element("authenticate", .sasl2, ["mechanism": choice.mechanism]) {
                    $0.element("initial-response", text: Base64.encode(message))
                    if bindsInline { $0.element("bind", .bind2) { $0.element("tag", text: "xmpptap") } }
                }
            }
        }
    }

    /// Takes an answer of the server's.
    mutating func answer(_ element: Element, _ login: Login) throws(ClientFault) {
        let namespace: Namespace = login.choice.profile == .sasl ? .sasl : .sasl2
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
        note(login.exchange)
        let response: [UInt8]
        switch step {
        case .send(let bytes): response = bytes
        case .done:
            // The server's proof came by a challenge, which wants an empty answer (RFC 6120 §6.4.3).
            login.isProven = true
            response = []
        case .failed(_, let text): throw giveUp(text, login, isServerAtFault: login.exchange.isPeerAtFault)
        }
        state = .authenticating(login)
        let namespace: Namespace = login.choice.profile == .sasl ? .sasl : .sasl2
        send { $0.element("response", namespace, text: Base64.encode(response)) }
    }

    private mutating func succeed(_ success: Element, _ login: Login) throws(ClientFault) {
        let isSASL = login.choice.profile == .sasl
        let text = isSASL ? success.text : success.childText("additional-data", .sasl2) ?? ""
        guard let data = Base64.decode(text) else { throw fault(.broken, "the data of <success/> is not base64") }
        if !login.isProven {
            var exchange = login.exchange
            switch exchange.step(data.isEmpty ? nil : data) {
            case .done: break
            case .failed(_, let text): throw fault(exchange.isPeerAtFault ? .unproven : .given, text)
            case .send: throw fault(.broken, "the server sent <success/> too early")
            }
        }
        tell(.authenticated)
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
            // No new stream: its features follow at once (XEP-0388 §2.4).
            state = .binding
        }
    }

    /// Ends an exchange that this client does not believe.
    private mutating func giveUp(_ words: String, _ login: Login, isServerAtFault: Bool) -> ClientFault {
        let isAltered = signatures.mechanisms == .altered || signatures.version == .altered
        let namespace: Namespace = login.choice.profile == .sasl ? .sasl : .sasl2
        send { $0.element("abort", namespace) }
        return fault(isAltered ? .altered : isServerAtFault ? .unproven : .given, words)
    }

    private mutating func note(_ exchange: any SASLExchange) {
        guard let exchange = exchange as? SCRAMClient else { return }
        signatures = (exchange.mechanismSignature, exchange.versionSignature)
    }
}
