internal import TapRecord
import XMPPCore

/// Tracks STARTTLS (RFC 6120 §5) between the peers, before TLS begins.
struct StartTLS {
    /// The parameters of TLS that was decrypted outside xmpptap; nil if it was not.
    private var decrypted: Attributes?

    /// Records that the TLS bytes are decrypted outside xmpptap.
    mutating func decrypt(_ details: Attributes, _ context: inout SessionContext) {
        decrypted = details
        var record = context.makeRecord(.tls, .info, part: .tls)
        record.code = "tls-decrypted"
        record.message = "TLS, decrypted with its secrets"
        record.tls = details
        context.emit(consume record)
    }

    /// Handles a STARTTLS element that was forwarded or is held.
    func handle(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> [TLSEffect] {
        context.recordItem(event, direction, .element, level: .info, part: .tls)
        // Over WebSocket, TLS is that of HTTP: the peers ignore STARTTLS (RFC 7395 §3.9).
        guard !context.isOfMessages else { return [] }
        switch direction {
        case .send where context.isNamed("starttls", event, direction):
            return context.negotiation.mayRequestTLS ? request(context) : []
        case .recv where context.isNamed("proceed", event, direction):
            guard isExpected(context) else { return [Self.unexpected] }
            return [.finish(.startTLS, .ok)] + proceed(context)
        case .recv:
            var effects: [TLSEffect] = []
            if context.negotiation.isStartingTLS {
                effects = [.declineTLS, .finish(.startTLS, .failed("the server answered <failure/>"))]
            }
            if context.directions.send.isHeld { effects.append(.release(.send)) }
            return effects
        case .send: return []
        }
    }

    private func request(_ context: borrowing SessionContext) -> [TLSEffect] {
        let effects: [TLSEffect] = [.requestTLS, .begin(.startTLS, awaits: .server), .cancel(.mechanism)]
        // Later bytes belong to TLS or, if the server declines, to this stream. They wait for the answer, unless no
        // answer can arrive, or TLS cannot begin because the client is half-closed.
        let isAwaited = !context.directions.recv.hasPassedEnd && context.directions.send.end == nil
        return isAwaited ? effects + [.hold(.send)] : effects
    }

    /// Returns whether `<proceed/>` answers a request: TLS begins only then (RFC 6120 §5.4.2.3). A recording may lack the
    /// request.
    private func isExpected(_ context: borrowing SessionContext) -> Bool {
        let options = context.options
        return context.negotiation.isStartingTLS || context.directions.recv.buffered != nil || decrypted != nil
            || options.isRecorded || options.isDecoded || options.isObserved
    }

    private static let unexpected = TLSEffect.warn(
        code: "starttls-unexpected",
        "unexpected <proceed/>: no STARTTLS request was pending; the stream is still decoded",
        .recv
    )

    private func proceed(_ context: borrowing SessionContext) -> [TLSEffect] {
        // Held bytes are released when TLS is established on the server leg. A recording contains the items that
        // follow.
        if context.directions.recv.buffered != nil || context.options.isRecorded { return [] }
        if context.options.isDecoded || decrypted != nil { return enter(context) }
        return reportEarlyBytes(context) + [.passThrough]
    }

    /// Restarts the streams inside TLS, which the log does not show.
    private func enter(_ context: borrowing SessionContext) -> [TLSEffect] {
        let finished: TLSEffect =
            if let decrypted {
                .finish(.tls, .ok, decrypted)
            } else {
                .finish(.tls, .skipped("not recorded; the log contains the decrypted streams"))
            }
        let effects = [finished, .enterTLS, .expectRestart]
        return context.directions.send.isHeld ? effects + [.release(.send)] : effects
    }

    /// Reports plaintext that the client sent between `<starttls/>` and `<proceed/>`.
    private func reportEarlyBytes(_ context: borrowing SessionContext) -> [TLSEffect] {
        let pending = context.directions.pending(.send)
        guard !pending.isEmpty, pending[0] != 0x16 else { return [] }
        let message: Prose = "\(pending.count) bytes of plaintext between <starttls/> and <proceed/>"
        return [.warn(code: "starttls-injection", message, .send)]
    }
}
