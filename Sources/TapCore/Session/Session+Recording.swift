internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// The facts of a recorded session that its items do not show.
///
/// A class, so that a relayed session stores only one empty reference.
final class Recording {
    /// The details that were decoded from the item's SASL message when it was relayed.
    var sasl: Attributes?
    /// Bytes are missing, or xmpptap took part: the items alone do not show the outcome of the login.
    var isPartial = false
    /// The record of the end, if items do not show it.
    var ending: Record?
}

// A session that is read from a recording: see ``RecordedSession``.
extension Session {
    /// Handles the next item of the recording. For the byte counts, its length on the wire is used.
    mutating func receive(_ line: RecordLine, at now: Run.Instant) {
        let record = line.record
        guard let recording, let direction = record.direction, let xml = record.xml else { return }
        recording.sasl = record.sasl
        if record.origin == .tap || record.action != nil && record.edited == nil { recording.isPartial = true }
        _ = receive(direction, line.content.span.slice(xml), at: now)
        context.info.count(bytes: (record.origin == .tap ? 0 : record.length) &- UInt64(xml.count), direction)
    }

    /// Whether a record reports the end of a pending step.
    func isUnderWay(_ record: Record) -> Bool {
        guard record.code == LoginStep.code, let details = record.details, let name = LoginStep.Name(details) else {
            return false
        }
        return context.timeline.isUnderWay(name, key: details["leg"]?.text)
    }

    /// Discards pending steps.
    mutating func forgetUnderWay() { _ = context.timeline.end(nil, at: context.now.monotonic) }

    /// Applies a record that the session cannot make from the items.
    mutating func recall(_ line: RecordLine) {
        let record = line.record
        context.now = Run.Instant(time: record.time, monotonic: record.monotonic)
        switch record.kind {
        case .error, .bytes: recording?.isPartial = true
        case .session where record.code == LoginStep.code: recallStep(record)
        // By a record that is not an item.
        case .session where record.code == Record.Code.sessionReady: context.info.opened = context.now
        case .tls where record.code == Record.Code.tlsOpened: recallTLS(record)
        case .tls where record.code == SessionContext.tlsBeganCode: recording?.isPartial = true
        case .note where record.code == Record.Code.channelBinding: recording?.isPartial = true
        case .note where record.code == LoginStep.code: recallStep(record)
        case .declaration, .streamOpen, .stanza, .element, .whitespace, .streamClose:
            recording?.isPartial = true
            recallItem(line)
        case .session, .tls, .note, .chunk: break
        }
    }

    private mutating func recallStep(_ record: Record) {
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
    private mutating func recallTLS(_ record: Record) {
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
    private mutating func recallItem(_ line: RecordLine) {
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

    /// Uses the recorded diagnosis if the current code cannot make one; returns false if its cause is unknown here.
    mutating func recall(_ diagnosis: LoginDiagnosis?) -> Bool {
        guard let diagnosis else { return false }
        switch diagnosis.cause {
        // They depend on the channel bindings of both legs.
        case .bindingDenied, .bindingMismatch, .mechanismsAltered, .tlsVersionAltered,
            // Only the proxy knows which certificate the client saw, and the actions of its rules.
            .certificateNotAccepted, .authorityNotTrusted, .alteredByTap:
            context.login?.observe(.blamed(diagnosis, isFinal: true))
        default:
            if recording?.isPartial == true { context.login?.observe(.blamed(diagnosis, isFinal: true)) }
        }
        return true
    }

    /// Ends the session as its last record reports: an end that items do not show is known only from it.
    mutating func closed(as record: Record, at now: Run.Instant) {
        context.now = now
        let closeReason = (record.details?[Record.Detail.closeReason]?.text).flatMap(CloseReason.init(rawValue:))
        let shown = context.info.ending
        switch closeReason {
        case .tap:
            context.info.ending = .tap(condition: record.condition ?? "undefined-condition")
        case .stopped: context.info.ending = .stopped
        case .unrecorded: context.info.ending = .unrecorded
        case .tls where shown == nil: context.info.ending = record.leg.map { .tls(leg: $0, "") }
        case .undecoded where shown == nil: context.info.ending = record.leg.map { .undecoded(leg: $0, .finished) }
        default:
            if let leg = record.leg {
                context.judgeEnd(
                    leg.inbound,
                    closeReason == .reset ? .reset : .finished,
                    unheard(by: leg.inbound)
                )
            }
        }
        if context.info.ending != shown || context.info.ending == nil { recording?.ending = record }
        if context.info.ending == nil {
            context.info.closeReason = closeReason
            recording?.isPartial = true
        }
        if case .integer(let count)? = record.details?["sent_bytes"] {
            context.info.sent.bytes = UInt64(clamping: count)
        }
        if case .integer(let count)? = record.details?["received_bytes"] {
            context.info.received.bytes = UInt64(clamping: count)
        }
        handle(.closed, at: context.now)
    }
}
