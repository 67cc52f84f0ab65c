internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// The facts of a recorded session that its items do not show: see ``RecordedSession``.
///
/// A class, so that a relayed session stores only one empty reference.
final class Recording {
    /// Bytes are missing, or xmpptap took part: the items alone do not show the outcome of the login.
    private(set) var isPartial = false
    /// The record of the end, if items do not show it.
    private(set) var ending: Record?

    /// The next item of the recording, which will be decoded.
    func observe(_ record: Record) {
        if record.origin == .tap || record.action != nil && record.edited == nil { isPartial = true }
    }

    /// Applies a record that the session cannot make from the items.
    func recall(_ line: RecordLine, _ context: inout SessionContext) {
        let record = line.record
        context.now = Run.Instant(time: record.time, monotonic: record.monotonic)
        switch record.kind {
        case .error, .bytes: isPartial = true
        case .session where record.code == LoginStep.code: Self.recallStep(record, &context)
        // By a record that is not an item.
        case .session where record.code == Record.Code.sessionReady: context.info.opened = context.now
        case .tls where record.code == Record.Code.tlsOpened: Self.recallTLS(record, &context)
        case .tls where record.code == SessionContext.tlsBeganCode: isPartial = true
        case .note where record.code == Record.Code.channelBinding: isPartial = true
        case .note where record.code == LoginStep.code: Self.recallStep(record, &context)
        case .declaration, .streamOpen, .stanza, .element, .whitespace, .streamClose:
            isPartial = true
            Self.recallItem(line, &context)
        case .session, .tls, .note, .chunk: break
        }
    }

    private static func recallStep(_ record: Record, _ context: inout SessionContext) {
        guard var details = record.details, let name = LoginStep.Name(details) else { return }
        let reason = details[LoginStep.reasonDetail].map { Prose($0.text) }
        let outcome: LoginStep.Outcome =
            switch LoginStep.Result(details) {
            case .ok: .ok
            case .skipped: .skipped(reason ?? "")
            case .failed, nil: .failed(condition: record.condition, reason)
            }
        details[LoginStep.code] = nil
        details[LoginStep.outcomeDetail] = nil
        details[LoginStep.reasonDetail] = nil
        _ = context.timeline.finish(
            name,
            key: details["leg"]?.text,
            outcome,
            since: record.roundTrip.map { record.monotonic - $0 },
            details: details,
            at: record.monotonic
        )
    }

    /// TLS has begun on a leg: streams restart inside it.
    private static func recallTLS(_ record: Record, _ context: inout SessionContext) {
        context.negotiation.enterTLS()
        // A client without TLS continues its stream.
        if record.leg == .client { context.info.version = nil }
        // A certificate fault that was ignored is recorded as a warning.
        if record.level == .warn { context.info.isUnverified = true }
        context.forgetClear()
        for direction in Direction.allCases {
            context.directions[direction].mayRestart = context.directions[direction].decoder.epoch > 0
        }
    }

    /// Applies an item that is not decoded: its content is missing, or xmpptap sent it.
    private static func recallItem(_ line: RecordLine, _ context: inout SessionContext) {
        let record = line.record
        guard record.origin == .peer, let direction = record.direction else { return }
        context.info.count(bytes: record.length, direction)
        if record.part == .sasl, let condition = record.condition {
            context.info.authentication = .failed(condition: condition)
        }
        guard record.kind == .stanza, let range = record.name else { return }
        let name = line.content.span.slice(range)
        let kinds: [(StaticString, StanzaHead.Kind)] = [("iq", .iq), ("message", .message), ("presence", .presence)]
        if let kind = kinds.first(where: { name.equals($0.0) })?.1 { context.info.count(kind, direction) }
    }

    /// Ends the login: its pending steps are discarded if the items alone do not show the outcome. Uses the recorded
    /// diagnosis if the current code cannot make one; returns false if its cause is unknown here.
    func recall(_ diagnosis: LoginDiagnosis?, _ context: inout SessionContext) -> Bool {
        if isPartial { _ = context.timeline.end(nil, at: context.now.monotonic) }
        guard let diagnosis else { return false }
        switch diagnosis.cause {
        // They depend on the channel bindings of both legs.
        case .bindingDenied, .bindingMismatch, .mechanismsAltered, .tlsVersionAltered,
            // Only the proxy knows which certificate the client saw, and the actions of its rules.
            .certificateNotAccepted, .authorityNotTrusted, .alteredByTap:
            context.login?.observe(.blamed(diagnosis, isFinal: true))
        default: if isPartial { context.login?.observe(.blamed(diagnosis, isFinal: true)) }
        }
        return true
    }

    // MARK: The end

    /// Applies the last record: an end that items do not show is known only from it. Returns the end of a leg that the
    /// session must judge, if any.
    func recallEnd(_ record: Record, _ context: inout SessionContext) -> (direction: Direction, end: LegEnd)? {
        let shown = context.info.ending
        switch Self.closeReason(record) {
        case .tap: context.info.ending = .tap(condition: record.condition ?? "undefined-condition")
        case .stopped: context.info.ending = .stopped
        case .unrecorded: context.info.ending = .unrecorded
        case .tls where shown == nil: context.info.ending = record.leg.map { .tls(leg: $0, "") }
        case .undecoded where shown == nil: context.info.ending = record.leg.map { .undecoded(leg: $0, .finished) }
        case let reason: return record.leg.map { ($0.inbound, reason == .reset ? .reset : .finished) }
        }
        return nil
    }

    /// Takes the last record for that of the session, unless the items have shown this ending.
    func recallEnd(_ record: Record, shown: SessionInfo.Ending?, _ context: inout SessionContext) {
        if context.info.ending != shown || context.info.ending == nil { ending = record }
        if context.info.ending == nil {
            context.info.closeReason = Self.closeReason(record)
            isPartial = true
        }
        if case .integer(let count)? = record.details?["sent_bytes"] {
            context.info.sent.bytes = UInt64(clamping: count)
        }
        if case .integer(let count)? = record.details?["received_bytes"] {
            context.info.received.bytes = UInt64(clamping: count)
        }
    }

    private static func closeReason(_ record: Record) -> CloseReason? {
        (record.details?[Record.Detail.closeReason]?.text).flatMap(CloseReason.init(rawValue:))
    }
}

extension LoginTimeline {
    /// Whether a record reports the end of a pending step.
    func isUnderWay(_ record: Record) -> Bool {
        guard record.code == LoginStep.code, let details = record.details, let name = LoginStep.Name(details) else {
            return false
        }
        return isUnderWay(name, key: details["leg"]?.text)
    }
}
