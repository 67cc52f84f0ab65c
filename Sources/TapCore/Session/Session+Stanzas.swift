internal import TapRecord
import XMPPCore

// Stanzas: counting, pairing, and those of a login.
extension Session {
    mutating func handleStanza(_ event: StreamEvent, _ direction: Direction) {
        let head = event.head
        context.info.count(head.kind, direction)
        if direction == .send { injector.pings.heard(at: context.now.monotonic) }
        let type = type(of: head, direction)
        switch type {
        case .error where !event.isTruncated: handleErrorStanza(event, direction)
        case .request where head.kind == .iq: handleRequest(event, direction)
        case .result where head.kind == .iq:
            let request = takeRequest(event, direction)
            var record = context.makeRecord(event, direction, .stanza, level: .info, answering: request)
            note(request, in: &record)
            context.emit(consume record)
            if let request { handleResult(event, direction, request) }
            roster.observe(event, direction, isPush: false, &context)
        default:
            context.recordItem(event, direction, .stanza, level: .info)
            if head.kind == .presence, head.type != nil { roster.observePresence(event, direction, &context) }
        }
        if direction == .send { software.observe(event, isResult: type == .result, &context) }
    }

    private enum StanzaType { case request, result, error, other }

    private func type(of head: StanzaHead, _ direction: Direction) -> StanzaType {
        guard let range = head.type?.range else { return .other }
        let type = context.directions.bytes(direction).slice(range)
        if type.equals("get") || type.equals("set") { return .request }
        if type.equals("result") { return .result }
        return type.equals("error") ? .error : .other
    }

    private mutating func handleRequest(_ event: StreamEvent, _ direction: Direction) {
        var record = context.makeRecord(event, direction, .stanza, level: .info)
        let purpose = purpose(event, direction, &record)
        guard requests.expectsAnswers(on: context.info.kind) else { return context.emit(consume record) }
        requests.note(event.head, context.directions.bytes(direction), direction, record, purpose, context.info)
        context.emit(consume record)
        roster.observe(event, direction, isPush: true, &context)
    }

    private mutating func takeRequest(_ event: StreamEvent, _ direction: Direction) -> IQTracker.Request? {
        requests.answer(event.head, context.directions.bytes(direction), direction, context.info)
    }

    private func note(_ request: IQTracker.Request?, in record: inout Record) {
        guard let request else { return }
        record.answers = request.sequence
        record.roundTrip = context.now.monotonic - request.monotonic
    }

    private static let resource = Array("resource".utf8)

    /// The purpose of a request, for the login.
    private mutating func purpose(
        _ event: StreamEvent,
        _ direction: Direction,
        _ record: inout Record
    ) -> IQTracker.Purpose {
        if event.head.payloadNamespace.namespace == .ping { return .ping }
        // It is sent when the session is bound, and so open (RFC 3921 §3).
        if event.head.payloadNamespace.namespace == .session, direction == .send {
            context.beginStep(.session, awaits: .server)
            return .session
        }
        guard direction == .send, context.info.opened == nil, !event.isTruncated else { return .ordinary }
        switch event.head.payloadNamespace.namespace {
        case .bind:
            // Most clients let the server choose; then the request need not be read.
            let isChosen = context.directions.bytes(.send).contains(Self.resource.span)
            let bind =
                isChosen ? context.tools.elements.read(context.directions.send.decoder)?.child("bind", .bind) : nil
            context.login?.observe(.requestedResource(bind?.childText("resource", .bind)))
            context.beginStep(.bind, awaits: .server)
            return .bind
        case .register:
            context.beginStep(.registration, awaits: .server, details: ["phase": isSet(event) ? "submit" : "form"])
            return .registration
        case .iqAuth:
            guard let iq = context.parse(direction), let step = decodeStep(iq, direction), let user = context.info.user
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
        default: return .ordinary
        }
    }

    private func isSet(_ event: StreamEvent) -> Bool {
        event.head.type.map { context.directions.bytes(.send).slice($0.range).equals("set") } ?? false
    }

    private mutating func handleResult(_ event: StreamEvent, _ direction: Direction, _ request: IQTracker.Request) {
        switch request.purpose {
        case .ordinary, .ping: break
        case .registration: context.finishStep(.registration, .ok)
        case .legacyFields: context.finishStep(.legacyAuthentication, .ok)
        case .session: context.finishStep(.session, .ok)
        case .bind:
            guard let jid = context.parse(direction)?.child("bind", .bind)?.childText("jid", .bind) else { return }
            context.info.jid = jid
            context.finishStep(.bind, .ok)
            becomeOpen("bound")
        case .legacyAuthentication(let jid):
            context.info.jid = jid
            context.info.authentication = .succeeded
            context.finishStep(.legacyAuthentication, .ok)
            becomeOpen("logged in by legacy authentication")
        }
    }

    private mutating func handleErrorStanza(_ event: StreamEvent, _ direction: Direction) {
        let request = event.head.kind == .iq ? takeRequest(event, direction) : nil
        let error = context.parse(direction)?.firstChild { $0.isNamed("error") }
        let condition = error?.firstChild { $0.namespace == .stanzaErrors && !$0.isNamed("text") }?.name
        var record = context.makeRecord(event, direction, .stanza, level: .warn, answering: request)
        if case .legacyAuthentication = request?.purpose { record.level = .error }
        record.condition = condition ?? error?.attribute("code")
        record.code = "stanza-error"
        let text = context.hiddenPaths(event).isEmpty ? error?.childText("text", .stanzaErrors) : nil
        let words = text.map { Prose(context.tools.redactor.disclose(text: $0)) }
        record.message = words
        note(request, in: &record)
        context.emit(record)
        guard let request else { return }
        switch request.purpose {
        case .legacyAuthentication:
            context.info.authentication = .failed(condition: record.condition ?? "undefined-condition")
            context.finishStep(.legacyAuthentication, .failed(condition: record.condition, words))
        case .legacyFields: context.finishStep(.legacyAuthentication, .failed(condition: record.condition, words))
        case .registration: context.finishStep(.registration, .failed(condition: record.condition, words))
        case .session: context.finishStep(.session, .failed(condition: condition, words))
        case .bind:
            context.finishStep(.bind, .failed(condition: condition, words))
            context.note(
                .error,
                .error,
                code: "bind-failed",
                "the server refused the resource: \(record.condition ?? "no condition")",
                direction: direction
            )
        case .ping, .ordinary: break
        }
    }
}
