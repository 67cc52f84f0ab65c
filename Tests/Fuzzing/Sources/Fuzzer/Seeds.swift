import Glibc
import TapCore
import TapRecord
import XMPPCore

@testable import TapCapture

extension FuzzTarget {
    /// The seeds of a target: generated, and taken from the corpus if it exists.
    var seeds: [[UInt8]] {
        switch self {
        // The seeds are files beside the fuzzer.
        case .parser: []
        case .websocket: WebSocketTarget.seeds
        case .bosh: BOSHTarget.seeds
        case .socks: ProxyRequestTarget.seeds
        case .packets: Seeds.frames
        case .tcp: Seeds.segments
        case .tls: Seeds.connections
        case .captures: Seeds.captures
        case .keylog: Seeds.keyLogs
        case .clientlog: Seeds.clientLogs
        case .records: Seeds.records
        case .session: Seeds.sessions
        }
    }
}

enum Seeds {
    private typealias Builder = PacketBuilder

    private static func corpus(_ path: String) -> [UInt8] {
        guard let folder = getenv("XMPPTAP_CORPUS"), let file = fopen(String(cString: folder) + "/" + path, "r")
        else { return [] }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 18)
        bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
        return bytes
    }

    private static let capturesOfCorpus = [
        "ndpi-jabber", "xmpptrace-testWx2RequestMessageXMPPtoWx2", "zeek-xmpp-dialback-starttls", "zeek-xmpp-starttls",
    ].map { corpus("pcap/\($0).pcap") }.filter { !$0.isEmpty }

    // MARK: Sessions

    private static func event(_ letter: Character, _ text: String = "") -> [UInt8] {
        [0xFF] + Array("\(letter)\(text)".utf8)
    }

    private static func events(_ turns: some Sequence<Conversations.Turn>) -> [UInt8] {
        turns.flatMap { event($0.direction == .send ? "c" : "s", $0.text) }
    }

    private static let sm = "xmlns='urn:xmpp:sm:3'"

    private static let managed: [UInt8] = {
        let happenings: [[UInt8]] = [
            event("o"), events(Conversations.plainLogin.prefix(10)),
            event("c", "<enable \(sm) resume='true'/>"),
            event("s", "<enabled \(sm) resume='true' id='i1' max='60'/>"),
            event("c", "<message id='1' to='a@example.net'><body>edit twice copy</body><thread>t</thread></message>"),
            event("s", "<message id='2' from='a@example.net/x'><body>drop</body></message><r \(sm)/>"),
            event("c", "<a \(sm) h='1'/>"), event("s", "<presence from='a@example.net'/>"),
            event("i", "C<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>"),
            event("c", "<iq type='result' id='p'/>"),
            event(
                "c",
                "<message to='b@example.net'><body>wait</body></message><message><body>hold slice</body></message>"
            ),
            event("d"), event("l"), event("d"), event("t", "\n"), event("s", "<a \(sm) h='2'/>"),
        ]
        return happenings.flatMap { $0 }
    }()

    static let sessions: [[UInt8]] = {
        let conversations = [
            Conversations.plainLogin, Conversations.startTLS, Conversations.legacyLogin, Conversations.component,
            Conversations.sasl2,
        ]
        var bodies = conversations.map { event("o") + events($0) + event("e", "\u{1}") }
        bodies.append(managed + event("r"))
        bodies.append(managed + event("e") + event("e", "\u{1}"))
        bodies.append(managed + event("m", "\u{1}xxx") + event("c", "</stream:stream>") + event("q"))
        bodies.append(event("x") + event("c", "<stream:stream>") + event("a"))
        let rest = event("p") + event("s", "<message/><iq id='x'/>") + event("d") + event("s", "<!-- -->")
        bodies.append(managed + rest + event("t", "\u{7F}"))
        let modes: [UInt8] = [0, 1, 4, 12, 32, 64, 2, 16]
        return modes.flatMap { mode in bodies.map { [mode] + $0 } } + webSockets
    }()

    /// Sessions over WebSocket: the first byte of a frame is 2 for a whole text message, 3 for its first fragment, 0 for
    /// the last, 8 for a ping.
    private static let webSockets: [[UInt8]] = {
        func frames(_ messages: [(Direction, String)]) -> [UInt8] {
            messages.flatMap { event($0.0 == .send ? "C" : "S", "\u{2}\($0.1)") }
        }
        let client = "xmlns='jabber:client'"
        let items: [(Direction, String)] = [
            (.send, "<message \(client) to='a@example.net'><body>edit twice copy</body></message>"),
            (.recv, "<message \(client)><body>drop</body></message>"),
            (.send, "<message \(client)/><message \(client)/>"), (.recv, " "), (.send, "<iq"),
        ]
        let pieces =
            event("C", "\u{3}<message \(client)>") + event("C", "\u{8}ping") + event("C", "\u{0}</message>")
            + event("i", "C<message/>") + event("i", "S<iq type='get' id='p'/>")
        let close: [(Direction, String)] = [(.send, WebSocketConversation.close), (.recv, WebSocketConversation.close)]
        let body =
            event("o") + frames(WebSocketConversation.login) + frames(items) + pieces + frames(close)
            + event("S", "\u{6}\u{3}") + event("e", "\u{1}") + event("e")
        return [128, 129, 132, 130, 160, 192].map { [$0] + body }
    }()

    // MARK: Records

    private static func capture(_ session: [UInt8], version: Int64 = 1, isComplete: Bool = true) -> [UInt8] {
        var header = RecordHeader(
            tool: "fuzz",
            time: Timestamp(nanoseconds: 1_700_000_000_000_000_000),
            level: "verbose",
            isComplete: isComplete,
            redaction: .secrets,
            run: "r"
        )
        header.version = version
        var line = LineBuffer()
        header.append(to: &line)
        var form = JSONForm()
        for record in SessionTarget.records(of: session) { form.append(record, [.content, .chunks], to: &line) }
        return line.bytes
    }

    static let records: [[UInt8]] =
        sessions.prefix(10).map { capture($0) }
        + [
            capture([4] + managed), capture([12] + managed, isComplete: false), capture([0], version: 99),
            Array(capture([0] + managed).dropLast(20)), capture([0] + managed) + capture([1] + managed),
        ]

    // MARK: Client logs

    private static func log(_ line: (Direction, String, Int) -> String) -> [UInt8] {
        Conversations.plainLogin.enumerated().flatMap { Array((line($1.direction, $1.text, $0) + "\n").utf8) }
    }

    static let clientLogs: [[UInt8]] = {
        func word(_ direction: Direction) -> String { direction == .send ? "SEND" : "RECV" }
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let logs = [
            log { "2026-11-21 17:22:\(two($2)):102 \(word($0)): \($1)" },
            Array("# 2026-11-21T17:22:40.000000000Z xmpptap 0.1.0 log verbose\n".utf8)
                + log { "17:22:\(two($2)).102 [3 juliet@example.org] \(word($0)): \($1)" },
            log { "05:22:\(two($2)) PM \($0 == .send ? "SENT" : "RECV") (0): \($1)" },
            log { "Nov 21 17:22:\(two($2)) c2s55d0a2b7c8e0 debug \($0 == .send ? "RECV" : "SEND"): \($1)" },
            log { direction, text, _ in "DEBUG    \(word(direction)): \(text)" },
            log { direction, text, _ in "xmpp DEBUG \(direction == .send ? "SENT" : "RECV"): \(text)" },
            log {
                "11/21/26 17:22:\(two($2)) (D) nbxmpp.stream :::: DATA \($0 == .send ? "SENT" : "RECEIVED") ::::\n\n\($1)\n"
            },
        ]
        return logs + [Array(corpus("xmppframework-login.log").prefix(6000))]
    }()

    // MARK: Packets

    /// Returns a conversation as TCP packets.
    private static func packets(
        _ turns: [(direction: Direction, bytes: [UInt8])],
        isIPv6: Bool = false
    ) -> [[UInt8]] {
        let ends = isIPv6 ? (Builder.End.client6, Builder.End.server6) : (Builder.End.client, Builder.End.server)
        var next: [Direction: UInt32] = [.send: 1001, .recv: 0xFFFF_FF01]
        func packet(_ direction: Direction, _ flags: TCPSegment.Flags, _ bytes: [UInt8] = []) -> [UInt8] {
            let (source, destination) = direction == .send ? (ends.0, ends.1) : (ends.1, ends.0)
            let isSYN: UInt32 = flags.contains(.syn) ? 1 : 0
            let segment = Builder.tcp(
                source,
                destination,
                sequence: (next[direction] ?? 0) &- isSYN,
                acknowledgement: flags == .syn ? nil : next[direction.opposite],
                flags: flags,
                bytes
            )
            next[direction] = (next[direction] ?? 0) &+ UInt32(bytes.count)
            return isIPv6
                ? Builder.version6(source, destination, segment) : Builder.version4(source, destination, segment)
        }
        return [packet(.send, .syn), packet(.recv, .syn)] + turns.map { packet($0.direction, .push, $0.bytes) }
            + [packet(.send, .fin), packet(.recv, .fin)]
    }

    private static let turns = Conversations.plainLogin.map { (direction: $0.direction, bytes: Array($0.text.utf8)) }

    private static func framed(_ link: UInt8, _ packets: some Sequence<[UInt8]>) -> [UInt8] {
        [link] + packets.flatMap { Builder.big16($0.count) + [1] + $0 }
    }

    static let frames: [[UInt8]] = {
        let version4 = packets(turns)
        let version6 = packets(turns, isIPv6: true)
        let tag: [UInt8] = [0x81, 0, 0, 5]
        let payload = Array(version4[2].dropFirst(20))
        let fragments = [(0, 24), (24, 64), (64, payload.count)].reversed().map { first, end in
            Builder.version4(
                .client,
                .server,
                Array(payload[first..<end]),
                fragment: first,
                hasMore: end < payload.count
            )
        }
        let own = [
            framed(0, version4), framed(0, version6), framed(1, version4.map { Builder.ethernet($0, tags: tag) }),
            framed(2, version6.map { [UInt8](repeating: 0, count: 14) + [0x86, 0xDD] + $0 }),
            framed(3, version4.map { [8, 0] + [UInt8](repeating: 0, count: 18) + $0 }),
            framed(4, version4.map { [2, 0, 0, 0] + $0 }), framed(0, version4[..<2] + fragments),
            framed(0, version4.dropFirst(8)), framed(0, version4.reversed()),
        ]
        return own
            + capturesOfCorpus.flatMap { file -> [[UInt8]] in
                let found = (try? Builder.read({ try PcapFile($0) }, file))?.packets ?? []
                return [0, 20, 60].map { first in framed(1, found.dropFirst(first).prefix(14).map(\.bytes)) }
            }
    }()

    static let captures: [[UInt8]] = {
        func timed(_ packets: [[UInt8]]) -> [(time: Int64, bytes: [UInt8])] {
            packets.enumerated().map { (1_700_000_000_000_000_000 + Int64($0) * 1_000_000, $1) }
        }
        func blocks(_ packets: [[UInt8]], isLittle: Bool = true) -> [UInt8] {
            packets.enumerated().flatMap {
                Builder.packet($1, time: 1_700_000_000_000_000 + UInt64($0), isLittle: isLittle)
            }
        }
        let plain = packets(turns)
        let own = [
            Builder.pcap(timed(plain)), Builder.pcap(timed(plain), isLittle: false, isNano: true),
            Builder.section() + Builder.interface(101) + blocks(plain),
            Builder.section(isLittle: false)
                + Builder.interface(
                    101,
                    options: Builder.option(9, [0xA0], isLittle: false)
                        + Builder.option(14, [0, 0, 0, 0, 0, 0, 0, 9], isLittle: false),
                    isLittle: false
                ) + blocks(plain, isLittle: false),
        ]
        let encrypted = RecordedConnection.all.map { connection in
            let keys: [UInt8] = connection.keyLines.flatMap { $0 + [0x0A] }
            let secrets =
                Builder.number(0x544C_534B, isLittle: true) + Builder.number(UInt32(keys.count), isLittle: true)
            return Builder.section() + Builder.interface(101) + Builder.block(0x0A, secrets + keys)
                + blocks(packets(connection.passed))
        }
        return own + encrypted + capturesOfCorpus.map { Array($0.prefix(4000)) }
    }()

    // MARK: TCP and TLS

    private static func segments(_ mode: UInt8, beginning: [UInt8], _ segments: [[UInt8]]) -> [UInt8] {
        [mode] + beginning + [0, 0, 1, 0] + segments.flatMap { $0 }
    }

    /// Segments, each with its head, truncation, position, length, acknowledgement and time.
    static let segments: [[UInt8]] = {
        let syn: [UInt8] = [2, 0, 0, 0, 0, 0, 1]
        return [
            segments(0, beginning: [0, 0, 0, 9], [syn, [0, 0, 1, 10, 0, 0, 1], [0, 0, 11, 10, 0, 0, 1]]),
            // Out of order, where sequence numbers wrap around.
            segments(
                0,
                beginning: [0xFF, 0xFF, 0xFF, 0xF0],
                [syn, [0, 0, 31, 90, 0, 0, 1], [0, 0, 1, 40, 0, 0, 1]]
            ),
            // Truncated, without the beginning of the connection.
            segments(0, beginning: [0, 0, 0, 9], [[0x10, 7, 0, 90, 20, 0, 0, 1], [0, 0, 95, 10, 0, 0, 1]]),
            // An acknowledged hole, a FIN and a RST.
            segments(
                1,
                beginning: [0, 0, 0, 9],
                [
                    syn, [0, 0, 50, 9, 0, 0, 1], [9, 0, 0, 0, 0, 90, 200], [9, 0, 0, 0, 0, 90, 200],
                    [4, 0, 59, 9, 0, 0, 1], [0x0D, 0, 0, 9, 0, 90, 200], [0x80, 0, 70, 0, 0, 0, 1],
                ]
            ),
        ]
    }()

    static let connections: [[UInt8]] = RecordedConnection.all.indices.flatMap { index -> [[UInt8]] in
        let kind = UInt8(index)
        return [
            [kind, 0, 255, 0], [kind, 0, 1, 0, 0, 9, 0, 1, 0x80], [kind, 0, 90, 0, 1, 5, 0, 99, 0],
            [kind, 1, 90, 1, 3, 6, 0, 30, 23], [kind, 0, 40, 1, 4, 5, 0, 60, 0], [kind, 0, 40, 0, 5, 4, 0, 0, 0],
        ]
    }

    static let keyLogs: [[UInt8]] = {
        let logs: [[UInt8]] = RecordedConnection.all.map { [7] + $0.keyLines.flatMap { $0 + [0x0A] } }
        let text = "# a comment\r\nCLIENT_RANDOM 00 11\nEXPORTER_SECRET 00 11\nnothing\n\n \t\nRSA x"
        let joined: [UInt8] = RecordedConnection.all.flatMap(\.keyLines).flatMap { $0 }
        return logs + [[1] + Array(text.utf8), [30] + joined]
    }()
}
