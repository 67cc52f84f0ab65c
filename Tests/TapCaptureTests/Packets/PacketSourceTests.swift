import Foundation
import TapCore
import TapRecord
import TapSecurity
import TapTestKit
import Testing
import XMPPCore

@testable import TapCapture

@Suite("Sessions in packet captures")
struct PacketSourceTests {
    /// The items of a session in a file, counted by name.
    private struct Counted {
        var remote = ""
        var send: [String: Int] = [:]
        var recv: [String: Int] = [:]
        var codes: [String] = []

        static func text(of counts: [String: Int]) -> String {
            let text = counts.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: ",")
            return text.isEmpty ? "-" : text
        }
    }

    private static func read(_ path: String) throws -> [UInt64: Counted] {
        let reader = try RecordReader([path])
        var sessions: [UInt64: Counted] = [:]
        while let entry = try reader.next() {
            guard case .record(let line) = entry, line.record.session > 0 else { continue }
            let record = line.record
            if let remote = record.remote { sessions[record.session, default: Counted()].remote = remote }
            if let code = record.code { sessions[record.session, default: Counted()].codes.append("\(code)") }
            guard record.kind == .stanza || record.kind == .element, let name = record.name else { continue }
            let text = line.content.span.slice(name).string()
            if record.direction == .send {
                sessions[record.session, default: Counted()].send[text, default: 0] += 1
            } else {
                sessions[record.session, default: Counted()].recv[text, default: 0] += 1
            }
        }
        return sessions
    }

    /// A connection of which the reference, that stops at the first fault, counts less: its reason.
    private static let differences = [
        // Data after a gap is read from the next stanza on.
        "ndpi-jabber.pcap 3": "8 iqs each way behind gaps, of which the reference has the first 3",
        "ndpi-jabber.pcap 5": "11 stanzas each way behind gaps, of which the reference has the first 3 and 4",
    ]

    @Test("Connections in real captures are recorded as expected", .enabled(if: Corpus.isAvailable))
    func golden() throws {
        let rows = String(decoding: try Corpus.read("pcap-golden.tsv"), as: UTF8.self).split(separator: "\n")
            .dropFirst()
            .map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
        let folder = try #require(Corpus.folder)
        for (file, rows) in Dictionary(grouping: rows, by: { $0[0] }) {
            var sessions = try Self.read(folder.appendingPathComponent("pcap/\(file)").path)
            for row in rows {
                let place = "\(file) \(row[1])"
                // Of the one that has ended before the capture began the end of the stream is all there is.
                // The first one of those from the same port.
                let ofRemote = sessions.filter { $0.value.remote == row[2] }
                guard let found = ofRemote.min(by: { $0.key < $1.key }) else {
                    #expect(
                        row[9] == "-" && row[10] == "-" && row[15] == "no XMPP stream header",
                        "\(place): no session"
                    )
                    continue
                }
                sessions[found.key] = nil
                let (send, recv) = (Counted.text(of: found.value.send), Counted.text(of: found.value.recv))
                guard Self.differences[place] == nil else {
                    #expect(found.value.codes.contains("bytes-missed"), "\(place)")
                    #expect(send != row[9], "\(place)")
                    continue
                }
                #expect(send == row[9], "\(place), sent")
                #expect(recv == row[10], "\(place), received")
            }
            // TLS that was under way before the capture is named, which the reference does not.
            let others = sessions.values.filter { !$0.codes.contains("no-handshake") }
            #expect(others.isEmpty, "\(file): more sessions than the reference has")
        }
    }

    /// The packets of a conversation, each with its direction.
    private static func file(
        _ parts: [(Direction, String)],
        port: UInt16 = 5222,
        lost: Set<Int> = [],
        isWhole: Bool = true
    ) -> [UInt8] {
        file(bytes: parts.map { ($0.0, Array($0.1.utf8)) }, port: port, lost: lost, isWhole: isWhole)
    }

    private static func file(
        bytes parts: [(Direction, [UInt8])],
        port: UInt16 = 5222,
        lost: Set<Int> = [],
        isWhole: Bool = true
    ) -> [UInt8] {
        var client = PacketBuilder.End.client
        client.port = 40_000
        var server = PacketBuilder.End.server
        server.port = port
        var next: [Direction: UInt32] = [.send: 1000, .recv: 5000]
        var time: Int64 = 1_700_000_000_000_000_000
        var packets: [(Int64, [UInt8])] = []
        func add(_ direction: Direction, _ flags: TCPSegment.Flags, _ bytes: [UInt8], isLost: Bool = false) {
            let (one, other) = direction == .send ? (client, server) : (server, client)
            let sequence = next[direction] ?? 0
            let segment = PacketBuilder.tcp(
                one,
                other,
                sequence: sequence,
                acknowledgement: flags == .syn && direction == .send ? nil : next[direction.opposite],
                flags: flags,
                bytes
            )
            next[direction] = sequence &+ UInt32(bytes.count) &+ (flags.isEmpty ? 0 : 1)
            time += 100_000_000
            if !isLost { packets.append((time, PacketBuilder.version4(one, other, segment))) }
        }
        if isWhole {
            add(.send, .syn, [])
            add(.recv, .syn, [])
        }
        for (index, part) in parts.enumerated() { add(part.0, [], part.1, isLost: lost.contains(index)) }
        add(.send, .fin, [])
        add(.recv, .fin, [])
        return PacketBuilder.pcap(packets)
    }

    private static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>"

    private static func records(_ file: [UInt8]) throws -> [RecordLine] {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "x.pcap")
        try Data(file).write(to: URL(fileURLWithPath: path))
        let reader = try RecordReader([path])
        var lines: [RecordLine] = []
        while let entry = try reader.next() {
            if case .record(let line) = entry { lines.append(line) }
        }
        return lines
    }

    private static func xml(_ lines: [RecordLine], _ direction: Direction) -> [String] {
        lines.filter { $0.record.direction == direction && $0.record.kind == .stanza }.compactMap { line in
            line.record.xml.flatMap { line.content.span.slice($0).string() }
        }
    }

    @Test(
        "XMPP is recognised by its content on any port, and other connections are only counted",
        arguments: [5222, 80, 33_000] as [UInt16]
    )
    func anyPort(port: UInt16) throws {
        let lines = try Self.records(Self.file([(.send, Self.header), (.send, "<presence/>")], port: port))
        #expect(Self.xml(lines, .send) == ["<presence/>"])
        #expect(lines.first { $0.record.code == "session-began" }?.record.remote == "192.0.2.1:40000")
        let other = try Self.records(Self.file([(.send, "GET / HTTP/1.1\r\n\r\n")], port: port))
        #expect(other.map(\.record.session) == [0])
        #expect(other.first?.record.message?.description == "5 packets: no XMPP found, 1 TCP connection without XMPP")
    }

    @Test func `A file without packets is reported, and for truncated packets the remedy is shown`() throws {
        let none = try Self.records(PacketBuilder.pcap([]))
        #expect(none.map { $0.record.message?.description } == ["0 packets: no XMPP found"])
        let text = Array("GET /".utf8)
        let segment = PacketBuilder.tcp(.client, .server, sequence: 1, acknowledgement: 1, flags: [], text)
        let whole = PacketBuilder.version4(.client, .server, segment)
        let cut = try Self.records(PacketBuilder.pcap([(1_700_000_000_000_000_000, Array(whole.dropLast(2)))]))
        let words =
            "1 packet: no XMPP found, 1 TCP connection without XMPP, 1 packet cut short; capture whole packets, "
            + "as tcpdump -s 0 does"
        #expect(cut.map { $0.record.message?.description } == [words] && cut.first?.record.level == .warn)
    }

    @Test("A connection captured with only its headers is dropped")
    func headersAlone() {
        let end = PacketEndpoint(high: 0, low: 1, port: 5222, isIPv6: false)
        let tally = SessionTally()
        let connection = PacketConnection(
            client: end,
            server: end,
            isWhole: true,
            hasKnownPort: true,
            tls: PacketTLS(KeyLog(), waits: false, isWhole: false),
            tally: tally
        )
        let now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
        var found = Outputs<SourceInput>()
        for _ in 0..<2000 { connection.process(.hole(.send, 100), at: now, &found) }
        #expect(connection.status == .other && tally.sessions == 0 && found.next() == nil)
    }

    @Test("After a gap, reading continues at the next stanza, and the gap is recorded")
    func gap() throws {
        let parts: [(Direction, String)] = [
            (.send, Self.header), (.recv, Self.header), (.send, "<message to='a@b'><bo"), (.send, "dy>lost</body>"),
            (.send, "<subject/></message><presence id='1'/>"), (.recv, "<iq type='result' id='2'/>"),
            (.recv, "<presence id='3'/>"), (.send, "<presence id='4'/>"), (.recv, "<presence id='5'/>"),
        ]
        let lines = try Self.records(Self.file(parts, lost: [3]))
        #expect(Self.xml(lines, .send) == ["<presence id='1'/>", "<presence id='4'/>"])
        #expect(Self.xml(lines, .recv).count == 3)
        let missed = lines.filter { $0.record.code == "bytes-missed" }.map(\.record.length)
        // The lost bytes, then the rest of the stanza that they were a part of.
        #expect(missed == [14, 20])
    }

    @Test("A connection opened before the capture is read from its next stanza")
    func midway() throws {
        let parts: [(Direction, String)] = [
            (.recv, "dy>end</body></message><presence id='1'/>"), (.send, "<iq type='get' id='2'/>"),
            (.recv, "<presence id='3'/>"),
        ]
        let lines = try Self.records(Self.file(parts, isWhole: false))
        #expect(Self.xml(lines, .recv) == ["<presence id='1'/>", "<presence id='3'/>"])
        #expect(Self.xml(lines, .send) == ["<iq type='get' id='2'/>"])
        #expect(lines.filter { $0.record.code == "inferred" }.count == 2)
    }

    @Test("Records with a far jump of the clock can still be read back")
    func leap() throws {
        let packet = PacketBuilder.version4(
            .client,
            .server,
            PacketBuilder.tcp(.client, .server, sequence: 1, flags: .syn)
        )
        let text = PacketBuilder.tcp(.client, .server, sequence: 2, Array((Self.header + "<presence/>").utf8))
        var file = PacketBuilder.section() + PacketBuilder.interface(101)
        file += PacketBuilder.packet(packet, time: 0)
        file += PacketBuilder.packet(PacketBuilder.version4(.client, .server, text), time: UInt64(Int64.max) / 1000)
        let lines = try Self.records(file)
        #expect(Self.xml(lines, .send) == ["<presence/>"])
        var form = JSONForm()
        for line in lines {
            var written = LineBuffer()
            form.append(line, .content, to: &written)
            let bytes = written.bytes
            #expect(throws: Never.self) { try RecordLine(json: bytes.span.bytes) }
        }
    }

    @Test("TLS opened before the capture is recorded with its amount of data")
    func midwayTLS() throws {
        let parts: [(Direction, String)] = [
            (.send, "\u{17}\u{3}\u{3}\0\u{4}abcd"), (.recv, "\u{17}\u{3}\u{3}\0\u{1}a"),
        ]
        let lines = try Self.records(Self.file(parts, isWhole: false))
        let codes = lines.compactMap { line in line.record.code.map { "\($0)" } }
        #expect(codes.contains("no-handshake"), "\(codes)")
        #expect(lines.filter { $0.record.code == "tls-passed" }.map(\.record.length) == [9, 6])
        // Elsewhere it may be anything.
        #expect(try Self.records(Self.file(parts, port: 443, isWhole: false)).map(\.record.session) == [0])
    }

    @Test(
        "The position is found at which a stream can be read",
        arguments: [
            ("<message/>", 0), ("<iq id='a'>", 0), ("<iqx>", nil), ("text</message><presence/>", 14), ("<a h='1'/>", 0),
            // Within another: what begins there cannot be read on its own.
            ("<forwarded xmlns='urn:xmpp:forward:0'><message to='a'/>", nil), ("</body></message>", nil), ("", nil),
            ("x</iq></stream:stream>", 6), ("\n<iq/>", 1), ("<stream:features/>", 0), ("<proceed/>", 0),
            // In a stanza they are nothing to begin with.
            ("x</iq><failure/>", nil),
        ] as [(String, Int?)]
    )
    func starts(text: String, offset: Int?) {
        let bytes = Array(text.utf8)
        #expect(StreamPlace.first(in: bytes.span) == offset.map { StreamPlace(offset: $0, isHeader: false) })
        for header in ["<?xml version='1.0'?>", "<stream:stream to='a'>"] {
            let stream = Array((header + text).utf8)
            #expect(StreamPlace.first(in: stream.span) == StreamPlace(offset: 0, isHeader: true))
        }
    }

    @Test(
        "A login on a connection opened before the capture is recorded, on any port",
        arguments: [5222, 33_000, 50_000] as [UInt16]
    )
    func withoutOpening(port: UInt16) throws {
        let parts: [(Direction, String)] = [
            (.send, Self.header),
            (.recv, Self.header + "<stream:features/>"),
            (.send, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"),
            (.recv, "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>"),
        ]
        let lines = try Self.records(Self.file(parts, port: port, isWhole: false))
        let codes = lines.compactMap(\.record.code)
        #expect(codes.contains(Record.Code.loginFailed) && !codes.contains("inferred"), "\(codes)")
        // From the server's answer on: it is read, and the data before it is unknown.
        let late = try Self.records(Self.file(Array(parts[2...]), port: port, isWhole: false))
        let names = late.compactMap { line in line.record.name.map { line.content.span.slice($0).string() } }
        #expect(names.contains("auth") && names.last == "failure", "\(names)")
        #expect(!late.contains { $0.record.code == "bytes-missed" })
        // The server speaks first.
        let answer = try Self.records(Self.file(Array(parts[1...]), port: port, isWhole: false))
        let last = try #require(answer.last { $0.record.kind == .element })
        #expect(last.record.direction == .recv && last.record.remote == "192.0.2.1:40000")
    }

    // MARK: WebSocket

    private static let stanza = "<message xmlns='jabber:client' to='romeo@example.net'><body>hi</body></message>"

    /// The packets of a session over WebSocket: each message is one packet.
    private static func webSocketParts(_ messages: [(Direction, String)]) -> [(Direction, [UInt8])] {
        WebSocketConversation.handshake.map { ($0.0, Array($0.1.utf8)) }
            + messages.map { ($0.0, WebSocketConversation.frame($0.1, from: $0.0)) }
    }

    @Test("A session over WebSocket is read on any port, with the facts of its handshake")
    func readsWebSocket() throws {
        let parts = Self.webSocketParts(WebSocketConversation.login + [(.send, Self.stanza)])
        for length in [1, 40, 100_000] {
            let pieces = parts.flatMap { direction, bytes in
                stride(from: 0, to: bytes.count, by: length).map {
                    (direction, Array(bytes[$0..<min($0 + length, bytes.count)]))
                }
            }
            let lines = try Self.records(Self.file(bytes: pieces, port: 8080))
            let began = try #require(lines.first { $0.record.code == Record.Code.sessionBegan }?.record)
            #expect(began.details?["transport"]?.text == "websocket")
            let opened = try #require(lines.first { $0.record.code == "websocket-opened" }?.record)
            #expect(opened.details?["origin"]?.text == "https://chat.example.org")
            #expect(opened.details?["path"]?.text == "/xmpp-websocket")
            #expect(lines.contains { $0.record.code == Record.Code.sessionReady })
            let items = lines.filter(\.record.kind.isStreamItem)
            #expect(items.count == WebSocketConversation.login.count + 1)
            let last = try #require(items.last)
            #expect(last.record.xml.map { last.content.span.slice($0).string() } == Self.stanza)
        }
    }

    @Test("After a lost packet of a WebSocket, the next frame is found")
    func findsTheNextFrame() throws {
        let parts = Self.webSocketParts(
            WebSocketConversation.login + [(.send, Self.stanza), (.send, Self.stanza), (.send, Self.stanza)]
        )
        let lines = try Self.records(Self.file(bytes: parts, port: 8080, lost: [parts.count - 2]))
        #expect(lines.filter { $0.record.kind == .stanza && $0.record.direction == .send }.count == 3)
        #expect(lines.filter { $0.record.code == "bytes-missed" }.count == 1)
        #expect(!lines.contains { $0.record.kind == .error })
    }

    // MARK: Compressed WebSockets

    /// The packets of a session whose peers have agreed on permessage-deflate with these parameters.
    private static func compressedParts(
        _ messages: [(Direction, String)],
        _ parameters: String = ""
    ) -> [(Direction, [UInt8])] {
        let isFresh = parameters.contains("no_context_takeover")
        let bits = parameters.contains("bits=9") ? 9 : 15
        let (send, recv) = (DeflatedFrames(.send, bits, isFresh), DeflatedFrames(.recv, bits, isFresh))
        return DeflatedFrames.handshake(parameters)
            + messages.map { direction, text in
                (direction, (direction == .send ? send : recv).frames(of: text))
            }
    }

    @Test(
        "The messages of a compressed WebSocket are decoded, in every split of its packets",
        arguments: [
            "", "; server_no_context_takeover; client_no_context_takeover",
            "; server_max_window_bits=9; client_max_window_bits=9",
        ]
    )
    func inflates(parameters: String) throws {
        let messages = WebSocketConversation.login + [(.send, Self.stanza), (.recv, Self.stanza), (.send, Self.stanza)]
        let plain = try Self.records(Self.file(bytes: Self.webSocketParts(messages), port: 8080))
        func items(_ lines: [RecordLine]) -> [String] {
            lines.filter(\.record.kind.isStreamItem).map { line in
                let xml = line.record.xml.map { line.content.span.slice($0).string() } ?? ""
                return "\(line.record.direction == .send) \(line.record.offset) \(line.record.length) \(xml)"
            }
        }
        let parts = Self.compressedParts(messages, parameters)
        for length in [1, 7, 100_000] {
            let pieces = parts.flatMap { direction, bytes in
                stride(from: 0, to: bytes.count, by: length).map {
                    (direction, Array(bytes[$0..<min($0 + length, bytes.count)]))
                }
            }
            let lines = try Self.records(Self.file(bytes: pieces, port: 8080))
            #expect(items(lines) == items(plain))
            #expect(items(lines).count == messages.count)
            #expect(!lines.contains { $0.record.kind == .error || $0.record.code == "websocket-compression" })
        }
    }

    @Test("A damaged or too large compressed message is reported, and the other direction is still decoded")
    func reportsDamagedCompression() throws {
        let bomb = DeflatedFrames(.send, 15, false).frames(of: String(repeating: "<", count: (16 << 20) + 1))
        for (bytes, reason) in [
            (WebSocketConversation.frame("\u{7}\u{7}\u{7}", from: .send), "damaged"), (bomb, "more than 16777216"),
        ] {
            var parts = Self.compressedParts(WebSocketConversation.login)
            var bytes = bytes
            bytes[0] |= 0x40
            parts.append((.send, bytes))
            let recv = DeflatedFrames(.recv, 15, true)
            parts.append((.send, bytes))
            parts.append((.recv, recv.frames(of: Self.stanza)))
            let lines = try Self.records(Self.file(bytes: parts, port: 8080))
            let remarks = lines.filter { $0.record.code == "websocket-compression" }
            #expect(remarks.count == 1)
            let remark = try #require(remarks.first?.record)
            #expect(remark.direction == .send && remark.level == .warn)
            #expect(remark.message.map { "\($0)" }?.contains(reason) == true, "\(remark.message ?? "")")
            #expect(lines.last { $0.record.kind == .stanza }?.record.direction == .recv)
            #expect(lines.contains { $0.record.code == "bytes-missed" && $0.record.direction == .send })
        }
    }

    @Test("After lost bytes of a compressed WebSocket, the rest of the direction is not decoded")
    func reportsLostCompression() throws {
        let parts = Self.compressedParts(
            WebSocketConversation.login + [(.send, Self.stanza), (.send, Self.stanza), (.recv, Self.stanza)]
        )
        let lines = try Self.records(Self.file(bytes: parts, port: 8080, lost: [parts.count - 3]))
        #expect(lines.filter { $0.record.code == "websocket-compression" }.count == 1)
        #expect(lines.last { $0.record.kind == .stanza }?.record.direction == .recv)
        #expect(!lines.contains { $0.record.kind == .error })
    }

    @Test("Extensions that cannot be decoded are reported")
    func reportsOtherExtensions() throws {
        let parts = DeflatedFrames.handshake("; unknown=1")
        let lines = try Self.records(Self.file(bytes: parts, port: 8080))
        #expect(lines.filter { $0.record.code == "websocket-extension" }.count == 1)
    }

    @Test("A handshake that fails is a session with the server's status")
    func reportsTheStatus() throws {
        let answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
        let parts = [WebSocketConversation.handshake[0], (.recv, answer)]
        let lines = try Self.records(Self.file(parts, port: 8080))
        let remark = try #require(lines.first { $0.record.code == "websocket-refused" }?.record)
        #expect(remark.message.map { "\($0)" }?.contains("HTTP 403") == true)
        #expect(!lines.contains { $0.content.span.contains(Array("s3cr3t".utf8).span) })
    }
}
