internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

// Commands to a session.
extension Route {
    static func commands(_ context: ControlContext) -> [Route] {
        let sessions = context.sessions
        return [
            Route(method: .post, path: "/sessions/{id}/inject") { request in
                let number = try request.number("id")
                // JSON escapes may double the size of a stanza.
                let body = try await request.body(limit: 2 * context.itemLimit + 64 << 10)
                return try await inject(try InjectCommand(body), into: number, sessions)
            },
            Route(method: .post, path: "/sessions/{id}/check") { request in
                let number = try request.number("id")
                let command = try InjectCommand(try await request.body(limit: 2 * context.itemLimit + 64 << 10))
                let fault = try await sessions.inspect(number) { session, _ in
                    session.fault(in: try command.injection(session, 0))
                }
                return .json { line in
                    line.field("valid", fault == nil)
                    guard let fault else { return }
                    line.field("detail", "\(fault)")
                    if let offset = fault.offset { line.field("offset", offset) }
                }
            },
            Route(method: .post, path: "/sessions/{id}/ping") { request in
                let number = try request.number("id")
                let body = try await request.body()
                try body.allow("to", "timeout_ns")
                let leg = try body.leg()
                let timeout = try body.timeout()
                let (injection, outcomes) = try await sessions.inject(into: number) { session, place in
                    let ping = session.info.ping(leg, id: session.injectedID(place))
                    return Injection(ping, to: leg, number: place, swallowsAnswer: true, timeout: timeout)
                }
                let result = try await result(of: injection, outcomes)
                guard case .answered(let answer, let roundTrip) = result.outcome else { throw Problem.over }
                return .json { line in
                    line.field("round_trip_ns", Int(roundTrip))
                    line.field("type", orNull: StanzaFacts(answer)?.type)
                }
            },
            Route(method: .delete, path: "/sessions/{id}") { request in
                try await sessions.close(
                    request.number("id"),
                    .undefinedCondition,
                    "The session was closed by the operator of xmpptap."
                )
                return Response(status: .noContent)
            },
        ]
    }

    private static func inject(
        _ command: InjectCommand,
        into number: UInt64,
        _ sessions: SessionDirectory
    ) async throws -> Response {
        let began = ContinuousClock.now
        let (injection, outcomes) = try await sessions.inject(into: number) { session, place in
            try command.injection(session, place)
        }
        let result = try await result(of: injection, outcomes)
        let id = StanzaFacts(injection.item)?.id
        return .json { line in
            switch result.outcome {
            case .answered(let answer, let roundTrip):
                line.field("outcome", literal: "answered")
                line.field("id", orNull: id)
                line.field("answer", answer.span.string())
                line.field("type", orNull: StanzaFacts(answer)?.type)
                line.field("round_trip_ns", Int(roundTrip))
            case .sent, .failed:
                line.field("outcome", literal: "sent")
                line.field("id", orNull: id)
                line.field("delay_ns", Int(began.duration(to: result.sent) / .nanoseconds(1)))
            }
        }
    }

    /// Waits for the last outcome of an injection.
    private static func result(
        of injection: Injection,
        _ outcomes: SessionDirectory.Outcomes
    ) async throws -> (outcome: InjectionOutcome, sent: ContinuousClock.Instant) {
        var sent = ContinuousClock.now
        for await outcome in outcomes {
            switch outcome {
            case .sent:
                sent = .now
                if !injection.swallowsAnswer { return (outcome, sent) }
            case .answered: return (outcome, sent)
            case .failed(let fault): throw Problem(fault)
            }
        }
        try Task.checkCancellation()
        throw Problem.over
    }
}

/// The body of `POST /sessions/{id}/inject`.
private struct InjectCommand: Sendable {
    private enum Item: Sendable {
        case stanza([UInt8])
        case message(String, peer: JID, from: JID?)
    }

    private let leg: Leg
    private let item: Item
    private let isRaw: Bool
    private let awaitsAnswer: Bool?
    private let timeout: Int64

    init(_ body: JSONObject) throws(Problem) {
        try body.allow("to", "stanza", "base64", "message", "raw", "await_answer", "timeout_ns")
        leg = try body.leg()
        isRaw = try body.bool("raw") ?? false
        awaitsAnswer = try body.bool("await_answer")
        timeout = try body.timeout()
        let bytes = try Self.bytes(body)
        switch (bytes, try body.object("message")) {
        case (let stanza?, nil): item = .stanza(stanza)
        case (nil, let message?):
            try message.allow("body", "peer", "from")
            item = .message(
                try message.required("body"),
                peer: try Problem.jid(try message.required("peer"), "peer"),
                from: try message.text("from", orNull: true).map { text throws(Problem) in try Problem.jid(text, "from")
                }
            )
        default: throw .refused("either \"stanza\" or \"message\" is needed")
        }
    }

    /// Returns the stanza; bytes that are not UTF-8 need `raw`.
    private static func bytes(_ body: JSONObject) throws(Problem) -> [UInt8]? {
        guard let base64 = try body.text("base64") else { return try body.text("stanza").map { Array($0.utf8) } }
        guard try body.bool("raw") == true, !body.has("stanza"), let bytes = Base64.decode(base64) else {
            throw .refused("\"base64\" is the raw bytes in base64, instead of \"stanza\" and with \"raw\"")
        }
        return bytes
    }

    func injection(_ session: borrowing Session, _ number: UInt64) throws -> Injection {
        let bytes =
            switch item {
            case .stanza(let bytes): bytes
            case .message(let body, let peer, let from):
                session.info.message(body, to: leg, peer: peer, from: from, id: session.injectedID(number))
            }
        let awaits = awaitsAnswer ?? (!isRaw && StanzaFacts(bytes)?.isRequest == true)
        return Injection(bytes, to: leg, number: number, isRaw: isRaw, swallowsAnswer: awaits, timeout: timeout)
    }
}

/// Attributes from the head of a stanza.
private struct StanzaFacts {
    let id: String?
    let type: String?
    /// Whether the stanza is an iq request.
    let isRequest: Bool

    /// Parses a stanza; nil if it is not one.
    init?(_ stanza: [UInt8]) {
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(Self.header.span)
        _ = decoder.next()
        decoder.append(stanza.span)
        while let event = decoder.next() {
            guard case .item(.element) = event.kind else { continue }
            let bytes = decoder.bytes
            func text(_ attribute: StanzaHead.Attribute?) -> String? {
                attribute.map { bytes.slice($0.range).string() }
            }
            (id, type) = (text(event.head.id), text(event.head.type))
            isRequest = event.head.kind == .iq && (type == "get" || type == "set")
            return
        }
        return nil
    }

    private static let header = Array(
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>".utf8
    )
}

extension InjectionFault {
    /// The place of the mistake within the stanza, in bytes; nil if it has none.
    fileprivate var offset: Int? {
        switch self {
        case .malformed(let fault): Int(clamping: fault.offset)
        case .severalItems(let offset): offset
        default: nil
        }
    }
}

extension Problem {
    fileprivate static let over = Problem(.sessionEnded, "the session ended before the answer arrived")

    init(_ fault: InjectionFault, _ failure: String = "not injected") {
        let (code, advice): (ControlProblem, String?) =
            switch fault {
            case .notOpen: (.notReady, "wait until its phase is ready")
            case .ended: (.sessionEnded, nil)
            case .notDecoded, .notCounted: (.notDecoded, nil)
            case .noBoundary: (.noBoundary, "use a longer timeout")
            case .noAnswer: (.noAnswer, "use a longer timeout")
            case .tooManyWaiting: (.tooManyWaiting, "try again later")
            case .notRequest: (.notRequest, "do not wait for its answer")
            case .tooLarge, .overReceiverLimit, .malformed, .incomplete, .severalItems, .streamEnd, .notStanza,
                .notAddress, .noAddress, .foreignSender, .foreignDomain, .otherKind:
                (.invalidStanza, nil)
            }
        self.init(code, "\(fault == .noAnswer ? "" : "\(failure): ")\(fault)", advice: advice)
    }
}
