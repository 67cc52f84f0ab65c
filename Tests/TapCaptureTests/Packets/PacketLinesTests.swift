import Glibc
import TapRecord
import TapRules
import TapSecurity
import TapTestKit
import Testing
import XMPPCore

@testable import TapCapture

@Suite("Formatting of packets' records on several threads")
struct PacketLinesTests {
    /// The packets of several clients at the same time.
    private struct Capture {
        private var time: Int64 = 1_700_000_000_000_000_000
        private(set) var packets: [(Int64, [UInt8])] = []
        private var next: [[UInt32]] = []

        var file: [UInt8] { PacketBuilder.pcap(packets) }

        /// Begins a connection; gives its number.
        mutating func begin() -> Int {
            next.append([1000, 5000])
            let client = next.count - 1
            add(client, .send, "", .syn)
            add(client, .recv, "", .syn)
            return client
        }

        mutating func add(_ client: Int, _ direction: Direction, _ text: String, _ flags: TCPSegment.Flags = []) {
            let own = PacketBuilder.End(address: [192, 0, 2, 1], port: UInt16(40_000 + client))
            let (one, other) = direction == .send ? (own, PacketBuilder.End.server) : (.server, own)
            let (mine, peers) = direction == .send ? (0, 1) : (1, 0)
            let segment = PacketBuilder.tcp(
                one,
                other,
                sequence: next[client][mine],
                acknowledgement: flags == .syn && direction == .send ? nil : next[client][peers],
                flags: flags,
                Array(text.utf8)
            )
            next[client][mine] += UInt32(text.utf8.count) + (flags.isEmpty ? 0 : 1)
            time += 1_000_000
            packets.append((time, PacketBuilder.version4(one, other, segment)))
        }
    }

    private static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' %@='example.org' version='1.0'>"

    private static func header(_ attribute: String) -> String {
        header.split(separator: "%@", maxSplits: 1).joined(separator: attribute)
    }

    /// Logins with the same and other passwords, requests that are answered late or never, resumption of a session on
    /// another connection, ends in order and without.
    private static func conversation(rounds: Int = 120) -> Capture {
        var capture = Capture()
        func step(_ clients: [Int], _ direction: Direction, _ text: (Int) -> String) {
            for client in clients { capture.add(client, direction, text(client)) }
        }
        let features =
            "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism>"
        func login(_ clients: [Int]) {
            step(clients, .send) { _ in header("to") }
            step(clients, .recv) { _ in header("from") + features + "</mechanisms></stream:features>" }
            step(clients.reversed(), .send) {
                let password = ["AHVzZXIAc2VjcmV0", "AHVzZXIAaGlkZGVu", "AHVzZXIAdGhpcmQ="][$0 % 3]
                return "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(password)</auth>"
            }
            step(clients, .recv) { _ in "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>" }
            step(clients, .send) { _ in header("to") }
            step(clients, .recv) { _ in
                header("from") + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
                    + "<sm xmlns='urn:xmpp:sm:3'/></stream:features>"
            }
        }
        let clients = (0..<9).map { _ in capture.begin() }
        login(clients)
        step(clients, .send) { _ in "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>" }
        step(clients, .recv) {
            "<iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>u\($0)@example.org/x</jid></bind></iq>"
        }
        step([4], .send) { _ in "<enable xmlns='urn:xmpp:sm:3' resume='true'/>" }
        step([4], .recv) { _ in "<enabled xmlns='urn:xmpp:sm:3' id='again' resume='true'/>" }
        for round in 0..<rounds {
            step(clients, .send) {
                "<iq type='get' id='q\(round)' to='p\($0).example'><ping xmlns='urn:xmpp:ping'/></iq>"
            }
            step(clients.reversed(), .recv) { client in
                round % 7 == client % 7
                    ? "<message from='p\(client).example'><body>later &amp; later</body></message>"
                    : "<iq type='result' id='q\(round - round % 2)' from='p\(client).example'/>"
            }
            step([round % 9], .send) {
                "<iq type='set' id='r\(round)'><query xmlns='jabber:iq:register'><username>u</username>"
                    + "<password>secret\(($0 + round) % 5)</password></query></iq>"
            }
        }
        let other = capture.begin()
        step([other], .send) { _ in header("to") }
        step([other], .recv) { _ in header("from") + features + "</mechanisms></stream:features>" }
        step([other], .send) { _ in
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHVzZXIAaGlkZGVu</auth>"
        }
        step([other], .recv) { _ in "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>" }
        step([other], .send) { _ in header("to") }
        step([other], .recv) { _ in header("from") + "<stream:features><sm xmlns='urn:xmpp:sm:3'/></stream:features>" }
        step([other], .send) { _ in "<resume xmlns='urn:xmpp:sm:3' previd='again' h='3'/>" }
        step([other], .recv) { _ in "<resumed xmlns='urn:xmpp:sm:3' previd='again' h='3'/>" }
        step(clients.filter { $0 % 2 == 0 }, .send) { _ in "</stream:stream>" }
        for client in clients.dropLast(2) {
            capture.add(client, .send, "", .fin)
            capture.add(client, .recv, "", .fin)
        }
        return capture
    }

    private static func part(_ file: [UInt8], _ keys: KeyLog? = nil) throws -> PacketPart {
        let bytes = InputBytes(descriptor: open("/dev/null", O_RDONLY), owned: true, first: file)
        return try PacketPart(
            .pcap,
            bytes,
            "x.pcap",
            Decoding(advice: nil, redaction: .secrets, zone: .utc),
            keys ?? KeyLog()
        )
    }

    /// The text of lines formed by several threads.
    private static func text(_ part: PacketPart, _ spec: LogSpec, _ filter: RecordFilter?) throws -> String {
        try #require(part.formLines(workers: 3) { LineMaker(LogFilter(spec), filter, TextForm.Style()) })
        var text = ""
        while let lines = part.nextLines() {
            var (bytes, ends): ([UInt8], [Int]) = ([], [])
            lines.append(to: &bytes, &ends)
            text += String(decoding: bytes, as: UTF8.self)
            #expect(ends.allSatisfy { bytes[$0 - 1] == 0x0A } && ends == ends.sorted())
            #expect(lines.recordCount == ends.count && lines.byteCount == bytes.count)
        }
        return text
    }

    /// The text of the lines of the records.
    private static func expected(_ part: PacketPart, _ spec: LogSpec, _ filter: RecordFilter?) -> String {
        var form = TextForm()
        var expected = LineBuffer()
        while let line = part.next() {
            let (shown, content) = (LogFilter(spec).shown(of: line.record), line.content.span)
            guard !shown.isEmpty, filter?.matches(line.record, content: content) ?? true else { continue }
            form.append(line.record, content: content, shown, to: &expected)
        }
        return expected.text
    }

    @Test(
        "Several threads format the same lines as one thread",
        arguments: ["verbose", "info", "send,recv", "warn"]
    )
    func lines(_ words: String) throws {
        let file = Self.conversation().file
        let spec = try LogSpec(words)
        let filter = words == "verbose" ? nil : try RecordFilter("not payload:{urn:xmpp:ping}ping")
        let expected = Self.expected(try Self.part(file), spec, filter)
        #expect(expected.count > (words == "warn" ? 0 : 100_000))
        for _ in 0..<10 {
            let part = try Self.part(file)
            #expect(try Self.text(part, spec, filter) == expected)
            #expect(part.next() == nil && part.takeFault() == nil)
        }
    }

    @Test("A truncated file is read up to its end, and then the fault is reported")
    func truncated() throws {
        let file = Array(Self.conversation().file.dropLast(5))
        let spec = try LogSpec("verbose")
        let alone = try Self.part(file)
        let expected = Self.expected(alone, spec, nil)
        let part = try Self.part(file)
        #expect(try Self.text(part, spec, nil) == expected)
        let fault = part.takeFault()
        #expect(fault == .truncated(at: UInt64(file.count)) && fault == alone.takeFault())
        #expect(part.takeFault() == nil)
    }

    @Test("The threads end when their lines are no longer needed")
    func abandoned() throws {
        var keys: KeyLog? = KeyLog()
        weak let held = keys
        var part: PacketPart? = try Self.part(Self.conversation(rounds: 600).file, keys)
        keys = nil
        let spec = try LogSpec("verbose")
        try #require(part?.formLines(workers: 2) { LineMaker(LogFilter(spec), nil, TextForm.Style()) } == true)
        #expect(part?.nextLines() != nil)
        #expect(held != nil)
        part = nil
        // The threads hold the key log as long as they run.
        for _ in 0..<12_000 where held != nil { usleep(5_000) }
        #expect(held == nil)
    }
}
