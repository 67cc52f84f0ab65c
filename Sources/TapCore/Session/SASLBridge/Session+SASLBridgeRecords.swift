internal import TapRecord
import XMPPCore

// Records of a login that the proxy performs: all four directions, each on its leg.
extension Session {
    /// The key of the steps of the proxy's own login.
    private static let ownKey = "server"

    /// Says something of the login to the client, as its server would.
    mutating func answer(_ bytes: [UInt8]) {
        guard let element = say(bytes, to: .client), let step = decodeStep(element, .recv) else { return }
        record(bytes, step, .client)
        noteTimeline(step, element)
        guard step.kind == .failure else { return }
        login?.observe(.refusedHere)
        info.authentication = .failed(condition: step.condition ?? "undefined-condition")
        negotiation.failAuthentication()
    }

    /// Says something of the login to the server, as its client would: `isOwn` as part of the proxy's own login, else for
    /// the client.
    mutating func say(_ bytes: [UInt8], isOwn: Bool) {
        guard let element = say(bytes, to: .server) else { return }
        var copy = sasl
        guard isOwn else {
            if let step = copy.decode(element, .send) { record(bytes, step, .server) }
            return
        }
        if element.isNamed("auth") || element.isNamed("authenticate") {
            negotiation.bridged?.ownLogin = SASLDecoder(policy: options.redaction)
        }
        guard let step = decodeOwn(element, .send) else { return }
        record(bytes, step, .server)
        login?.observe(.ownStep(step, words: nil))
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        begin(loginStep, key: Self.ownKey, awaits: .server, details: ["leg": .string(Self.ownKey)])
    }

    /// What the server says to the proxy.
    mutating func recordOwn(_ event: StreamEvent, _ element: Element, _ acts: [SASLBridge.Act]) {
        let step = decodeOwn(element, .recv)
        var record = makeRecord(event, .recv, .element, level: .info, part: .sasl)
        record.sasl = step?.details
        let words = step?.text.map { tools.redactor.disclose(text: $0) }
        // The answer to a login that was given up is no failure.
        if let step, step.kind == .failure, !acts.isEmpty {
            record.level = .error
            record.condition = step.condition
            record.code = "sasl-failure"
            record.message = words.map { Prose($0) }
        }
        emit(consume record)
        guard let step, !acts.isEmpty else { return }
        login?.observe(.ownStep(step, words: words))
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        var details: Attributes = ["phase": .string(step.kind.rawValue)]
        details["mechanism"] = step.details["mechanism"]
        let outcome: LoginStep.Outcome = step.kind == .failure ? .failed(condition: step.condition, words) : .ok
        finish(loginStep, key: Self.ownKey, outcome, details: details)
    }

    private mutating func decodeOwn(_ element: Element, _ direction: Direction) -> AuthenticationStep? {
        negotiation.bridged?.ownLogin.decode(element, direction)
    }

    /// Writes an element of this program's own to a peer; gives it as the peer will read it.
    private mutating func say(_ bytes: [UInt8], to leg: Leg) -> Element? {
        enqueue(.send(leg, bytes))
        return tools.elements.read(bytes.span)
    }

    private mutating func record(_ bytes: [UInt8], _ step: AuthenticationStep, _ leg: Leg) {
        var record = makeRecord(.element, .info, part: .sasl)
        record.origin = .tap
        record.direction = leg.inbound.opposite
        record.leg = leg
        record.epoch = directions[leg.inbound.opposite].decoder.epoch
        record.length = UInt64(bytes.count)
        record.sasl = step.details
        if step.kind == .failure {
            record.level = .error
            record.condition = step.condition
            record.code = "sasl-failure"
            record.message = step.text.map { Prose($0) }
        }
        record.xml = compose(bytes)
        record.name = record.xml.map { elementName(at: Int($0.start)) }
        emit(consume record)
    }

    // MARK: Remarks

    mutating func tell(_ remark: SASLBridge.Remark) {
        switch remark {
        case .unknownAccount(let user, isBound: true):
            login?.observe(.missedAccount)
            tell(
                .error,
                "account-missing",
                "\(account(user)) is not in --accounts, and its login uses channel binding to xmpptap's TLS connection; "
                    + "login refused; add the account to the file, or disable channel binding in the client"
            )
        case .unknownAccount(let user, isBound: false):
            tell(.info, "login-not-ended", "\(account(user)) is not in --accounts; login relayed unchanged")
        case .foreignMechanism(let mechanism):
            tell(
                .warn,
                "login-not-ended",
                "the client uses \(mechanism), which was not offered; login relayed unchanged"
            )
        case .ownLogin(let choice, let user):
            tellRefused()
            let binding = choice.binding.binding.map { ", channel binding \($0.type)" } ?? ""
            let remark = choice.remark.map { ", no channel binding: \($0)" } ?? ""
            tell(
                .info,
                "own-login",
                "client authenticated as \(account(user)); xmpptap logs in to the server by "
                    + "\(choice.mechanism)\(binding)\(remark)"
            )
        case .ownLoginRefused(let user):
            tell(
                .error,
                "own-login-refused",
                "the server refused xmpptap's own login for \(account(user)); compare the password in --accounts with the "
                    + "server's"
            )
        case .ownLoginFailed(let words, let user, let isServerAtFault):
            login?.observe(.ownFailure(words, isServerUnproven: isServerAtFault))
            tell(
                .error,
                "own-login-failed",
                "xmpptap gave up the login for \(user.isEmpty ? "the client" : account(user)): \(words)"
            )
        case .noMechanism(let list):
            tell(
                .error,
                "own-login-failed",
                "the server offers no mechanism that xmpptap can use (\(list.joined(separator: ", "))); PLAIN needs TLS "
                    + "with a verified certificate, EXTERNAL needs --upstream-certificate, stored keys need the client's "
                    + "mechanism"
            )
        case .noKeys(let mechanism, let has, let user):
            let base = BridgedOffer.base(of: mechanism)
            tell(
                .error,
                "client-login-refused",
                "\(account(user)) has no stored key for \(base) in --accounts, and its client uses \(mechanism); login refused; "
                    + "add the password, or a stored key for \(base), to the account's file, or let the client use "
                    + has.joined(separator: ", ")
            )
        case .clientRefused(let words, let user):
            tell(
                .error,
                "client-login-refused",
                "xmpptap refused the client's login (--accounts)"
                    + "\(user.map { " for \(account($0))" } ?? ""): \(words)"
            )
        }
    }

    /// What the client asks for and does not get, since it hangs on the mechanism.
    private mutating func tellRefused() {
        guard let bridged = negotiation.bridged, !bridged.refusedInline.isEmpty else { return }
        let names = bridged.refusedInline.joined(separator: ", ")
        bridged.refusedInline = []
        tell(.info, "inline-refused", "not relayed, because the server would bind it to xmpptap's own login: \(names)")
    }

    private mutating func tell(_ level: Level, _ code: String, _ words: String) {
        note(level == .error ? .error : .note, level, code: code, words, part: .sasl)
    }

    private func account(_ user: String) -> String {
        let name = tools.redactor.disclose(user: user, at: info.domain)
        guard let domain = info.domain, !name.contains("@") else { return name }
        return "\(name)@\(tools.redactor.disclose(address: domain))"
    }
}
