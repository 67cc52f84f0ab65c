internal import TapRecord
import XMPPCore

// Elements other than SASL that belong to a login: requests of a client, the handshake of a component, stream errors.
extension Authentication {
    private static let resource = Array("resource".utf8)

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
        // It is sent when the session is bound, and so open (RFC 3921 §3).
        if namespace == .session, direction == .send {
            context.beginStep(.session, awaits: .server)
            return .session
        }
        guard direction == .send, context.info.opened == nil, !event.isTruncated else { return .ordinary }
        switch namespace {
        case .bind:
            // Most clients let the server choose; then the request need not be read.
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

    /// Handles the result of a request with this purpose.
    static func handleResult(
        _ purpose: IQTracker.Purpose,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        switch purpose {
        case .ordinary, .ping: return []
        case .registration: context.finishStep(.registration, .ok)
        case .legacyFields: context.finishStep(.legacyAuthentication, .ok)
        case .session: context.finishStep(.session, .ok)
        case .bind:
            guard let jid = context.parse(direction)?.child("bind", .bind)?.childText("jid", .bind) else { return [] }
            context.info.jid = jid
            context.finishStep(.bind, .ok)
            return [.open("bound")]
        case .legacyAuthentication(let jid):
            context.info.jid = jid
            context.info.authentication = .succeeded
            context.finishStep(.legacyAuthentication, .ok)
            return [.open("logged in by legacy authentication")]
        }
        return []
    }

    /// Handles the error that answers a request with this purpose.
    static func handleError(
        _ error: IQTracker.Failure,
        _ purpose: IQTracker.Purpose,
        _ direction: Direction,
        _ context: inout SessionContext
    ) {
        switch purpose {
        case .legacyAuthentication:
            context.info.authentication = .failed(condition: error.code ?? "undefined-condition")
            context.finishStep(.legacyAuthentication, .failed(condition: error.code, error.text))
        case .legacyFields: context.finishStep(.legacyAuthentication, .failed(condition: error.code, error.text))
        case .registration: context.finishStep(.registration, .failed(condition: error.code, error.text))
        case .session: context.finishStep(.session, .failed(condition: error.condition, error.text))
        case .bind:
            context.finishStep(.bind, .failed(condition: error.condition, error.text))
            context.note(
                .error,
                .error,
                code: "bind-failed",
                "the server refused the resource: \(error.code ?? "no condition")",
                direction: direction
            )
        case .ping, .ordinary: break
        }
    }

    // MARK: Components

    /// `<handshake/>`: the component's hash, or the server's consent. A refusal is a stream error.
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

    /// Records a stream error, and returns its text.
    mutating func recordStreamError(
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
