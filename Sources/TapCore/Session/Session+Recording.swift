internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// What a recording tells of a session and its items do not show.
///
/// A class, so that a session that is relayed has one empty reference and no more.
final class Recording {
    /// What was read of the item's SASL message when it passed.
    var sasl: Attributes?
    /// Bytes are missing, or this program took part: the items alone do not show how the login went.
    var isPartial = false
    /// The record of the end, where no item shows it.
    var ending: Record?
}

// A session that is read from a recording: see ``RecordedSession``.
extension Session {
    /// An item of the recording comes next. What counts of it is its length on the wire.
    mutating func receive(_ line: RecordLine, at now: Run.Instant) {
        let record = line.record
        guard let recording, let direction = record.direction, let xml = record.xml else { return }
        recording.sasl = record.sasl
        if record.origin == .tap || record.action != nil && record.edited == nil { recording.isPartial = true }
        _ = receive(direction, line.content.span.slice(xml), at: now)
        info.count(bytes: (record.origin == .tap ? 0 : record.length) &- UInt64(xml.count), direction)
    }

    /// Whether a record tells the end of a step that is under way.
    func isUnderWay(_ record: Record) -> Bool {
        guard record.code == LoginStep.code, let details = record.details, let name = LoginStep.Name(details) else {
            return false
        }
        return timeline.isUnderWay(name, key: details["leg"]?.text)
    }

    /// What is under way is not waited for any more.
    mutating func forgetUnderWay() { _ = timeline.end(nil, at: now.monotonic) }

    /// Learns of a record that nothing in the session has brought about.
    mutating func recall(_ line: RecordLine) {
        let record = line.record
        now = Run.Instant(time: record.time, monotonic: record.monotonic)
        switch record.kind {
        case .error, .bytes: recording?.isPartial = true
        case .session where record.code == LoginStep.code: recallStep(record)
        // By what is not among the items.
        case .session where record.code == Record.Code.sessionReady: info.opened = now
        case .tls where record.code == Record.Code.tlsOpened: recallTLS(record)
        case .tls where record.code == Self.tlsBeganCode: recording?.isPartial = true
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
        _ = timeline.finish(
            name,
            key: details["leg"]?.text,
            outcome,
            since: record.roundTrip.map { record.monotonic - $0 },
            details: details,
            at: record.monotonic
        )
    }

    /// TLS has begun on a leg: streams begin anew in it.
    private mutating func recallTLS(_ record: Record) {
        negotiation.enterTLS()
        // A client that has none goes on with the stream that it has.
        if record.leg == .client { info.version = nil }
        // What is overlooked of a certificate is a warning.
        if record.level == .warn { info.isUnverified = true }
        forgetClear()
        for direction in Direction.allCases {
            directions[direction].mayRestart = directions[direction].decoder.epoch > 0
        }
    }

    /// An item that is not read: its content is not there, or nobody in the session said it.
    private mutating func recallItem(_ line: RecordLine) {
        let record = line.record
        guard record.origin == .peer, let direction = record.direction else { return }
        info.count(bytes: record.length, direction)
        if record.part == .sasl, let condition = record.condition {
            info.authentication = .failed(condition: condition)
        }
        guard record.kind == .stanza, let range = record.name else { return }
        let name = line.content.span.slice(range)
        let kinds: [(StaticString, StanzaHead.Kind)] = [("iq", .iq), ("message", .message), ("presence", .presence)]
        if let kind = kinds.first(where: { name.equals($0.0) })?.1 { info.count(kind, direction) }
    }

    /// Takes the diagnosis of the recording where today's code cannot make one; false where it names a cause that is not
    /// known here.
    mutating func recall(_ diagnosis: LoginDiagnosis?) -> Bool {
        guard let diagnosis else { return false }
        switch diagnosis.cause {
        // They depend on what both legs could have bound to.
        case .bindingDenied, .bindingMismatch, .mechanismsAltered, .tlsVersionAltered,
            // Only the proxy knows which certificate the client saw, and what its rules did.
            .certificateNotAccepted, .authorityNotTrusted, .alteredByTap:
            login?.observe(.blamed(diagnosis, isFinal: true))
        default:
            if recording?.isPartial == true { login?.observe(.blamed(diagnosis, isFinal: true)) }
        }
        return true
    }

    /// The session has ended as its last record tells: of an end that no item shows that is all there is to know.
    mutating func closed(as record: Record, at now: Run.Instant) {
        self.now = now
        let closeReason = (record.details?[Record.Detail.closeReason]?.text).flatMap(CloseReason.init(rawValue:))
        let shown = info.ending
        switch closeReason {
        case .tap:
            info.ending = .tap(condition: record.condition ?? "undefined-condition")
        case .stopped: info.ending = .stopped
        case .unrecorded: info.ending = .unrecorded
        case .tls where shown == nil: info.ending = record.leg.map { .tls(leg: $0, "") }
        case .undecoded where shown == nil: info.ending = record.leg.map { .undecoded(leg: $0, .finished) }
        default:
            if let leg = record.leg { judgeEnd(leg.inbound, closeReason == .reset ? .reset : .finished) }
        }
        if info.ending != shown || info.ending == nil { recording?.ending = record }
        if info.ending == nil {
            info.closeReason = closeReason
            recording?.isPartial = true
        }
        if case .integer(let count)? = record.details?["sent_bytes"] { info.sent.bytes = UInt64(clamping: count) }
        if case .integer(let count)? = record.details?["received_bytes"] {
            info.received.bytes = UInt64(clamping: count)
        }
        handle(.closed, at: now)
    }
}
