internal import TapDiagnosis
internal import TapRecord
import TapStreamManagement
import XMPPCore

// Logins that the proxy performs itself: it relays neither the client's SASL messages nor the server's.
extension Session {
    /// TLS is established on a leg with these channel bindings, for logins that the proxy performs.
    mutating func secured(_ leg: Leg, _ secured: SecuredLeg?) {
        guard let bridged = negotiation.bridged else { return }
        switch leg {
        case .client: bridged.bridge.client = secured
        case .server: bridged.bridge.server = secured
        }
        bridged.bridge.isServerVerified = !info.isUnverified
    }

    /// The offer to the client; nil if the proxy does not perform the login, or supports nothing in the server's offer.
    func terminatedOffer(_ offer: StreamFeatures) -> BridgedOffer? {
        guard negotiation.isOpening, info.kind == .client, let bridge = negotiation.bridged?.bridge else { return nil }
        return BridgedOffer(offer, bridge.authenticator, client: bridge.client)
    }

    /// Holds a client that does not wait for the features (XEP-0388 §2.2 allows it to cache them) until they arrive:
    /// they determine its permitted mechanisms.
    mutating func awaitFeatures(_ event: StreamEvent, _ direction: Direction) {
        // Streams before version 1.0 have none (RFC 6120 §4.7.5).
        switch direction {
        case .send where event.head.version != nil: _ = awaitFeatures()
        case .recv where event.head.version == nil: stopAwaiting()
        default: break
        }
    }

    /// Holds a client after its header; returns false if no features are awaited.
    mutating func awaitFeatures() -> Bool {
        guard negotiation.isOpening, negotiation.asymmetric == nil, let bridged = negotiation.bridged,
            info.kind == .client
        else { return false }
        bridged.awaitsFeatures = true
        hold(.send)
        return true
    }

    /// Releases a client that waited for features.
    mutating func stopAwaiting() {
        guard let bridged = negotiation.bridged, bridged.awaitsFeatures else { return }
        bridged.awaitsFeatures = false
        if context.directions.send.isHeld { release(.send) }
    }

    /// Takes the server's offer, and logs the parts that the client is not offered.
    mutating func terminate(_ offer: StreamFeatures) {
        stopAwaiting()
        guard negotiation.isOpening, let bridged = negotiation.bridged else { return }
        let terminated = terminatedOffer(offer)
        bridged.bridge.offer = terminated
        guard terminated == nil, !(offer.mechanisms + (offer.sasl2Mechanisms ?? [])).isEmpty else { return }
        note(
            code: "login-not-ended",
            "no mechanism that the accounts support; login relayed unchanged",
            part: .sasl
        )
    }

    /// An element of a login that the proxy performs: passes it to the SASL bridge, which takes the next step.
    ///
    /// - Parameter translated: The element with the translated counts of stream management.
    mutating func interceptLogin(
        _ event: StreamEvent,
        _ direction: Direction,
        _ translated: ItemDecision?,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        guard event.item == .element, !event.isTruncated, !negotiation.isRefusing else { return nil }
        switch event.head.namespace.namespace {
        case .sasl, .sasl2, .sasl2Legacy: break
        default: return nil
        }
        guard let bridged = negotiation.bridged, var element = context.parse(direction) else { return nil }
        if case .replace(let edited) = translated,
            let read = tools.elements.read(edited.bytes.span, in: context.directions[direction].decoder)
        {
            element = read
        }
        let wasLoggingIn = bridged.bridge.isLoggingIn
        let acts = direction == .send ? acts(of: element, bridged) : acts(ofServer: element, &bridged.bridge)
        guard let acts else { return nil }
        var translation: StreamManagementTranslator.Translation?
        if case .streamManagement(let found) = reading { translation = found }
        reading = .login(element, acts, wasLoggingIn: wasLoggingIn, translation)
        // The server's failure is relayed to the client unchanged.
        return acts.contains(.passOn) || acts.contains(.fail) ? nil : .answer
    }

    /// Records such an element, and performs the resulting actions.
    mutating func handleBridged(
        _ event: StreamEvent,
        _ direction: Direction,
        _ element: Element,
        _ acts: [SASLBridge.Act],
        wasLoggingIn: Bool
    ) {
        guard !acts.contains(.passOn) else {
            for case .remark(let remark) in acts { tell(remark) }
            return understand(event, .element, direction)
        }
        if direction == .send {
            negotiation.bridged?.endedEpoch = event.epoch
            handleSASL(event, .send, element)
        } else {
            recordOwn(event, element, acts)
        }
        for act in acts { perform(act, element, event) }
        holdClient(wasLoggingIn: wasLoggingIn)
    }

    /// Takes a step of a login that was computed elsewhere, and resumes both directions.
    mutating func computed(_ step: SlowStep) {
        guard let bridged = negotiation.bridged, let uri = bridged.computing else { return }
        bridged.computing = nil
        let acts = bridged.bridge.computed(step)
        release(.send)
        release(.recv)
        for act in acts { perform(act, uri) }
        holdClient(wasLoggingIn: false)
    }

    /// Holds the client while the proxy logs in, and both directions while a step is computed elsewhere.
    private mutating func holdClient(wasLoggingIn: Bool) {
        if negotiation.bridged?.computing != nil {
            hold(.send)
            hold(.recv)
        } else if negotiation.bridged?.bridge.isLoggingIn == true {
            hold(.send)
        } else if wasLoggingIn {
            // Does not release a client that is held for another reason, such as a request for TLS.
            release(.send)
        }
    }

    /// White space that the client has sent after its part of the login: the server has ended that stream, and nothing
    /// may precede an XML declaration. go-sendxmpp ends each element with a line feed.
    func interceptWhitespace(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard event.item == .whitespace, direction == .send, case .restarting(event.epoch) = negotiation else {
            return nil
        }
        return .answer
    }

    // MARK: Messages

    private func acts(of element: Element, _ bridged: BridgedLogin) -> [SASLBridge.Act]? {
        // The first message names the user; the session's own decoder reads it when it is recorded.
        var peek = sasl
        let isSASL2 = element.namespace.isSASL2
        switch element.name {
        case "auth" where !isSASL2, "authenticate" where isSASL2:
            _ = peek.decode(element, .send)
            bridged.inline = isSASL2 ? Self.inline(of: element) : []
            bridged.refusedInline =
                element.children.filter { BridgedOffer.isTiedToMechanism($0.namespace) }.map(\.name)
            let text =
                isSASL2
                ? element.childText("initial-response", element.namespace).map { $0.isEmpty ? "=" : $0 } : element.text
            return bridged.bridge.begin(
                element.attribute("mechanism") ?? "",
                isSASL2: isSASL2,
                SASLMessage.read(Array((text ?? "").utf8).span),
                user: peek.user,
                domain: info.domain
            )
        case "response":
            _ = peek.decode(element, .send)
            return bridged.bridge.clientSays(SASLMessage.read(Array(element.text.utf8).span), user: peek.user)
        case "abort": return bridged.bridge.clientAborts()
        default: return nil
        }
    }

    private func acts(ofServer element: Element, _ bridge: inout SASLBridge) -> [SASLBridge.Act]? {
        func message(_ text: String?) -> SASLMessage.Text { SASLMessage.read(Array((text ?? "").utf8).span) }
        let data = element.namespace.isSASL2 ? element.childText("additional-data", element.namespace) : element.text
        switch element.name {
        case "challenge": return bridge.serverSays(message(element.text))
        case "success": return bridge.serverSucceeds(message(data))
        case "continue" where element.namespace.isSASL2:
            return bridge.serverSucceeds(message(data), isOver: false)
        case "failure": return bridge.serverFails()
        default: return nil
        }
    }

    /// The inline requests of a SASL2 client, as relayed to the server.
    private static func inline(of element: Element) -> [UInt8] {
        let uri = element.namespaceURI
        return XMLWriter.bytes { xml in
            for child in element.children
            where !child.matches("initial-response", element.namespace)
                && !BridgedOffer.isTiedToMechanism(child.namespace)
            {
                xml.element(child, inheriting: uri)
            }
        }
    }

    // MARK: Actions

    private mutating func perform(_ act: SASLBridge.Act, _ element: Element, _ event: StreamEvent) {
        switch act {
        case .succeed(let data): succeed(data, element, event)
        case .proceed(let data): answer(Self.replacing(data, in: element))
        case .fail: handleFailure(element)
        default: perform(act, element.namespaceURI)
        }
    }

    /// Performs an action that does not need the server's element; `uri` is the namespace of the profile.
    private mutating func perform(_ act: SASLBridge.Act, _ uri: String) {
        switch act {
        case .passOn, .succeed, .proceed, .fail: break
        case .compute:
            guard let bridged = negotiation.bridged, let work = bridged.bridge.work else { break }
            bridged.computing = uri
            context.outlet.request(.compute(work))
        case .challenge(let bytes): answer(Self.element("challenge", uri, bytes))
        case .refuse(let condition, let text): answer(Self.failure(uri, condition, text))
        case .begin(let mechanism, let message), .beginForClient(let mechanism, let message):
            let bytes = beginning(uri, mechanism, message)
            if case .begin = act { say(bytes, isOwn: true) } else { say(bytes, isOwn: false) }
        case .respond(let bytes): say(Self.element("response", uri, bytes), isOwn: true)
        case .abort: say(XMLWriter.bytes { $0.element("abort", xmlns: uri) }, isOwn: true)
        case .end(let condition, let text, let isServerAtFault):
            login?.observe(.refused(Prose(text)))
            refuse(condition, text, fault: isServerAtFault ? .recv : .send)
        case .remark(let remark): tell(remark)
        }
    }

    /// The server's success becomes the client's: a new stream follows, or with SASL2 the results of the inline
    /// requests.
    private mutating func succeed(_ data: [UInt8]?, _ element: Element, _ event: StreamEvent) {
        let isSASL2 = element.namespace.isSASL2
        answer(isSASL2 ? Self.replacing(data, in: element) : Self.success(element.namespaceURI, data))
        authenticated(element, event)
    }

    /// Handles the server's failure, which was relayed to the client unchanged.
    private mutating func handleFailure(_ element: Element) {
        info.authentication = .failed(condition: login?.attempts.last?.condition ?? "undefined-condition")
        negotiation.failAuthentication()
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        for inline in [LoginStep.Name.bind2, .resume] { timeline.cancel(inline) }
        finish(loginStep, .failed(condition: login?.attempts.last?.condition, "xmpptap's own login failed"))
        _ = sasl.decode(element, .recv)
    }

    // MARK: Elements of the proxy

    private static func text(_ bytes: [UInt8]) -> String { bytes.isEmpty ? "=" : Base64.encode(bytes) }

    /// A challenge or response; an empty one has no text (RFC 6120 §6.4.3).
    private static func element(_ name: String, _ uri: String, _ message: [UInt8]) -> [UInt8] {
        XMLWriter.bytes { $0.element(name, xmlns: uri, text: message.isEmpty ? "" : Base64.encode(message)) }
    }

    private static func success(_ uri: String, _ data: [UInt8]?) -> [UInt8] {
        XMLWriter.bytes { $0.element("success", xmlns: uri, text: data.map { text($0) } ?? "") }
    }

    private static func failure(_ uri: String, _ condition: SASLCondition, _ words: String?) -> [UInt8] {
        let isSASL2 = uri != Namespace.sasl.uri.description
        return XMLWriter.bytes { xml in
            xml.element("failure", xmlns: uri) {
                // The conditions are those of RFC 6120 in either profile (XEP-0388 §2.6.3).
                $0.element(condition.description, xmlns: isSASL2 ? Namespace.sasl.uri.description : nil)
                $0.element("text", isSASL2 ? [:] : ["xml:lang": "en"], text: words)
            }
        }
    }

    private func beginning(_ uri: String, _ mechanism: String, _ message: [UInt8]) -> [UInt8] {
        guard uri != Namespace.sasl.uri.description else {
            return XMLWriter.bytes {
                $0.element("auth", xmlns: uri, ["mechanism": mechanism], text: Self.text(message))
            }
        }
        let inline = negotiation.bridged?.inline ?? []
        return XMLWriter.bytes { xml in
            xml.element("authenticate", xmlns: uri, ["mechanism": mechanism]) {
                $0.element("initial-response", text: Self.text(message))
                $0.verbatim(inline)
            }
        }
    }

    /// The server's success or request for another task, with the data that authenticates the proxy to the client;
    /// without tokens.
    private static func replacing(_ data: [UInt8]?, in element: Element) -> [UInt8] {
        let uri = element.namespaceURI
        return XMLWriter.bytes { xml in
            xml.element(element.name, xmlns: uri) {
                $0.element("additional-data", text: data.map { text($0) })
                for child in element.children
                where !child.matches("additional-data", element.namespace)
                    && !BridgedOffer.isTiedToMechanism(child.namespace)
                {
                    $0.element(child, inheriting: uri)
                }
            }
        }
    }

    // MARK: Records of a login that the proxy performs: all four directions, each on its leg

    /// The key of the steps of the proxy's own login.
    private static let ownKey = "server"

    /// Sends a message of the login to the client, as its server would.
    mutating func answer(_ bytes: [UInt8]) {
        guard let element = say(bytes, to: .client), let step = decodeStep(element, .recv) else { return }
        record(bytes, step, .client)
        noteTimeline(step, element)
        guard step.kind == .failure else { return }
        login?.observe(.refusedHere(bindings: negotiation.bridged?.bridge.client?.bindings.map(\.type) ?? []))
        info.authentication = .failed(condition: step.condition ?? "undefined-condition")
        negotiation.failAuthentication()
    }

    /// Sends a message of the login to the server, as its client would: `isOwn` for the proxy's own login, else for the
    /// client.
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

    /// Records the server's message to the proxy.
    private mutating func recordOwn(_ event: StreamEvent, _ element: Element, _ acts: [SASLBridge.Act]) {
        let step = decodeOwn(element, .recv)
        var record = context.makeRecord(event, .recv, .element, level: .info, part: .sasl)
        record.sasl = step?.details
        let words = step?.text.map { Prose(tools.redactor.disclose(text: $0)) }
        // The answer to an aborted login is not reported as a failure.
        if let step, step.kind == .failure, !acts.isEmpty {
            record.level = .error
            record.condition = step.condition
            record.code = Record.Code.saslFailure
            record.message = words
        }
        context.emit(consume record)
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

    /// Sends an element from xmpptap to a peer; returns it as the peer will read it.
    private mutating func say(_ bytes: [UInt8], to leg: Leg) -> Element? {
        context.outlet.answer(bytes, to: leg)
        return tools.elements.read(bytes.span)
    }

    private mutating func record(_ bytes: [UInt8], _ step: AuthenticationStep, _ leg: Leg) {
        var record = context.makeRecord(.element, .info, part: .sasl)
        record.origin = .tap
        record.direction = leg.inbound.opposite
        record.leg = leg
        record.epoch = context.directions[leg.inbound.opposite].decoder.epoch
        record.length = UInt64(bytes.count)
        record.sasl = step.details
        if step.kind == .failure {
            record.level = .error
            record.condition = step.condition
            record.code = Record.Code.saslFailure
            record.message = step.text.map { Prose($0) }
        }
        record.xml = context.compose(bytes)
        record.name = record.xml.map { context.outlet.elementName(in: $0) }
        context.emit(consume record)
    }

    // MARK: Remarks

    mutating func tell(_ remark: SASLBridge.Remark) {
        switch remark {
        case .unknownAccount(let user, isBound: true):
            login?.observe(.missedAccount)
            tell(
                .error,
                "account-missing",
                "\(account(user)) is not in the accounts file, and its login uses channel binding to xmpptap's TLS "
                    + "connection; login refused",
                .addAccount
            )
        case .unknownAccount(let user, isBound: false):
            tell(.info, "login-not-ended", "\(account(user)) is not in the accounts file; login relayed unchanged")
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
                "the server refused xmpptap's own login for \(account(user))",
                .usual(.ownLoginRefused)
            )
        case .ownLoginFailed(let words, let user, let isServerAtFault):
            login?.observe(.ownFailure(Prose(words), isServerUnproven: isServerAtFault))
            tell(
                .error,
                "own-login-failed",
                "xmpptap gave up the login for \(user.isEmpty ? "the client" : account(user)): \(words)"
            )
        case .noMechanism(let list):
            tell(
                .error,
                "own-login-failed",
                "the server offers no mechanism that xmpptap can use (\(list.joined(separator: ", ")))",
                .offerMechanism
            )
        case .noKeys(let mechanism, let has, let user):
            let base = BridgedOffer.base(of: mechanism)
            tell(
                .error,
                "client-login-refused",
                "\(account(user)) has no stored key for \(base), but for \(has.joined(separator: ", ")), and its client uses "
                    + "\(mechanism); login refused",
                .addKey(mechanism: base)
            )
        case .clientRefused(let words, let user):
            tell(
                .error,
                "client-login-refused",
                "xmpptap refused the client's login"
                    + "\(user.map { " for \(account($0))" } ?? ""): \(words)"
            )
        }
    }

    /// Logs the client's requests that are not relayed, because they depend on the mechanism.
    private mutating func tellRefused() {
        guard let bridged = negotiation.bridged, !bridged.refusedInline.isEmpty else { return }
        let names = bridged.refusedInline.joined(separator: ", ")
        bridged.refusedInline = []
        tell(.info, "inline-refused", "not relayed, because the server would bind it to xmpptap's own login: \(names)")
    }

    private mutating func tell(_ level: Level, _ code: String, _ words: Prose, _ remedy: Remedy? = nil) {
        note(level == .error ? .error : .note, level, code: code, words, part: .sasl, remedy: remedy)
    }

    private func account(_ user: String) -> String {
        let name = tools.redactor.disclose(user: user, at: info.domain)
        guard let domain = info.domain, !name.contains("@") else { return name }
        return "\(name)@\(tools.redactor.disclose(address: domain))"
    }
}
