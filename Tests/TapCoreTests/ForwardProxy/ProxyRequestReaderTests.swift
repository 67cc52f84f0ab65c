import Testing

@testable import TapCore

struct ProxyRequestReaderTests {
    private typealias Reader = ProxyRequestReader

    /// The answers, the final event, and the bytes after the request.
    private struct Outcome: Equatable {
        var answers: [[UInt8]] = []
        var end = Reader.Event.needMore
        var rest: [UInt8] = []
    }

    private static let named = NamedTarget(host: .name("xmpp.example.org"), port: 5222)
    private static let stream = Array("<stream:stream>".utf8)

    private static func users() throws -> ProxyUsers { try ProxyUsers(parsing: "juliet:balcony:7\nnurse:x\n") }

    /// Passes the pieces to a reader, and pulls all events after each.
    private static func read(_ pieces: [[UInt8]], users: ProxyUsers? = nil, requiresLogin: Bool = false) -> Outcome {
        var reader = Reader(users: users, requiresLogin: requiresLogin)
        var outcome = Outcome()
        for piece in pieces {
            reader.append(piece)
            pull: while true {
                let event = reader.next()
                outcome.end = event
                switch event {
                case .answer(let bytes): outcome.answers.append(bytes)
                case .needMore, .request, .refused: break pull
                }
            }
        }
        outcome.rest = reader.rest
        return outcome
    }

    private static func code(_ outcome: Outcome) -> Reader.Refusal.Code? {
        if case .refused(let refusal) = outcome.end { refusal.code } else { nil }
    }

    private static func answer(_ outcome: Outcome) -> [UInt8]? {
        if case .refused(let refusal) = outcome.end { refusal.answer } else { nil }
    }

    private static func request(_ address: [UInt8], command: UInt8 = 1, port: UInt16 = 5222) -> [UInt8] {
        [5, command, 0] + address + [UInt8(port >> 8), UInt8(port & 0xFF)]
    }

    private static func name(_ text: String) -> [UInt8] { [3, UInt8(text.utf8.count)] + Array(text.utf8) }

    /// Checks that every way to cut the bytes into two or three pieces, and single bytes, give the same outcome as one
    /// piece.
    private static func expectSame(
        _ bytes: [UInt8],
        _ expected: Outcome,
        users: ProxyUsers? = nil,
        requiresLogin: Bool = false
    ) {
        #expect(read([bytes], users: users, requiresLogin: requiresLogin) == expected)
        #expect(read(bytes.map { [$0] }, users: users, requiresLogin: requiresLogin) == expected)
        for first in 0...bytes.count {
            let two = [Array(bytes[..<first]), Array(bytes[first...])]
            #expect(read(two, users: users, requiresLogin: requiresLogin) == expected, "cut at \(first)")
            for second in first...bytes.count where bytes.count < 80 {
                let three = [Array(bytes[..<first]), Array(bytes[first..<second]), Array(bytes[second...])]
                let outcome = read(three, users: users, requiresLogin: requiresLogin)
                if outcome != expected { Issue.record("cut at \(first) and \(second): \(outcome)") }
            }
        }
    }

    // MARK: SOCKS

    @Test func `A SOCKS request is read at every split, and the data after it is kept`() {
        let bytes = [5, 2, 0, 2] + Self.request(Self.name("xmpp.example.org")) + Self.stream
        Self.expectSame(bytes, Outcome(answers: [[5, 0]], end: .request(.socks5, Self.named), rest: Self.stream))
    }

    @Test func `A SOCKS login is read at every split`() throws {
        let login = [1, 6] + Array("juliet".utf8) + [9] + Array("balcony:7".utf8)
        let bytes = [5, 1, 2] + login + Self.request(Self.name("xmpp.example.org")) + [0x16]
        let expected = Outcome(answers: [[5, 2], [1, 0]], end: .request(.socks5, Self.named), rest: [0x16])
        Self.expectSame(bytes, expected, users: try Self.users(), requiresLogin: true)
        // A client on this machine may log in too.
        Self.expectSame(bytes, expected, users: try Self.users())
    }

    @Test(arguments: [
        [UInt8]([1, 6] + Array("juliet".utf8) + [1, 0x78]), [1, 5] + Array("romeo".utf8) + [1, 0x78], [1, 0, 0],
        [1, 6] + Array("juliet".utf8) + [0],
        [1, 255] + [UInt8](repeating: 0x61, count: 255) + [255] + [UInt8](repeating: 0x62, count: 255),
    ])
    func `A wrong user or password is refused with a failure of RFC 1929`(_ login: [UInt8]) throws {
        let outcome = Self.read([[5, 1, 2] + login], users: try Self.users(), requiresLogin: true)
        #expect(outcome.answers == [[5, 2]])
        #expect(Self.code(outcome) == .loginFailed && Self.answer(outcome) == [1, 1])
        #expect(!"\(outcome)".contains("juliet"))
    }

    @Test func `A client that offers no usable method is refused with 0xFF`() throws {
        let users = try Self.users()
        let all = [UInt8](1...255)
        for (methods, users, requires, code) in [
            ([], nil, false, Reader.Refusal.Code.badRequest), ([2], nil, false, .badRequest),
            ([1], users, false, .badRequest), ([0], users, true, .loginRequired), ([0, 2], nil, true, .loginRequired),
            (all.filter { $0 != 2 }, users, true, .loginRequired),
        ] as [([UInt8], ProxyUsers?, Bool, Reader.Refusal.Code)] {
            let outcome = Self.read([[5, UInt8(methods.count)] + methods], users: users, requiresLogin: requires)
            #expect(Self.code(outcome) == code && Self.answer(outcome) == [5, 0xFF], "\(methods)")
        }
    }

    @Test func `A greeting with 255 methods is accepted, also byte by byte`() {
        let methods = [UInt8](repeating: 0x80, count: 254) + [0]
        let bytes = [5, 255] + methods + Self.request([1, 192, 0, 2, 1])
        let target = NamedTarget(host: .address([192, 0, 2, 1]), port: 5222)
        let expected = Outcome(answers: [[5, 0]], end: .request(.socks5, target))
        #expect(Self.read([bytes]) == expected)
        #expect(Self.read(bytes.map { [$0] }) == expected)
    }

    @Test func `IPv6 addresses and names of 255 bytes are read`() {
        let address = [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1]
        let outcome = Self.read([[5, 1, 0] + Self.request([4] + address, port: 65535)])
        #expect(outcome.end == .request(.socks5, NamedTarget(host: .address(address), port: 65535)))
        let long = String(repeating: "a", count: 255)
        let named = Self.read([[5, 1, 0] + Self.request(Self.name(long))])
        #expect(named.end == .request(.socks5, NamedTarget(host: .name(long), port: 5222)))
    }

    @Test(
        "A SOCKS request that cannot be carried out gets the reply of RFC 1928",
        arguments: [
            ("BIND", request([1, 127, 0, 0, 1], command: 2), 7),
            ("UDP ASSOCIATE", request([1, 127, 0, 0, 1], command: 3), 7),
            ("9", request(name("a"), command: 9), 7), ("address type 2", request([2, 0, 0, 0, 0]), 8),
            ("port 0", request([1, 127, 0, 0, 1], port: 0), 1), ("host name", request(name("a b")), 1),
            ("host name", request(name("")), 1), ("host name", request(name("a\0")), 1),
            ("host name", request([3, 2, 0xC3, 0x28]), 1),
            ("unknown version 4", [4, 1, 0] + [1, 127, 0, 0, 1, 0, 80], 1),
        ] as [(String, [UInt8], UInt8)]
    )
    func refusedRequest(_ words: String, _ request: [UInt8], _ reply: UInt8) {
        let outcome = Self.read([[5, 1, 0] + request])
        #expect(Self.code(outcome) == .badRequest)
        #expect(Self.answer(outcome) == [5, reply, 0, 1, 0, 0, 0, 0, 0, 0])
        #expect("\(outcome.end)".contains(words), "\(outcome.end)")
    }

    @Test func `Other protocols are refused: SOCKS version 4 with its own reply`() {
        let four = Self.read([[4, 1, 0x14, 0x66, 127, 0, 0, 1, 0]])
        #expect(Self.answer(four) == [0, 0x5B, 0, 0, 0, 0, 0, 0])
        #expect("\(four.end)".contains("SOCKS version 4"))
        for (bytes, words) in [
            (Self.stream, "XMPP"), ([0x16, 3, 1], "TLS"), ([0], "neither"), ([0xFF], "neither"),
            ([6, 1, 0], "neither"),
        ] {
            let outcome = Self.read([bytes])
            #expect(Self.code(outcome) == .badRequest && Self.answer(outcome) == [])
            #expect("\(outcome.end)".contains(words), "\(outcome.end)")
        }
    }

    @Test func `Bytes after a refusal are discarded`() {
        let outcome = Self.read([[6], [5, 1, 0]])
        #expect(Self.code(outcome) == .badRequest && outcome.rest.isEmpty)
    }

    // MARK: HTTP

    @Test func `A CONNECT request is read at every split, and the data after it is kept`() {
        for head in [
            "CONNECT xmpp.example.org:5222 HTTP/1.1\r\nHost: xmpp.example.org:5222\r\nUser-Agent: a\r\n\r\n",
            "CONNECT xmpp.example.org:5222 HTTP/1.0\r\n\r\n",
        ] {
            let expected = Outcome(end: .request(.connect, Self.named), rest: Self.stream)
            Self.expectSame(Array(head.utf8) + Self.stream, expected)
        }
    }

    @Test func `The login of CONNECT is checked, and is in no result`() throws {
        let users = try Self.users()
        func outcome(_ field: String, requiresLogin: Bool = true) -> Outcome {
            let text = "CONNECT xmpp.example.org:5222 HTTP/1.1\r\n\(field)\r\n"
            return Self.read([Array(text.utf8)], users: users, requiresLogin: requiresLogin)
        }
        // juliet:balcony:7
        let right = "Proxy-authorization: basic anVsaWV0OmJhbGNvbnk6Nw==\r\n"
        #expect(outcome(right).end == .request(.connect, Self.named))
        #expect(outcome("", requiresLogin: false).end == .request(.connect, Self.named))
        #expect(Self.code(outcome("")) == .loginRequired)
        for field in [
            right + right, "Proxy-Authorization: Bearer anVsaWV0OmJhbGNvbnk6Nw==\r\n", "Proxy-Authorization:\r\n",
            "Proxy-Authorization: Basic %\r\n", "Proxy-Authorization: Basic anVsaWV0\r\n",
            "Proxy-Authorization: Basic anVsaWV0Ong=\r\n",
        ] {
            let outcome = outcome(field)
            #expect(Self.code(outcome) == .loginFailed)
            let answer = String(decoding: Self.answer(outcome) ?? [], as: UTF8.self)
            #expect(answer.hasPrefix("HTTP/1.1 407 ") && answer.contains("\r\nProxy-Authenticate: Basic realm="))
            #expect(!"\(outcome)\(answer)".contains("anVs") && !"\(outcome)\(answer)".contains("juliet"))
        }
    }

    @Test(
        "An HTTP request that cannot be carried out gets a status",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 405), ("GET http://a/ HTTP/1.1\r\n\r\n", 405),
            ("connect a:1 HTTP/1.1\r\n\r\n", 405), ("CONNECT a:1 HTTP/2\r\n\r\n", 505), ("PRI * HTTP/2.0\r\n\r\n", 505),
            ("CONNECT a HTTP/1.1\r\n\r\n", 400), ("CONNECT a:0 HTTP/1.1\r\n\r\n", 400),
            ("CONNECT a:65536 HTTP/1.1\r\n\r\n", 400), ("CONNECT a:+1 HTTP/1.1\r\n\r\n", 400),
            ("CONNECT :1 HTTP/1.1\r\n\r\n", 400), ("CONNECT ::1:1 HTTP/1.1\r\n\r\n", 400),
            ("CONNECT a/b:1 HTTP/1.1\r\n\r\n", 400), ("CONNECT a:1\r\n\r\n", 400),
            ("CONNECT  a:1 HTTP/1.1\r\n\r\n", 400), ("CONNECT a:1 HTTP/1.1\r\nA\r\n\r\n", 400),
            ("CONNECT a:1 HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400), ("CONNECT a:1 HTTP/1.1\r\nA : b\r\n\r\n", 400),
            ("CONNECT a:1 HTTP/1.1\r\nA: \0\r\n\r\n", 400), ("EHLO a\r\n\r\n", 400),
        ]
    )
    func refusedHTTP(_ text: String, _ status: Int) {
        let outcome = Self.read([Array(text.utf8)])
        let answer = String(decoding: Self.answer(outcome) ?? [], as: UTF8.self)
        #expect(Self.code(outcome) == .badRequest)
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
        let parts = answer.split(separator: "\r\n\r\n")
        #expect(parts.count == 2 && answer.contains("\r\nContent-Length: \(parts.last?.utf8.count ?? 0)\r\n"))
    }

    @Test func `An IPv6 address in brackets is read, and a single LF ends a line`() {
        let outcome = Self.read([Array("CONNECT [2001:db8::1]:5223 HTTP/1.1\nHost: a\n\n".utf8)])
        #expect(outcome.end == .request(.connect, NamedTarget(host: .name("2001:db8::1"), port: 5223)))
    }

    @Test func `A request without an end is refused at 8192 bytes`() {
        let head = Array("CONNECT a:1 HTTP/1.1\r\n".utf8)
        let lines = [[UInt8]](repeating: Array("A: b\r\n".utf8), count: 1362)
        let outcome = Self.read([head] + lines)
        #expect(String(decoding: Self.answer(outcome) ?? [], as: UTF8.self).hasPrefix("HTTP/1.1 431 "))
        let short = Self.read([head] + lines.dropLast(2))
        #expect(short.end == .needMore)
    }

    // MARK: Answers

    @Test func `Every outcome has its SOCKS reply and its HTTP status`() {
        let expected: [ProxyOutcome: (reply: UInt8, status: String)] = [
            .connected: (0, "200"), .notAllowed: (2, "403"), .networkUnreachable: (3, "502"),
            .hostUnreachable: (4, "502"), .timeout: (4, "504"), .connectionRefused: (5, "502"), .failed: (1, "502"),
        ]
        for outcome in ProxyOutcome.allCases {
            let answer = outcome.answer(.socks5, text: "why", local: ([192, 0, 2, 1], 258))
            #expect(answer == [5, expected[outcome]?.reply ?? 255, 0, 1, 192, 0, 2, 1, 1, 2])
            let text = String(decoding: outcome.answer(.connect, text: "why"), as: UTF8.self)
            #expect(text.hasPrefix("HTTP/1.1 \(expected[outcome]?.status ?? "") "))
            #expect(text.hasSuffix(outcome == .connected ? "established\r\n\r\n" : "\r\n\r\nxmpptap: why\n"))
        }
        let six = ProxyOutcome.connected.answer(.socks5, text: "", local: ([UInt8](repeating: 7, count: 16), 1))
        #expect(six == [5, 0, 0, 4] + [UInt8](repeating: 7, count: 16) + [0, 1])
        #expect(ProxyOutcome.connected.answer(.socks5, text: "") == [5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    }

    @Test(arguments: [
        ("", nil as Int?), ("# a\n\n", nil), ("juliet", 1), ("juliet:", 1), (":x", 1), ("a:b\na:c", 2),
        ("a:b\n" + String(repeating: "u", count: 256) + ":x", 2),
    ])
    func `A file of users with a mistake is refused with the line`(_ text: String, _ line: Int?) {
        #expect { try ProxyUsers(parsing: text) } throws: { ($0 as? ProxyUsers.Fault)?.line == line }
    }
}
