package import TapDiagnosis
package import TapRecord
internal import XMPPCore

/// An event of a BOSH session (XEP-0124) that the elements in its bodies do not show.
package enum BOSHEvent: Sendable {
    /// The first request has been sent to the server.
    case opened(BOSHOpening)
    /// The server of the first request cannot be reached, for this reason.
    case unreachable(String, ConnectionFault)
    /// A body with this condition ended the session. `uri` is the address in `see-other-uri`.
    case ended(condition: String, by: Direction, uri: String? = nil)
    /// The server answered with this HTTP status, which ends the session.
    case endedByStatus(Int)
    /// The client sent no request for this number of seconds, after which the server ends the session; or xmpptap stopped
    /// before that.
    case inactive(seconds: Int, isStopped: Bool = false)
    /// The server answered with this HTTP status; the session continues.
    case status(Int)
    /// A body with this condition that does not end the session (XEP-0124 §17.3).
    case recoverable(condition: String, Direction)
    /// The client sent the request with this rid again.
    case repeated(UInt64)
    /// The bodies of these requests, or the responses to them, were not seen.
    case missing(Direction, ClosedRange<UInt64>)
    /// The request with this rid is too far ahead of the others; with the server's condition, if it refused the request.
    case outside(UInt64, condition: String?)
    /// A body cannot be read: the code of the fault, and a human-readable clause.
    case unread(Direction, code: String, explanation: String)
    /// The bodies of this direction are compressed.
    case compressed(Direction)
}

/// The facts of the first request of a BOSH session.
package struct BOSHOpening: Sendable {
    /// The path of the request, without the query.
    package var path: String
    /// The field `Origin`: the site of the page that sends the requests; nil for clients that are not browsers.
    package var origin: String?
    /// The TLS with the client; nil without TLS.
    package var clientTLS: TLSAgreement?
    /// The TLS with the server; nil without TLS.
    package var serverTLS: TLSAgreement?
    /// Whether rules are loaded, which are not applied to BOSH. Default: false.
    package var hasRules = false

    /// Creates the facts of a request.
    package init(path: String, origin: String? = nil, clientTLS: TLSAgreement? = nil, serverTLS: TLSAgreement? = nil) {
        self.path = path
        self.origin = origin
        self.clientTLS = clientTLS
        self.serverTLS = serverTLS
    }
}

extension SessionContext {
    /// Records an event of BOSH, and stores how it ends the session.
    mutating func handle(_ event: BOSHEvent) {
        switch event {
        case .opened(let opening): opened(opening)
        case .unreachable(let reason, let fault):
            reportUnreachable(reason, fault)
            endUnconnected()
        case .ended(let condition, let direction, let uri):
            let place = uri.map { BOSHCondition.place($0) }
            let address = place.map { tools.redactor.disclose(name: $0) }
            end(condition, by: direction, "XEP-0124 §17.2", BOSHCondition.meaning(condition, address))
        case .endedByStatus(let status):
            let (condition, meaning) = BOSHCondition.ofStatus(status)
            end(condition, by: .recv, "XEP-0124 §17.1", meaning)
        case .inactive(let seconds, let isStopped):
            guard info.ending == nil else { return }
            info.ending = .unclean(leg: .client, .finished)
            info.closeReason = .idle
            let limit = isStopped ? "when xmpptap stopped" : "after which the server ends a BOSH session (XEP-0124 §10)"
            info.reason = "no request for \(seconds) s, \(limit)"
        case .status(let status):
            report(code: "bosh-status", "the server answered a BOSH request with HTTP \(status)", direction: .recv)
        case .recoverable(let condition, let direction):
            let name = tools.redactor.disclose(name: condition)
            report(code: "bosh-error", "BOSH error \(name), after which the session continues", direction: direction)
        case .repeated(let rid):
            report(
                .note,
                .verbose,
                code: "bosh-repeated",
                "the client sent request \(rid) again",
                direction: .send,
                part: .net,
                details: Self.details(rid)
            )
        case .missing(let direction, let rids):
            let what = direction == .send ? "not seen" : "not answered"
            lose(direction, code: "bosh-missing", "\(Self.requests(rids)) \(what)", Self.details(rids.lowerBound))
        case .outside(let rid, let condition):
            let refusal = condition.map { "refused by the server: \(tools.redactor.disclose(name: $0))" }
            let outcome = refusal ?? "not decoded"
            report(
                .error,
                .error,
                code: "bosh-outside-window",
                "request \(rid) is too far ahead of the others (XEP-0124 §14.2); \(outcome)",
                direction: .send,
                part: .net,
                details: Self.details(rid)
            )
        case .unread(let direction, let code, let explanation):
            lose(direction, code: code, "a BOSH body cannot be decoded: \(explanation); it is relayed unchanged")
        case .compressed(let direction):
            lose(
                direction,
                code: "bosh-compressed",
                "the BOSH bodies of the \(direction.source.name) are compressed (Content-Encoding), and are not decoded"
            )
        }
    }

    private static func requests(_ rids: ClosedRange<UInt64>) -> String {
        guard rids.lowerBound < rids.upperBound else { return "request \(rids.lowerBound) was" }
        return "requests \(rids.lowerBound) to \(rids.upperBound) were"
    }

    private static func details(_ rid: UInt64) -> Attributes { ["rid": .integer(Int64(clamping: rid))] }

    /// Records that items of a direction are not decoded.
    private mutating func lose(_ direction: Direction, code: String, _ message: Prose, _ details: Attributes? = nil) {
        login?.observe(.gap)
        outlet.count(in: nil)
        report(.error, .warn, code: code, message, direction: direction, part: .net, details: details)
    }

    // MARK: Beginning and end

    private mutating func opened(_ opening: BOSHOpening) {
        for (leg, agreement) in [(Leg.server, opening.serverTLS), (.client, opening.clientTLS)] {
            guard let agreement else { continue }
            if agreement.overlooked != nil { info.isUnverified = true }
            if leg == .client { info.hasClientTLS = true }
            record(TLSReport(opened: agreement, on: leg))
        }
        if !timeline.has(.connect) { finishStep(.connect, .ok) }
        (info.serverTLS, info.clientTLS) = (opening.serverTLS?.version, opening.clientTLS?.version)
        var details: Attributes = ["path": .string(opening.path)]
        var message: Prose = "BOSH at \(opening.path)"
        if let origin = opening.origin {
            details["origin"] = .string(origin)
            message = "\(message), requested by a page of \(origin)"
        }
        report(.session, .verbose, code: "bosh-opened", message, part: .net, details: details)
        guard opening.hasRules else { return }
        report(
            code: "bosh-rules",
            "rules are not applied to BOSH, which is only decoded; configure the client for WebSocket",
            part: .rules
        )
    }

    private mutating func end(_ condition: String, by direction: Direction, _ rule: String, _ meaning: Prose?) {
        guard info.ending == nil else { return }
        let name = BOSHCondition.isKnown(condition) ? condition : "undefined-condition"
        storeEnd(name, direction, rule, meaning)
        failStep(condition: name, meaning)
        guard .error <= options.level else { return }
        var record = makeRecord(.error, .error, part: .session)
        record.code = Self.boshEndedCode
        record.condition = name
        record.direction = direction
        record.leg = direction.source
        record.message = "the \(direction.source.name) ended the BOSH session: \(name)"
        var details: Attributes = [Self.ruleDetail: .string(rule)]
        details[Self.meaningDetail] = meaning.map { .string("\($0)") }
        record.details = details
        emit(consume record)
    }

    /// The code of the record of a condition that ends a session.
    static let boshEndedCode = "bosh-ended"
    private static let ruleDetail = "rule"
    private static let meaningDetail = "meaning"

    /// Ends the session as its record with ``boshEndedCode`` reports.
    mutating func applyBOSHEnd(_ record: Record) {
        guard info.ending == nil, let condition = record.condition, let direction = record.direction else { return }
        let meaning = (record.details?[Self.meaningDetail]?.text).map { Prose($0) }
        storeEnd(condition, direction, record.details?[Self.ruleDetail]?.text ?? "XEP-0124", meaning)
        failStep(condition: condition, meaning)
    }

    private mutating func storeEnd(_ name: String, _ direction: Direction, _ rule: String, _ meaning: Prose?) {
        info.ending = .error(condition: name, by: direction)
        info.boshRule = rule
        info.reason = meaning
        info.closeReason =
            switch name {
            case "policy-violation": .policyViolation
            case "system-shutdown": .systemShutdown
            case "see-other-uri": .seeOtherHost
            default: .streamError
            }
    }
}

/// The conditions that end BOSH sessions.
enum BOSHCondition {
    /// Returns whether XEP-0124 §17.2 defines the condition, or it was made from an HTTP status.
    static func isKnown(_ name: String) -> Bool {
        switch name {
        case "bad-request", "host-gone", "host-unknown", "improper-addressing", "internal-server-error",
            "item-not-found", "other-request", "policy-violation", "remote-connection-failed", "remote-stream-error",
            "see-other-uri", "system-shutdown", "undefined-condition":
            true
        default: name.hasPrefix("http-")
        }
    }

    /// Returns the meaning of a condition, as a clause; nil if its name says it.
    static func meaning(_ name: String, _ address: String?) -> Prose? {
        switch name {
        case "bad-request": "the format of the client's HTTP headers or body is not accepted"
        case "improper-addressing": "the domain in to is missing, or the server does not serve it"
        case "item-not-found":
            "the server does not know the session, or a request number or key was not the expected one"
        case "other-request": "another request of the session failed"
        case "policy-violation": "the client broke a limit, such as the number of open requests or of polls"
        case "see-other-uri": address.map { "redirected to \($0)" }
        default: nil
        }
    }

    /// Returns the condition and the meaning of an HTTP status other than 200.
    static func ofStatus(_ status: Int) -> (condition: String, meaning: Prose) {
        switch status {
        case 400: ("bad-request", "HTTP 400")
        case 403: ("policy-violation", "HTTP 403")
        case 404:
            (
                "item-not-found",
                "HTTP 404: no BOSH at this path, or not for the host in --upstream, or the session is unknown"
            )
        default: ("http-\(status)", "the server answered with HTTP \(status)")
        }
    }

    /// Returns the part of an address before its query, which may contain a secret.
    static func place(_ uri: String) -> String { String(uri.prefix { $0 != "?" && $0 != "#" }.prefix(200)) }
}
