import Foundation
import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCapture

@Suite("Export of recordings as packets")
struct PacketExportTests {
    private static let header = RecordHeader(
        tool: "xmpptap",
        time: Timestamp(nanoseconds: 0),
        level: "verbose",
        isComplete: true,
        redaction: .none,
        run: "a"
    )

    /// A login with stanzas behind it, one of them in many segments and one that a rule dropped.
    private static func lines(isEnded: Bool = true) -> [RecordLine] {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.dropLast(2)))
        harness.send("<message id='large'><body>\(String(repeating: "a>", count: 80_000))</body></message>")
        harness.recv(" ")
        harness.recv("<message id='dropped'><body>🎭</body></message>")
        harness.say(Array(Conversations.plainLogin.suffix(2)))
        if isEnded { harness.close() }
        return harness.told.map { told in
            var record = told.record
            if told.xml?.contains("dropped") == true {
                record.action = "dropped"
                record.rule = "quiet.pfw:4"
            }
            return RecordLine(record.shown, content: told.content.span)
        }
    }

    /// A file of packets with these records, each session in a separate run.
    private static func file(_ runs: [[RecordLine]], in folder: TemporaryFolder) throws -> (
        path: String, missing: UInt64
    ) {
        var export = PacketExport(tool: "xmpptap test")
        var header = header
        var bytes: [UInt8] = []
        for (index, run) in runs.enumerated() {
            header.run = "run \(index)"
            export.add(header)
            for line in run { export.add(line) }
            bytes += export.takeBytes()
        }
        export.finish()
        bytes += export.takeBytes()
        #expect(export.waitingBytes == 0)
        let path = folder.path(of: "out.pcapng")
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return (path, export.missing)
    }

    /// Whether a record is a stanza, or what else of a stream is shown as one.
    private static func xml(_ lines: [RecordLine], _ kinds: Set<Record.Kind>) -> [String] {
        lines.compactMap { line in
            guard kinds.contains(line.record.kind), line.record.part != .tls, let xml = line.record.xml else {
                return nil
            }
            return line.content.span.slice(xml).string()
        }
    }

    private static func read(_ path: String) throws -> [RecordLine] {
        let reader = try RecordReader([path])
        var lines: [RecordLine] = []
        while let entry = try reader.next() {
            switch entry {
            case .record(let line): lines.append(line)
            case .header: break
            case .damage(let line): Issue.record("\(line)")
            case .gap(let gap): Issue.record("\(gap)")
            }
        }
        return lines
    }

    private static func isExchanged(_ kind: Record.Kind) -> Bool {
        switch kind {
        case .streamOpen, .stanza, .element, .streamClose: true
        default: false
        }
    }

    @Test(
        "Every item of a recording is read back from the exported packets, with its time and order",
        arguments: [true, false]
    )
    func thereAndBack(isEnded: Bool) throws {
        let lines = Self.lines(isEnded: isEnded)
        let folder = try TemporaryFolder()
        let file = try Self.file([lines], in: folder)
        #expect(file.missing == 0)
        let read = try Self.read(file.path)
        let said = lines.filter { Self.isExchanged($0.record.kind) }
        let found = read.filter { Self.isExchanged($0.record.kind) }
        #expect(Self.xml(found, Set(Record.Kind.allCases)) == Self.xml(said, Set(Record.Kind.allCases)))
        #expect(found.map(\.record.direction) == said.map(\.record.direction))
        #expect(found.map(\.record.time) == said.map(\.record.time))
        #expect(found.count > 15)
        let end = read.first { $0.record.code == Record.Code.sessionEnded }?.record.details?["close_reason"]?.text
        #expect(end == "closed")
        #expect(read.contains { $0.record.code == Record.Code.sessionReady })
    }

    @Test("Data before TLS and the TLS negotiation are not exported")
    func startTLS() throws {
        var lines = Self.lines()
        let template = try #require(lines.first)
        func record(_ kind: Record.Kind, _ direction: Direction?, _ xml: String, _ code: String? = nil) -> RecordLine {
            var record = template.record
            record.kind = kind
            record.code = code
            record.direction = direction
            record.leg = direction?.source ?? .client
            if xml.contains("xmpp-tls") { record.part = .tls }
            record.xml = ByteRange(0, xml.utf8.count)
            return RecordLine(record.shown, content: Array(xml.utf8).span)
        }
        let opening =
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
        var onServer = record(.tls, nil, "", Record.Code.tlsOpened).record
        onServer.leg = .server
        let inClear = [
            record(.streamOpen, .send, opening), record(.streamOpen, .recv, opening),
            record(.element, .recv, "<stream:features><clear/></stream:features>"),
            record(.element, .send, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
            record(.element, .recv, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
            RecordLine(onServer.shown, content: template.content.span),
            record(.tls, nil, "", Record.Code.tlsOpened),
        ]
        lines.insert(contentsOf: inClear, at: 1)
        let folder = try TemporaryFolder()
        let file = try Self.file([lines], in: folder)
        let bytes = String(decoding: try Data(contentsOf: URL(fileURLWithPath: file.path)), as: UTF8.self)
        #expect(!bytes.contains("xmpp-tls") && !bytes.contains("<clear/>"))
        let kinds: Set<Record.Kind> = [.stanza]
        #expect(Self.xml(try Self.read(file.path), kinds) == Self.xml(Self.lines(), kinds))
    }

    @Test("Items without recorded XML are counted; all other items are exported")
    func missing() throws {
        let lines = Self.lines().map { line in
            guard line.record.kind == .stanza, line.record.direction == .recv else { return line }
            var record = line.record
            record.xml = nil
            return RecordLine(record.shown, content: line.content.span)
        }
        let gone = lines.filter { $0.record.kind == .stanza && $0.record.xml == nil }
        let folder = try TemporaryFolder()
        let file = try Self.file([lines], in: folder)
        #expect(file.missing == UInt64(gone.count) && !gone.isEmpty)
        let kinds: Set<Record.Kind> = [.stanza]
        #expect(Self.xml(try Self.read(file.path), kinds) == Self.xml(lines, kinds))
    }

    @Test(
        "Addresses in records are parsed",
        arguments: [
            ("192.0.2.1:40000", "192.0.2.1:40000"), ("[2001:db8::1]:5222", "[2001:db8::1]:5222"),
            ("[::]:1", "[::]:1"), ("[fe80::1%eth0]:2", "[fe80::1]:2"), ("[1:2:3:4:5:6:7:8]:3", "[1:2:3:4:5:6:7:8]:3"),
            ("[1::8]:65535", "[1::8]:65535"),
            ("localhost:1", nil), ("192.0.2:1", nil), ("192.0.2.256:1", nil), ("192.0.2.1", nil), ("[::1]", nil),
            ("[1:2]:3", nil), ("[1::2::3]:4", nil), ("[1:2:3:4:5:6:7:8:9]:1", nil), ("[:]:1", nil), ("", nil),
            ("[1:2:3:4::5:6:7:8]:1", nil),
        ] as [(String, String?)]
    )
    func addresses(text: String, address: String?) { #expect(PacketEndpoint(text)?.description == address) }

    @Test(
        "tshark shows every exported stanza as XMPP, with valid checksums and the rule's action",
        .enabled(if: TestProgram.tshark.isInstalled, "tshark is missing"),
        arguments: ["192.0.2.7:40000", "[2001:db8::7]:40000"]
    )
    func tshark(remote: String) async throws {
        let lines = Self.lines().map { line in
            var record = line.record
            record.remote = remote
            return RecordLine(record.shown, content: line.content.span)
        }
        // The same again is another run.
        let folder = try TemporaryFolder()
        let file = try Self.file([lines, lines], in: folder)
        let kinds: Set<Record.Kind> = [.stanza]
        let stanzas = Self.xml(lines, kinds).count * 2
        #expect(
            try await Self.tshark(file.path, "xmpp.iq or xmpp.message or xmpp.presence").count == stanzas
        )
        #expect(try await Self.tshark(file.path, "xmpp.message and frame contains \"🎭\"").count == 2)
        #expect(try await Self.tshark(file.path, "tcp.checksum.status == 0 or ip.checksum.status == 0").isEmpty)
        #expect(
            try await Self.tshark(
                file.path,
                "tcp.analysis.retransmission or tcp.analysis.lost_segment or tcp.analysis.out_of_order"
            ).isEmpty
        )
        #expect(try await Self.tshark(file.path, "frame.comment == \"dropped, rule quiet.pfw:4\"").count == 2)
        #expect(try await Self.tshark(file.path, "frame.comment == \"session 1 of run 2\"").count == 1)
        #expect(try await Self.tshark(file.path, "tcp.stream == 1").count > stanzas / 2)
        #expect(try await Self.tshark(file.path, "frame.interface_name == \"server\"").count > 4)
    }

    /// The packets that a filter of Wireshark finds.
    private static func tshark(_ path: String, _ filter: String) async throws -> [String] {
        let flags = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
        let process = try ToolProcess(TestProgram.tshark.rawValue, ["-r", path, "-Y", filter] + flags)
        #expect(try await process.ending() == .exited(0), "\(process.text(of: .standardError))")
        return process.lines(of: .standardOutput)
    }

    @Test("A long run of > characters makes as few packets as other text")
    func runOfSigns() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.dropLast(2)))
        let item = "<message><body>\(String(repeating: ">", count: 66_500))</body></message>"
        harness.send(item)
        let folder = try TemporaryFolder()
        let file = try Self.file(
            [harness.told.map { RecordLine($0.record.shown, content: $0.content.span) }],
            in: folder
        )
        let size = try Data(contentsOf: URL(fileURLWithPath: file.path)).count
        #expect(size < 80_000)
        #expect(try Self.read(file.path).contains { $0.record.xml.map(\.count) == item.utf8.count })
    }

    /// A login over WebSocket with a large message.
    private static func webSocketLines() -> [RecordLine] {
        var options = SessionOptions(level: .trace)
        options.framing = .messages
        var harness = SessionHarness(options: options)
        harness.handle(.upgraded(WebSocketUpgrade(path: "/xmpp-websocket")))
        let large =
            "<message xmlns='jabber:client' id='l'><body>\(String(repeating: "a>", count: 80_000))</body></message>"
        for (direction, text) in WebSocketConversation.login + [(.send, large), (.send, WebSocketConversation.close)] {
            harness.receive(direction, WebSocketConversation.frame(text, from: direction))
        }
        harness.close()
        return harness.told.map { RecordLine($0.record.shown, content: $0.content.span) }
    }

    @Test("A session over WebSocket is exported in frames, which are read back, and which tshark shows")
    func webSocket() async throws {
        let lines = Self.webSocketLines()
        let folder = try TemporaryFolder()
        let file = try Self.file([lines], in: folder)
        let said = lines.filter { Self.isExchanged($0.record.kind) }
        let found = try Self.read(file.path).filter { Self.isExchanged($0.record.kind) }
        #expect(Self.xml(found, Set(Record.Kind.allCases)) == Self.xml(said, Set(Record.Kind.allCases)))
        #expect(found.map(\.record.time) == said.map(\.record.time))
        guard TestProgram.tshark.isInstalled else { return }
        #expect(try await Self.tshark(file.path, "websocket.fin == 1").count == said.count)
        #expect(try await Self.tshark(file.path, "http.request.uri == \"/xmpp-websocket\"").count == 1)
    }

    @Test("A stored session over WebSocket gives the same records when it is read again")
    func readsWebSocketAgain() throws {
        let lines = Self.webSocketLines()
        var source = CaptureSource()
        var runner = SourceRunner(run: Run(), options: CaptureSource.options)
        var again: [RecordLine] = []
        for line in lines {
            source.add(line)
            runner.process(&source) { again.append($0) }
        }
        func text(_ lines: [RecordLine]) -> [String] {
            lines.filter { $0.record.level <= .verbose }.map { line in
                let xml = line.record.xml.map { line.content.span.slice($0).string() } ?? ""
                return
                    "\(line.record.kind) \(line.record.code ?? "") \(line.record.message.map { "\($0)" } ?? "") \(xml)"
            }
        }
        #expect(text(again) == text(lines))
        #expect(again.count > 20)
    }
}
