internal import TapRecord
import XMPPCore

/// Follows a login: SASL (RFC 6120 §6), SASL2 (XEP-0388), the handshake of a component (XEP-0114), and the requests of
/// a client until its session is open.
struct Authentication {
    /// Decoder of the SASL messages of both directions.
    private(set) var decoder: SASLDecoder
    /// The authorization identity that the client has named in this attempt.
    private var authorization: String?
    /// In a recorded session, the SASL details from the record of the current item, decoded when the item was relayed.
    private var recorded: Attributes?

    private static let resource = Array("resource".utf8)

    init(_ options: SessionOptions) { decoder = SASLDecoder(policy: options.redaction) }

    /// Stores the details of the next recorded item.
    mutating func apply(_ details: Attributes?) { recorded = details }

    /// Decodes the authentication step of an element, and stores its facts in the session.
    mutating func decode(
        _ element: Element,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> AuthenticationStep? {
        if let user = recorded?["user"] { decoder.apply(user: user.text) }
        guard var step = decoder.decode(element, direction) else { return nil }
        if context.info.mechanism != decoder.mechanism { context.info.bindingFlag = nil }
        if let flag = step.details["channel_binding_flag"] { context.info.bindingFlag = flag.text }
        context.info.mechanism = decoder.mechanism
        if let user = decoder.user { context.info.user = user }
        // For a redacted message, use the recording's details, which were decoded when the message was relayed.
        if step.details["redacted"] != nil, let recorded {
            step.details = recorded
            if let user = recorded["user"] { context.info.user = user.text }
        }
        if step.kind == .begin { (authorization, context.info.account) = (nil, nil) }
        if let name = step.details["authzid"] { authorization = name.text }
        if step.kind == .success { context.info.account = account(at: context.info.domain) }
        return step
    }

    /// Returns the account to which the client's messages log in: the authorization identity, or the user name at the domain of the
    /// stream (RFC 6120 §6.3.8); nil if they name none, or one of another domain.
    private func account(at domain: String?) -> String? {
        guard let domain, let name = authorization ?? decoder.user else { return nil }
        let address = Address(name.utf8.contains(0x40) ? name : "\(name)@\(domain)").bare
        guard let jid = address.jid, jid.asciiDomain == Address(domain).jid?.asciiDomain else { return nil }
        return address.comparableBare
    }

    // MARK: SASL

    /// Handles a SASL message that was relayed, or that xmpptap answers.
    ///
    /// - Parameter element: The element, if it has been parsed.
    mutating func handle(
        _ event: StreamEvent,
        _ direction: Direction,
        parsed element: Element? = nil,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        let isRequested = decoder.isUnderWay
        guard let element = element ?? context.parse(direction), let step = decode(element, direction, &context) else {
            context.recordItem(event, direction, .element, level: .info, part: .sasl)
            return []
        }
        context.record(step, event, direction)
        // Packets, captures and logs may lack the client's request.
        if step.kind == .success, direction == .recv, !isRequested, context.isLive {
            let message: Prose = "unsolicited SASL response from the server: the client has not requested a login"
            context.report(code: "unsolicited-success", message, direction: .recv, part: .sasl)
        }
        switch step.kind {
        case .begin:
            context.info.authentication = .none
            context.negotiation.beginAuthentication()
        case .failure:
            context.info.authentication = .failed(condition: step.condition ?? "undefined-condition")
            context.negotiation.failAuthentication()
        default: break
        }
        let effects = context.observe(step, element)
        guard direction == .recv else { return effects }
        if step.kind == .failure { context.recordBindingOutcome(accepted: false) }
        return step.kind == .success ? effects + context.authenticate(element) : effects
    }

    // MARK: Logins that xmpptap performs itself

    /// Sends a message of the login to the client, in the server's place.
    mutating func answer(_ bytes: [UInt8], _ context: inout SessionContext) -> [SessionEffect] {
        guard let element = context.sendLogin(bytes, to: .client), let step = decode(element, .recv, &context) else {
            return []
        }
        context.recordLogin(bytes, step, .client)
        let effects = context.observe(step, element)
        guard step.kind == .failure else { return effects }
        context.login?.observe(.refusedHere(bindings: context.negotiation.bridged?.clientBindings ?? []))
        context.info.authentication = .failed(condition: step.condition ?? "undefined-condition")
        context.negotiation.failAuthentication()
        return effects
    }

    /// Sends the client's login message to the server. It was decoded when it arrived.
    func relay(_ bytes: [UInt8], _ context: inout SessionContext) {
        guard let element = context.sendLogin(bytes, to: .server) else { return }
        var copy = decoder
        if let step = copy.decode(element, .send) { context.recordLogin(bytes, step, .server) }
    }

    /// Handles the server's failure, which is relayed to the client unchanged.
    mutating func fail(_ element: Element, _ context: inout SessionContext) {
        let condition = context.login?.attempts.last?.condition
        context.info.authentication = .failed(condition: condition ?? "undefined-condition")
        context.negotiation.failAuthentication()
        for inline in [LoginStep.Name.bind2, .resume] { context.timeline.cancel(inline) }
        let loginStep: LoginStep.Name = element.namespace.isSASL2 ? .sasl2 : .sasl
        context.finishStep(loginStep, .failed(condition: condition, "xmpptap's own login failed"))
        _ = decoder.decode(element, .recv)
    }

    // MARK: Requests

    /// Returns the purpose of a request, and adds the step that it begins to the timeline.
    mutating func purpose(
        of event: StreamEvent,
        _ direction: Direction,
        _ record: inout Record,
        _ context: inout SessionContext
    ) -> IQTracker.Purpose {
        let namespace = event.head.payloadNamespace.namespace
        if namespace == .ping { return .ping }
        // The client sends this request after it has bound a resource, so the session is already open (RFC 3921 §3).
        if namespace == .session, direction == .send {
            context.beginStep(.session, awaits: .server)
            return .session
        }
        guard direction == .send, context.info.opened == nil, !event.isTruncated else { return .ordinary }
        switch namespace {
        case .bind:
            // Most clients let the server choose the resource; then the request need not be parsed.
            let isChosen = context.directions.bytes(.send).contains(Self.resource.span)
            let bind =
                isChosen ? context.tools.elements.read(context.directions.send.decoder)?.child("bind", .bind) : nil
            context.login?.observe(.requestedResource(bind?.childText("resource", .bind)))
            context.beginStep(.bind, awaits: .server)
            return .bind
        case .register:
            let isSet = event.head.type.map { context.directions.bytes(.send).slice($0.range).equals("set") } ?? false
            context.beginStep(.registration, awaits: .server, details: ["phase": isSet ? "submit" : "form"])
            return .registration
        case .iqAuth: return legacyPurpose(direction, &record, &context)
        default: return .ordinary
        }
    }

    private mutating func legacyPurpose(
        _ direction: Direction,
        _ record: inout Record,
        _ context: inout SessionContext
    ) -> IQTracker.Purpose {
        guard let iq = context.parse(direction), let step = decode(iq, direction, &context),
            let user = context.info.user
        else {
            context.beginStep(.legacyAuthentication, awaits: .server, details: ["phase": "fields"])
            return .legacyFields
        }
        var details: Attributes = ["phase": "login"]
        details["method"] = step.details["method"]
        context.beginStep(.legacyAuthentication, awaits: .server, details: details)
        record.part = .sasl
        record.sasl = step.details
        let resource = iq.firstChild?.childText("resource", .iqAuth) ?? ""
        context.login?.observe(.requestedResource(resource))
        return .legacyAuthentication(jid: context.info.domain.map { "\(user)@\($0)/\(resource)" })
    }

    // MARK: Components

    /// Handles `<handshake/>`: the component's hash, or the server's consent. A server refuses with a stream error
    /// instead.
    mutating func handleHandshake(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        let element = context.parse(direction)
        let step = element.flatMap { decode($0, direction, &context) }
        var record = context.makeRecord(event, direction, .element, level: .info, part: .sasl)
        record.sasl = step?.details
        // The component's handshake proves nothing until the server has accepted it.
        record.message =
            direction == .send
            ? "component sent its handshake (hash of stream ID and secret)" : "server accepted the handshake"
        context.emit(consume record)
        guard direction == .recv else {
            context.negotiation.beginAuthentication()
            context.beginStep(.handshake, awaits: .server)
            return []
        }
        context.info.authentication = .succeeded
        context.info.jid = context.info.domain
        context.finishStep(.handshake, .ok)
        return [.open("component accepted")]
    }

    // MARK: Stream errors

    /// Handles an item in the namespace of streams. A stream error ends the login, and states why the session ends.
    ///
    /// - Parameter unheard: The unanswered request of the direction's sender, if any.
    mutating func handleStreamError(
        _ event: StreamEvent,
        _ direction: Direction,
        _ unheard: Liveness.Finding?,
        _ context: inout SessionContext
    ) {
        guard let element = context.parse(direction),
            let condition = SessionContext.streamErrorCondition(element)
        else {
            return context.recordItem(event, direction, .element, level: .info)
        }
        context.judge(streamError: condition, element, direction, unheard)
        let text = recordStreamError(condition, element, event, direction, &context)
        context.reportHandledCount(element, direction)
        context.failStep(condition: condition, text)
    }

    /// Records a stream error, and returns its text.
    private mutating func recordStreamError(
        _ condition: String,
        _ element: Element,
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> Prose? {
        var record = context.makeRecord(event, direction, .element, level: .error)
        record.condition = condition
        record.code = "stream-error"
        record.summary = "closes the stream"
        // A wrong component secret is answered with a stream error (XEP-0114 §3).
        if let step = decode(element, direction, &context) {
            record.sasl = step.details
            context.info.authentication = .failed(condition: condition)
        }
        let text = element.childText("text", .streamErrors).map { Prose(context.tools.redactor.disclose(text: $0)) }
        record.message = text
        context.emit(consume record)
        return text
    }
}
