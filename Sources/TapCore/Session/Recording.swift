internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// The facts of a recorded session that its items alone do not show: see ``RecordedSession``.
///
/// A class, so that a relayed session stores only a nil reference.
final class Recording {
    /// Whether the items alone do not show the outcome of the login, because bytes are missing or xmpptap changed or
    /// sent items.
    private(set) var isPartial = false
    /// The record of the session's end; nil if the items show the end.
    private(set) var ending: Record?

    /// Observes the record of the next item, which will be decoded.
    func observe(_ record: Record) {
        if record.origin == .tap || record.action != nil && record.edited == nil { isPartial = true }
    }

    /// Applies a record that the session cannot create from the items.
    func apply(_ line: RecordLine, _ context: inout SessionContext) {
        let record = line.record
        context.now = Run.Instant(time: record.time, monotonic: record.monotonic)
        switch record.kind {
        case .error where record.code == SessionContext.boshEndedCode: context.applyBOSHEnd(record)
        case .error, .bytes: isPartial = true
        case .session where record.code == LoginStep.code: Self.applyStep(record, &context)
        // The recorded session became ready by a record that is not an item.
        case .session where record.code == Record.Code.sessionReady: context.info.opened = context.now
        case .tls where record.code == Record.Code.tlsOpened: Self.applyTLS(record, &context)
        case .tls where record.code == SessionContext.tlsBeganCode: isPartial = true
        case .note where record.code == Record.Code.channelBinding: isPartial = true
        case .note where record.code == LoginStep.code: Self.applyStep(record, &context)
        case .declaration, .streamOpen, .stanza, .element, .whitespace, .streamClose:
            isPartial = true
            Self.applyItem(line, &context)
        case .session, .tls, .note, .chunk, .frame: break
        }
    }

    private static func applyStep(_ record: Record, _ context: inout SessionContext) {
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

    /// Restarts streams inside TLS, because TLS was established on a leg.
    private static func applyTLS(_ record: Record, _ context: inout SessionContext) {
        context.negotiation.enterTLS()
        // Without TLS, a client continues its stream.
        if record.leg == .client { context.info.version = nil }
        // The record is a warning if a fault of the server's certificate was ignored.
        if record.level == .warn { context.info.isUnverified = true }
        context.forgetClear()
        for direction in Direction.allCases {
            context.directions[direction].mayRestart = context.directions[direction].decoder.epoch > 0
        }
    }

    /// Applies an item that is not decoded, because its content is missing, or because xmpptap sent the item.
    private static func applyItem(_ line: RecordLine, _ context: inout SessionContext) {
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

    /// Ends the login. Pending steps are discarded if the items alone do not show the outcome. The recorded diagnosis
    /// is used if the current code cannot find the cause itself. Returns false without a recorded diagnosis, or if its
    /// cause is unknown.
    func apply(_ diagnosis: LoginDiagnosis?, _ context: inout SessionContext) -> Bool {
        if isPartial { _ = context.timeline.end(nil, at: context.now.monotonic) }
        guard let diagnosis else { return false }
        switch diagnosis.cause {
        // These causes depend on the channel bindings of both legs.
        case .bindingDenied, .bindingMismatch, .mechanismsAltered, .tlsVersionAltered,
            // These causes depend on the certificate that the client saw, and on the rules' actions, which only the
            // proxy knows.
            .certificateNotAccepted, .authorityNotTrusted, .alteredByTap:
            context.login?.observe(.blamed(diagnosis, isFinal: true))
        // Between servers, causes depend on the certificates of both.
        default:
            if isPartial || !diagnosis.certificates.isEmpty {
                context.login?.observe(.blamed(diagnosis, isFinal: true))
            }
        }
        return true
    }

    // MARK: The end

    /// Applies the last record, if only that record shows how the session ended. Returns the end of a leg that the
    /// session must evaluate; nil if the ending is stored already.
    func applyEnd(_ record: Record, _ context: inout SessionContext) -> (direction: Direction, end: LegEnd)? {
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

    /// Stores the last record as the session's end, unless the items have shown the same ending. Also applies the
    /// recorded byte counts.
    func applyEnd(_ record: Record, shown: SessionInfo.Ending?, _ context: inout SessionContext) {
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
    /// Returns whether a record reports the end of a pending step.
    func isUnderWay(_ record: Record) -> Bool {
        guard record.code == LoginStep.code, let details = record.details, let name = LoginStep.Name(details) else {
            return false
        }
        return isUnderWay(name, key: details["leg"]?.text)
    }
}
