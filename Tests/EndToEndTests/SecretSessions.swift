import TapRecord
import TapTestKit
import Testing

/// Sessions with many secrets between a client and a scripted server, both well-formed and broken.
enum SecretSessions {
    typealias Play = @Sendable (_ client: RawConnection, _ server: RawConnection) async throws -> Void

    /// All sessions. Each one uses new connections.
    static let all: [Play] = [
        // Every item of the catalogue without a login, in both directions at once.
        { client, server in
            let session = SecretCatalogue.session()
            try await exchange(client, server, send: session.send, recv: session.recv)
        },
        // The same items in an open session, in which bytes are forwarded before they are parsed.
        { client, server in
            try await play(login, client, server)
            let (send, recv) = (items(.send), items(.recv))
            try await exchange(client, server, send: send, recv: recv)
            try await play([(.send, "</stream:stream>"), (.recv, "</stream:stream>")], client, server)
        },
        // Texts that people write, and names of people.
        { client, server in
            try await play(login, client, server)
            let items = SecretCatalogue.inEveryWrapping(SecretCatalogue.texts + SecretCatalogue.people)
            let (send, recv) = (bytes(of: items, .send), bytes(of: items, .recv))
            try await exchange(client, server, send: send, recv: recv)
            try await play([(.send, "</stream:stream>"), (.recv, "</stream:stream>")], client, server)
        },
        // Sessions cut off inside a password, before and after the login.
        { client, server in
            try await play(greeting, client, server)
            try await client.write(
                "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHJvbWVvAGtRN3p2UjJt"
            )
            try await Task.sleep(for: .milliseconds(100))
            client.reset()
        },
        { client, server in
            try await play(login, client, server)
            let piece = "<iq type='set' id='p1'><query xmlns='jabber:iq:register'><password>m1cro$oft-"
            try await play([(.send, piece)], client, server)
            client.reset()
        },
        // Data that is not XML directly after a secret, before and after the login, followed by more secrets.
        { client, server in
            try await play(greeting, client, server)
            try await play(
                [
                    (
                        .send,
                        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHJvbWVvAGtRN3p2UjJtWHc5Yg&b;</auth>"
                    ),
                    (
                        .recv,
                        "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>cj1mSjN1SDhzV3FaMXhQNXRZdkIwbg\u{1}</challenge>"
                    ),
                ],
                client,
                server
            )
        },
        { client, server in
            try await play(login, client, server)
            try await play(
                [
                    (
                        .send,
                        "<message to='a@b'><body>aesgcm://up.example/f.jpg#8c3d050e9386ec173861778b68751a2b\u{0}</body>"
                    ),
                    (.send, "</message><iq type='set'><query xmlns='jabber:iq:auth'><password>Calli0pe-47</password>"),
                    (
                        .recv,
                        "<message><x xmlns='jabber:x:conference' password='Ey3OfNewt' password='Ey3OfNewt'/></message>"
                    ),
                    (.recv, "<message><body>https://down.example/a/b.jpg?token=8VnRj3sKfA</body></message>"),
                ],
                client,
                server
            )
        },
        // An item that exceeds the size that the log keeps.
        { client, server in
            try await play(login, client, server)
            let filling = String(repeating: "<x>y</x>", count: 160_000)
            let item =
                "<iq type='set' id='p1'><query xmlns='jabber:iq:register'><password>m1cro$oft-Vz</password>\(filling)"
                + "<key>106c0a7b5510f192a408a1d0e4f5c0ed</key></query></iq>"
            try await exchange(
                client,
                server,
                send: Array(item.utf8),
                recv: Array("<a token='WXZzciBwYmFmdmZnZiBq'/>".utf8)
            )
        },
        // Data that is never parsed: plaintext instead of TLS, and another protocol.
        { client, server in
            try await play(greeting, client, server)
            try await play(
                [
                    (.send, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
                    (.recv, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
                    (
                        .send,
                        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHJvbWVvAGtRN3p2UjJtWHc5Yg==</auth>"
                    ),
                ],
                client,
                server
            )
        },
        { client, server in
            let request =
                "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic Base64Of9LpWx5\r\nCookie: foo=bar2Zt6Yk\r\n\r\n"
            try await play(
                [(.send, request), (.recv, "HTTP/1.1 200 OK\r\nSet-Cookie: foo=bar2Zt6Yk\r\n\r\n")],
                client,
                server
            )
        },
    ]

    /// The turns up to the offered mechanisms, and the turns up to the bound resource.
    private static let greeting = Array(Conversations.plainLogin[..<3])
    private static let login = Array(Conversations.plainLogin[..<10])

    private static func items(_ direction: Direction) -> [UInt8] { bytes(of: SecretCatalogue.all, direction) }

    private static func bytes(of items: [SecretCatalogue.Item], _ direction: Direction) -> [UInt8] {
        Array(items.filter { $0.direction == direction }.map(\.xml).joined().utf8)
    }

    /// Sends each turn, and waits until it has arrived unchanged.
    private static func play(
        _ turns: [Conversations.Turn],
        _ client: RawConnection,
        _ server: RawConnection
    ) async throws {
        for turn in turns {
            let (from, to) = turn.direction == .send ? (client, server) : (server, client)
            try await pour(Array(turn.text.utf8), from, to)
        }
    }

    /// Sends the data of both sides at the same time in small pieces.
    private static func exchange(
        _ client: RawConnection,
        _ server: RawConnection,
        send: [UInt8],
        recv: [UInt8]
    ) async throws {
        async let sent: Void = pour(send, client, server)
        async let received: Void = pour(recv, server, client)
        _ = try await (sent, received)
    }

    private static func pour(_ bytes: [UInt8], _ from: RawConnection, _ to: RawConnection) async throws {
        async let arrived = to.read { $0.count >= bytes.count }
        for start in stride(from: 0, to: bytes.count, by: 997) {
            try await from.write(Array(bytes[start..<min(start + 997, bytes.count)]))
        }
        let (got, end) = try await arrived
        guard got == bytes else {
            throw KitError(
                "\(got.count) of \(bytes.count) bytes arrived, then \(end): \(String(decoding: got.suffix(200), as: UTF8.self))"
            )
        }
    }
}
