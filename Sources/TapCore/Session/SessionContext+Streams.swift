internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Handles elements of the streams themselves: restarts, ends, compression, stream management.
extension SessionContext {
    /// Returns whether the initiator may open a new stream: after success, or in advance while authentication is in
    /// progress.
    func isRestartDue(_ direction: Direction) -> Bool {
        directions[direction].mayRestart
            || negotiation.mayRestart(
                direction,
                sendEpoch: directions.send.decoder.epoch,
                recvEpoch: directions.recv.decoder.epoch
            )
    }

    mutating func handleDeclaration(_ event: StreamEvent, _ direction: Direction) {
        if event.epoch > 1, !isRestartDue(direction) { login?.observe(.secondDeclaration(direction)) }
        recordItem(event, direction, .declaration, level: .verbose)
    }

    // MARK: Ends

    mutating func handleStreamEnd(_ event: StreamEvent, _ direction: Direction) {
        directions[direction].hasClosedStream = true
        recordItem(event, direction, .streamClose, level: .info)
        if info.ending == nil { info.ending = .clean(by: direction) }
        negotiation.closeStream()
    }

    /// Returns the condition of a stream error; nil for another element.
    static func streamErrorCondition(_ element: Element) -> String? {
        guard element.isNamed("error") else { return nil }
        return element.firstChild { $0.namespace == .streamErrors && !$0.isNamed("text") }?.name
            ?? "undefined-condition"
    }

    // MARK: Compression

    /// Holds or refuses the server's consent to TLS or to compression.
    func interceptConsent(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        TLSPolicy.interceptConsent(event, direction, self) ?? interceptCompressed(event, direction)
    }

    /// Refuses the server's `<compressed/>` (XEP-0138) if undecoded bytes must not be forwarded: both streams would be
    /// compressed after it.
    private func interceptCompressed(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard event.item == .element, direction == .recv, event.head.namespace.namespace == .compression,
            !isOfMessages, !options.isDecoded, !negotiation.isRefusing,
            isNamed("compressed", event, .recv), refusesUnread
        else { return nil }
        let message: Prose = "the server consented to compression, after which the streams cannot be decoded"
        return .refuse(
            Refusal(
                answer: .streamError(.policyViolation, "Compressed streams are not allowed."),
                code: "compression-refused",
                message: "\(message); session closed",
                condition: .policyViolation,
                direction: .recv,
                diagnosis: message,
                itemPart: .session
            )
        )
    }

    /// Handles an element, other than a stanza, that is larger than the limit: only its name is known.
    mutating func handleTruncated(_ event: StreamEvent, _ direction: Direction) {
        guard event.head.namespace.namespace != .compression else { return handleCompression(event, direction) }
        recordItem(event, direction, .element, level: .info)
    }

    mutating func handleCompression(_ event: StreamEvent, _ direction: Direction) {
        recordItem(event, direction, .element, level: .info)
        guard !isOfMessages else { return }
        if direction == .send, isNamed("compress", event, direction) {
            beginStep(.compression, awaits: .server)
        }
        if direction == .recv, isNamed("failure", event, direction) {
            finishStep(.compression, .failed())
        }
        guard direction == .recv, isNamed("compressed", event, direction) else { return }
        finishStep(.compression, .ok)
        guard !options.isDecoded else {
            for direction in Direction.allCases { directions[direction].mayRestart = true }
            return
        }
        report(
            code: "compression",
            "the streams are compressed from here on and cannot be decoded",
            direction: direction
        )
        stopDecoding(.send, .compression)
        stopDecoding(.recv, .compression)
    }

    // MARK: Stream management

    /// Handles an element that enables stream management or resumes a session (XEP-0198 §3, §5), after it was recorded.
    mutating func handleStreamManagement(_ event: StreamEvent, _ direction: Direction) -> [SessionEffect] {
        guard direction == .recv else {
            if isNamed("resume", event, direction) {
                beginStep(.resume, awaits: .server)
            } else if isNamed("enable", event, direction) {
                observeEnable()
            }
            return []
        }
        if isNamed("failed", event, direction), timeline.isUnderWay(.resume) {
            let condition = parse(direction)?.firstChild { $0.namespace == .stanzaErrors }?.name
            finishStep(.resume, .failed(condition: condition))
        } else if isNamed("enabled", event, direction), let enabled = parse(direction) {
            info.enableFault = nil
            login?.observe(.established)
            return [.enabled(enabled)]
        } else if isNamed("resumed", event, direction), info.opened == nil {
            finishStep(.resume, .ok)
            return [.resumed(parse(direction))]
        }
        return []
    }

    /// Warns if the client requested stream management too early, or without an offer (XEP-0198 §3).
    private mutating func observeEnable() {
        let fault: Prose
        if negotiation.isBinding {
            fault = "the client requested stream management before the result of resource binding"
        } else if info.features.contains("bind"),
            !info.features.contains(where: { $0.hasPrefix("sm:") })
        {
            fault = "the client requested stream management, which the server does not offer"
        } else {
            return
        }
        info.enableFault = fault
        report(code: LoginCause.earlyEnable.rawValue, "\(fault) (XEP-0198 §3)", direction: .send)
    }
}
