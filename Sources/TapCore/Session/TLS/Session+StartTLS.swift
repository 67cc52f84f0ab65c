internal import TapRecord
import XMPPCore

// STARTTLS (RFC 6120 §5), before TLS begins.
extension Session {
    mutating func handleTLS(_ event: StreamEvent, _ direction: Direction) {
        recordItem(event, direction, .element, level: .info, part: .tls)
        switch direction {
        case .send where isNamed("starttls", event, direction):
            guard negotiation.requestTLS() else { return }
            begin(.startTLS, awaits: .server)
            timeline.cancel(.mechanism)
            // What follows belongs to TLS or, if the server declines, to this stream: it waits for the answer, unless
            // none can come, or the client has sent all it will and TLS cannot begin.
            if !directions.recv.hasPassedEnd, directions.send.end == nil { hold(.send) }
        case .recv where isNamed("proceed", event, direction):
            finish(.startTLS, .ok)
            // What is held goes on when TLS is up on the server's leg; a recording has what followed.
            if directions.recv.buffered != nil || recording != nil { return }
            if options.isInsideTLS { return passTLS() }
            noteEarlyBytes()
            beginTLS(directly: false)
        case .recv:
            if negotiation.declineTLS() { finish(.startTLS, .failed("the server answered <failure/>")) }
            if directions.send.isHeld { release(.send) }
        default: break
        }
    }

    /// The streams restart inside TLS, which the log does not show.
    private mutating func passTLS() {
        finish(.tls, .skipped("not recorded; the log contains the decrypted streams"))
        negotiation.enterTLS()
        for direction in Direction.allCases { directions[direction].mayRestart = true }
        if directions.send.isHeld { release(.send) }
    }

    /// Reports plaintext that the client sent between `<starttls/>` and `<proceed/>`.
    private mutating func noteEarlyBytes() {
        let count = directions.send.waiting
        guard count > 0, directions.pending(.send)[0] != 0x16 else { return }
        note(
            .note,
            .warn,
            code: "starttls-injection",
            "\(count) bytes of plaintext between <starttls/> and <proceed/>",
            direction: .send,
            part: .tls
        )
    }
}
