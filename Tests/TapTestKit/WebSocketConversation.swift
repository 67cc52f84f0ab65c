package import TapRecord
package import XMPPCore

/// The bytes of a session over WebSocket (RFC 7395).
package enum WebSocketConversation {
    /// Returns a frame of the client, which is masked, or of the server.
    package static func frame(
        _ text: String,
        _ opcode: WebSocketOpcode = .text,
        isFinal: Bool = true,
        from direction: Direction
    ) -> [UInt8] {
        let key: UInt32 = 0x1234_5678
        let payload = Array(text.utf8)
        var bytes: [UInt8] = []
        let role: WebSocketFrameWriter.Role = direction == .send ? .client(maskKey: key) : .server
        WebSocketFrameWriter.appendHeader(
            opcode,
            payloadLength: payload.count,
            isFinal: isFinal,
            as: role,
            to: &bytes
        )
        let start = bytes.count
        bytes += payload
        if direction == .send { WebSocketMask.apply(key, at: 0, to: &bytes, from: start) }
        return bytes
    }

    /// The client's handshake and the server's answer.
    package static let handshake: [(Direction, String)] = [
        (
            .send,
            "GET /xmpp-websocket?token=s3cr3t HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                + "Origin: https://chat.example.org\r\nSec-WebSocket-Protocol: xmpp\r\n\r\n"
        ),
        (
            .recv,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: xmpp\r\n\r\n"
        ),
    ]

    package static let open = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='example.org' version='1.0'/>"
    package static let answer =
        "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' from='example.org' id='s1' version='1.0'/>"
    package static let close = "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>"
    package static let streams = "xmlns:stream='http://etherx.jabber.org/streams'"

    /// The messages of a login, in order.
    package static let login: [(Direction, String)] = [
        (.send, open), (.recv, answer),
        (
            .recv,
            "<stream:features \(streams)><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
                + "<mechanism>PLAIN</mechanism></mechanisms></stream:features>"
        ),
        (.send, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldABzM2NyM3Q=</auth>"),
        (.recv, "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"),
        (.send, open), (.recv, answer),
        (
            .recv,
            "<stream:features \(streams)><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
                + "<sm xmlns='urn:xmpp:sm:3'/></stream:features>"
        ),
        (
            .send,
            "<iq xmlns='jabber:client' type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"
        ),
        (
            .recv,
            "<iq xmlns='jabber:client' type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                + "<jid>juliet@example.org/balcony</jid></bind></iq>"
        ),
    ]
}
