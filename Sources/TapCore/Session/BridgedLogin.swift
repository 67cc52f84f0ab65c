internal import TapRecord
import TapStreamManagement
import XMPPCore

/// A login that xmpptap performs itself, instead of relaying the SASL messages of the client and the server. Passes
/// these messages to the ``SASLBridge``, and performs the actions that it returns.
///
/// A class, so that the state can be freed when the session is open.
final class BridgedLogin {
    private var bridge: SASLBridge
    /// The XML namespace of the login whose step another thread is computing; nil if none is being computed.
    private var computing: String?
    /// Whether the client is held until the server's features arrive, which determine its permitted mechanisms.
    private var awaitsFeatures = false
    /// The epoch of the client's stream in which xmpptap answered its login.
    private(set) var endedEpoch: Int?
    /// The inline requests of a SASL2 client, as relayed to the server.
    private var inline: [UInt8] = []
    /// The names of the inline requests that are not relayed; empty after they are logged.
    private var refusedInline: [String] = []
    /// Decodes xmpptap's own login to the server.
    private var ownLogin = SASLDecoder()

    /// The timeline key for the steps of xmpptap's login to the server, which can run at the same time as the client's
    /// login.
    private static let ownKey = "server"

    init(_ authenticator: any Authenticator) { bridge = SASLBridge(authenticator) }

    /// Whether xmpptap performs the pending login, or the next one.
    var performsLogin: Bool { bridge.performsLogin }

    /// Whether a step is being computed on another thread.
    var isComputing: Bool { computing != nil }

    /// The channel binding types of the client's TLS connection.
    var clientBindings: [String] { bridge.client?.bindings.map(\.type) ?? [] }

    /// Discards the offer that the server made before TLS.
    func reset() { bridge.reset() }

    /// Stores the channel bindings of a leg on which TLS is established.
    func secure(_ leg: Leg, _ secured: SecuredLeg?, isServerVerified: Bool) {
        switch leg {
        case .client: bridge.client = secured
        case .server: bridge.server = secured
        }
        bridge.isServerVerified = isServerVerified
    }

    // MARK: Features

    /// Returns the offer to the client; nil if xmpptap does not perform the login, or supports none of the server's
    /// mechanisms.
    func makeOffer(_ offer: StreamFeatures, _ context: borrowing SessionContext) -> BridgedOffer? {
        guard context.negotiation.isOpening, context.info.kind == .client else { return nil }
        return BridgedOffer(offer, bridge.authenticator, client: bridge.client)
    }

    /// Holds a client until the features arrive, because they determine its permitted mechanisms. A client with cached
    /// features does not wait for them itself (XEP-0388 §2.2).
    func handleHeader(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        // Streams before version 1.0 have no features (RFC 6120 §4.7.5).
        switch direction {
        case .send where event.head.version != nil: _ = awaitFeatures(&context)
        case .recv where event.head.version == nil: stopAwaiting(&context)
        default: break
        }
    }

    /// Holds a client after its header; returns false, without holding it, if xmpptap awaits no features.
    func awaitFeatures(_ context: inout SessionContext) -> Bool {
        guard context.negotiation.isOpening, context.negotiation.asymmetric == nil, context.info.kind == .client else {
            return false
        }
        awaitsFeatures = true
        context.hold(.send)
        return true
    }

    /// Releases a client that waited for features.
    func stopAwaiting(_ context: inout SessionContext) {
        guard awaitsFeatures else { return }
        awaitsFeatures = false
        if context.directions.send.isHeld { context.release(.send) }
    }

    /// Stores the offer to the client that results from the server's features, and reports if xmpptap supports none of
    /// the server's mechanisms.
    func store(_ offer: StreamFeatures, _ context: inout SessionContext) {
        stopAwaiting(&context)
        guard context.negotiation.isOpening else { return }
        bridge.offer = makeOffer(offer, context)
        guard bridge.offer == nil, !(offer.mechanisms + (offer.sasl2Mechanisms ?? [])).isEmpty else { return }
        context.report(
            code: "login-not-ended",
            "no mechanism that the accounts support; login relayed unchanged",
            part: .sasl
        )
    }

    // MARK: Messages

    /// Decides on an element of the login: the SASL bridge takes the next step.
    ///
    /// - Parameters:
    ///   - translated: The decision that replaces the stream management counts in the element; nil if there are none.
    ///   - client: The decoder of the client's login.
    func intercept(
        _ event: StreamEvent,
        _ direction: Direction,
        _ translated: ItemDecision?,
        _ client: SASLDecoder,
        _ reading: inout ItemReading,
        _ context: inout SessionContext
    ) -> ItemDecision? {
        guard event.item == .element, !event.isTruncated, !context.negotiation.isRefusing else { return nil }
        switch event.head.namespace.namespace {
        case .sasl, .sasl2, .sasl2Legacy: break
        default: return nil
        }
        guard var element = context.parse(direction) else { return nil }
        if case .replace(let edited) = translated,
            let read = context.tools.elements.read(edited.bytes.span, in: context.directions[direction].decoder)
        {
            element = read
        }
        let wasLoggingIn = bridge.isLoggingIn
        let actions =
            direction == .send ? actions(ofClient: element, client, context.info.domain) : actions(ofServer: element)
        guard let actions else { return nil }
        var translation: StreamManagementTranslator.Translation?
        if case .streamManagement(let found) = reading { translation = found }
        reading = .login(element, actions, wasLoggingIn: wasLoggingIn, translation)
        // The server's failure is relayed to the client unchanged.
        return actions.contains(.passOn) || actions.contains(.fail) ? nil : .answer
    }

    /// Drops white space that the client sends after its last login message: the stream has ended, and white space must
    /// not precede the XML declaration of the next stream. go-sendxmpp ends each element with a line feed.
    static func interceptWhitespace(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: borrowing SessionContext
    ) -> ItemDecision? {
        guard event.item == .whitespace, direction == .send, case .restarting(event.epoch) = context.negotiation else {
            return nil
        }
        return .answer
    }

    private func actions(ofClient element: Element, _ client: SASLDecoder, _ domain: String?) -> [SASLBridge.Action]? {
        // A copy of the decoder finds the user in the first message; the session decodes the message again when it is
        // recorded.
        var peek = client
        let isSASL2 = element.namespace.isSASL2
        switch element.name {
        case "auth" where !isSASL2, "authenticate" where isSASL2:
            _ = peek.decode(element, .send)
            inline = isSASL2 ? BridgedLoginElements.inline(of: element) : []
            refusedInline = element.children.filter { BridgedOffer.isTiedToMechanism($0.namespace) }.map(\.name)
            let text =
                isSASL2
                ? element.childText("initial-response", element.namespace).map { $0.isEmpty ? "=" : $0 } : element.text
            return bridge.begin(
                element.attribute("mechanism") ?? "",
                isSASL2: isSASL2,
                SASLMessage.read(Array((text ?? "").utf8).span),
                user: peek.user,
                domain: domain
            )
        case "response":
            _ = peek.decode(element, .send)
            return bridge.receiveFromClient(SASLMessage.read(Array(element.text.utf8).span), user: peek.user)
        case "abort": return bridge.clientAborts()
        default: return nil
        }
    }

    private func actions(ofServer element: Element) -> [SASLBridge.Action]? {
        func message(_ text: String?) -> SASLMessage.Text { SASLMessage.read(Array((text ?? "").utf8).span) }
        let data = element.namespace.isSASL2 ? element.childText("additional-data", element.namespace) : element.text
        switch element.name {
        case "challenge": return bridge.receiveFromServer(message(element.text))
        case "success": return bridge.serverSucceeds(message(data))
        case "continue" where element.namespace.isSASL2:
            return bridge.serverSucceeds(message(data), isOver: false)
        case "failure": return bridge.serverFails()
        default: return nil
        }
    }

    // MARK: Actions

    /// Stores that xmpptap answers an element of the client in this stream.
    func answers(_ event: StreamEvent) { endedEpoch = event.epoch }

    /// Records an element of the server's login, which is not relayed unchanged.
    func recordOwn(
        _ event: StreamEvent,
        _ element: Element,
        _ actions: [SASLBridge.Action],
        _ context: inout SessionContext
    ) {
        let step = ownLogin.decode(element, .recv)
        var record = context.makeRecord(event, .recv, .element, level: .info, part: .sasl)
        record.sasl = step?.details
        let text = step?.text.map { Prose(context.tools.redactor.disclose(text: $0)) }
        // After the client aborted, the server's answer is not reported as a failure.
        if let step, step.kind == .failure, !actions.isEmpty {
            record.level = .error
            record.condition = step.condition
            record.code = Record.Code.saslFailure
            record.message = text
        }
        context.emit(consume record)
        guard let step, !actions.isEmpty else { return }
        context.login?.observe(.ownStep(step, text: text))
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        var details: Attributes = ["phase": .string(step.kind.rawValue)]
        details["mechanism"] = step.details["mechanism"]
        let outcome: LoginStep.Outcome = step.kind == .failure ? .failed(condition: step.condition, text) : .ok
        context.finishStep(loginStep, key: Self.ownKey, outcome, details: details)
    }

    /// Handles the result of a step that another thread computed, and resumes both directions. Returns the resulting
    /// actions, and the XML namespace of the login.
    func handle(_ step: SlowStep, _ context: inout SessionContext) -> (actions: [SASLBridge.Action], uri: String)? {
        guard let uri = computing.take() else { return nil }
        let actions = bridge.computed(step)
        context.release(.send)
        context.release(.recv)
        return (actions, uri)
    }

    /// Performs an action.
    ///
    /// - Parameters:
    ///   - uri: The XML namespace of the login, SASL or SASL2.
    ///   - element: The server's element; nil if the action results from a computed step.
    func perform(
        _ act: SASLBridge.Action,
        _ uri: String,
        _ element: Element?,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        switch act {
        case .passOn: return []
        case .succeed(let data):
            // The server's success is sent to the client with other data. After it, the client opens a new stream; with
            // SASL2, it reads the results of its inline requests.
            guard let element else { return [] }
            let bytes =
                element.namespace.isSASL2
                ? BridgedLoginElements.replacing(data, in: element) : BridgedLoginElements.success(uri, data)
            return [.answerLogin(bytes), .authenticated(element)]
        case .proceed(let data):
            return element.map { [.answerLogin(BridgedLoginElements.replacing(data, in: $0))] } ?? []
        case .fail: return element.map { [.refusedLogin($0)] } ?? []
        case .compute:
            guard let work = bridge.work else { return [] }
            computing = uri
            context.outlet.request(.compute(work))
        case .challenge(let bytes): return [.answerLogin(BridgedLoginElements.element("challenge", uri, bytes))]
        case .refuse(let condition, let text):
            return [.answerLogin(BridgedLoginElements.failure(uri, condition, text))]
        case .begin(let mechanism, let message):
            send(BridgedLoginElements.beginning(uri, mechanism, message, inline), &context)
        case .beginForClient(let mechanism, let message):
            return [.relayLogin(BridgedLoginElements.beginning(uri, mechanism, message, inline))]
        case .respond(let bytes): send(BridgedLoginElements.element("response", uri, bytes), &context)
        case .abort: send(XMLWriter.bytes { $0.element("abort", xmlns: uri) }, &context)
        case .end(let condition, let text, let isServerAtFault):
            context.login?.observe(.refused(Prose(text)))
            context.refuse(condition, text, fault: isServerAtFault ? .recv : .send)
        case .remark(let remark):
            if case .ownLogin = remark { recordRefusedInline(&context) }
            context.record(remark)
        }
        return []
    }

    /// Sends a message of xmpptap's login to the server.
    private func send(_ bytes: [UInt8], _ context: inout SessionContext) {
        guard let element = context.sendLogin(bytes, to: .server) else { return }
        if element.isNamed("auth") || element.isNamed("authenticate") {
            ownLogin = SASLDecoder(policy: context.options.redaction)
        }
        guard let step = ownLogin.decode(element, .send) else { return }
        context.recordLogin(bytes, step, .server)
        context.login?.observe(.ownStep(step, text: nil))
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        context.beginStep(loginStep, key: Self.ownKey, awaits: .server, details: ["leg": .string(Self.ownKey)])
    }

    /// Logs the client's inline requests that are not relayed, because they depend on the mechanism.
    private func recordRefusedInline(_ context: inout SessionContext) {
        guard !refusedInline.isEmpty else { return }
        let names = refusedInline.joined(separator: ", ")
        refusedInline = []
        context.report(
            .note,
            .info,
            code: "inline-refused",
            "not relayed, because the server would bind it to xmpptap's own login: \(names)",
            part: .sasl
        )
    }

    /// Holds the client while xmpptap logs in, and both directions while another thread computes a step.
    static func holdClient(wasLoggingIn: Bool, _ context: inout SessionContext) {
        let bridged = context.negotiation.bridged
        if bridged?.isComputing == true {
            context.hold(.send)
            context.hold(.recv)
        } else if bridged?.bridge.isLoggingIn == true {
            context.hold(.send)
        } else if wasLoggingIn {
            // A client that is held for another reason, such as a request for TLS, stays held.
            context.release(.send)
        }
    }
}
