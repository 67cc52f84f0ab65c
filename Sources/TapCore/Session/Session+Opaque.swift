import XMPPCore

// Bytes that are not decoded: TLS passed through, and what is no XMPP at all.
extension Session {
    /// The very first bytes of a leg decide whether they are XMPP.
    mutating func lookAtFirstBytes(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard direction == .send, bytes[0] == 0x16 else { return }
        turnOpaque(.send, .tls)
        turnOpaque(.recv, .tls)
        phase = .opaque
        noteTLSBegan(directly: true)
    }

    /// Reads of TLS what it says in clear: the ClientHello.
    mutating func lookIntoOpaque(_ direction: Direction, _ bytes: Span<UInt8>) {
    }

    mutating func noteTLSBegan(directly: Bool) {
        let at = pipes[Direction.send.index].opaqueFrom ?? 0
        var record = makeRecord(.tls, .info, part: .tls)
        record.code = "tls-began"
        record.message =
            directly
            ? "TLS from the first byte on; it is passed through and cannot be read"
            : "TLS begins at byte \(at) from the client; it is passed through and cannot be read"
        emit(record)
    }
}
