import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules

/// Tests with two conforming peers that use stream management, and rules between them.
@Suite struct RulePropertyTests {
    @Test(arguments: 0..<8) func `except for dropped ones, stanzas are neither lost, duplicated nor reordered`(
        part: Int
    ) throws {
        for seed in part * 40..<(part + 1) * 40 {
            var world = try RuleWorld(seed: UInt64(seed))
            for _ in 0..<150 { world.step() }
            world.finish()
        }
    }

    @Test func `EVERY decides the same for a retransmitted stanza`() throws {
        let run = Run()
        let rules = "::send\n\nKIND: message\nEVERY: 2\nDROP."
        func message(_ number: Int) -> String { "<message id='m\(number)'/>" }
        var options = SessionOptions(level: .trace)
        options.rules = LiveRules(try RuleSet.test(rules)) { _ in RuleLocalTime() }
        var scene = RuleScene(options, run: run, enablesStreamManagement: true)
        #expect(scene.send((1...5).map(message).joined()).server == message(1) + message(3) + message(5))
        scene.harness.end(.client, .reset)
        scene.harness.close()

        scene = RuleScene(options, run: run, turns: 8)
        _ = scene.send("<resume xmlns='urn:xmpp:sm:3' h='0' previd='i1'/>")
        // The server has handled the first stanza that it received.
        _ = scene.recv("<resumed xmlns='urn:xmpp:sm:3' h='1' previd='i1'/>")
        #expect(scene.send((3...6).map(message).joined()).server == message(3) + message(5))
        #expect(scene.send(message(7)).server == message(7))
    }
}

/// A peer whose sent and received stanzas are counted exactly as XEP-0198 requires.
private struct HonestEnd: ~Copyable {
    private(set) var sent: [String] = []
    /// The number of sent stanzas that the other peer has acknowledged.
    private(set) var acknowledged = 0
    /// The ids of the handled stanzas. An error or a reply has the id of the stanza that it answers.
    private(set) var got: [String] = []
    /// The written bytes that xmpptap has not read yet.
    var outgoing: [UInt8] = []
    private var decoder = HonestEnd.begin()

    init() {}

    private static func begin() -> StreamDecoder {
        var decoder = StreamDecoder(limits: .authenticated)
        let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        decoder.append(Array(header.utf8).span)
        _ = decoder.next()
        return decoder
    }

    var handled: Int { got.count }

    mutating func write(_ text: String) { outgoing += Array(text.utf8) }

    mutating func send(_ stanza: String) {
        sent.append(stanza)
        write(stanza)
    }

    /// Discards all unread data, as if the connection were lost.
    mutating func disconnect() {
        outgoing = []
        decoder = Self.begin()
    }

    /// Resumes after the other peer has handled `count` stanzas, and sends the remaining ones again.
    mutating func resume(_ count: Int) {
        acknowledge(count)
        for stanza in sent[acknowledged...] { write(stanza) }
    }

    private mutating func acknowledge(_ count: Int) {
        #expect(count >= acknowledged && count <= sent.count, "h=\(count) of \(sent.count), \(acknowledged) before")
        acknowledged = min(max(count, acknowledged), sent.count)
    }

    /// Reads bytes from xmpptap; returns the resumption that they contain, if any.
    mutating func read(_ bytes: some Sequence<UInt8>) -> (name: String, h: Int)? {
        decoder.append(Array(bytes).span)
        var resumption: (name: String, h: Int)?
        while let event = decoder.next() {
            guard case .item(.element) = event.kind, let element = try? StanzaParser().parse(decoder) else { continue }
            let h = element.attribute("h").flatMap { Int($0) } ?? -1
            switch element.name {
            case "r": write("<a xmlns='urn:xmpp:sm:3' h='\(handled)'/>")
            case "a": acknowledge(h)
            case "resume", "resumed": resumption = (element.name, h)
            case "message": got.append("\(element.attribute("type") ?? "") \(element.attribute("id") ?? "")")
            default: Issue.record("\(element.name)")
            }
        }
        return resumption
    }
}

/// A session with random rules, its two peers, and the expected effects of the rules.
private struct RuleWorld: ~Copyable {
    private static let rules: [(kind: String, actions: String)] = [
        ("drop", "DROP."), ("bounce", "BOUNCE=not-allowed"), ("reply", "REPLY=hello"),
        ("delay", "DELAY=50ms (jitter 30ms)"),
        ("copy", "DUPLICATE=1"), ("edit", "SET=body#=edited"), ("pause", "PAUSE."),
        ("some", "EVERY: 3\nDROP."), ("late", "DELAY=20ms\nDUPLICATE=2"), ("stall", "EVERY: 2\nSTALL=70ms"),
    ]
    private let seed: UInt64
    private var random: SeededGenerator
    private let run = Run()
    private let options: SessionOptions
    private var harness: SessionHarness
    private let kinds: Set<String>
    private var client = HonestEnd()
    private var server = HonestEnd()
    /// The number of bytes that each peer has read of its input.
    private var read = (client: 0, server: 0)
    private var number = 0
    private var kind: [String: String] = [:]
    private var order: (client: [String], server: [String]) = ([], [])

    init(seed: UInt64) throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        let chosen = Self.rules.shuffled(using: &random).prefix(.random(in: 1...Self.rules.count, using: &random))
        let chains = ["::both", "::both", "::send", "::recv"]
        let chain = chains.randomElement(using: &random) ?? "::both"
        let text = chosen.map { "KIND: message\nNOT TYPE: error\nINSPECT: body#=\($0.kind)\n\($0.actions)\n\n" }
        var options = SessionOptions(level: .info)
        options.rules = LiveRules(try RuleSet.test("\(chain)\n\n" + text.joined())) { _ in RuleLocalTime() }
        self.options = options
        var kinds = Set(chosen.map(\.kind))
        for direction in [("::send", "c"), ("::recv", "s")] where chain == direction.0 {
            kinds.insert("only \(direction.1)")
        }
        self.kinds = kinds
        harness = SessionHarness(options: options, run: run)
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
        harness.recv("<enabled xmlns='urn:xmpp:sm:3' resume='true' id='i1' max='600'/>")
        read = (harness.toClient.count, harness.toServer.count)
    }

    mutating func step() {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<30: send()
        case 30..<55: write(Int.random(in: 1...120, using: &random))
        case 55..<75: readSome(Int.random(in: 1...300, using: &random))
        case 75..<82:
            if Bool.random(using: &random) { client.write(Self.request) } else { server.write(Self.request) }
        case 82..<92: harness.wait(.random(in: 1...60, using: &random) * 1_000_000)
        case 92..<97: release()
        default: reconnect()
        }
    }

    private static let request = "<r xmlns='urn:xmpp:sm:3'/>"

    private mutating func send() {
        number += 1
        let isClient = Bool.random(using: &random)
        let id = "\(isClient ? "c" : "s")\(number)"
        let kind = (Self.rules.map(\.kind) + ["plain"]).randomElement(using: &random) ?? "plain"
        self.kind[id] = kind
        let address = isClient ? "to='romeo@example.net'" : "from='romeo@example.net/x'"
        let stanza = "<message \(address) id='\(id)'><body>\(kind)</body></message>"
        if isClient { order.client.append(id) } else { order.server.append(id) }
        if isClient { client.send(stanza) } else { server.send(stanza) }
    }

    /// Passes bytes of a random peer to xmpptap.
    private mutating func write(_ count: Int) {
        if Bool.random(using: &random) {
            let bytes = Array(client.outgoing.prefix(count))
            client.outgoing.removeFirst(bytes.count)
            if !bytes.isEmpty { harness.receive(.send, bytes) }
        } else {
            let bytes = Array(server.outgoing.prefix(count))
            server.outgoing.removeFirst(bytes.count)
            if !bytes.isEmpty { harness.receive(.recv, bytes) }
        }
    }

    private mutating func readSome(_ count: Int) {
        if Bool.random(using: &random) { _ = readClient(count) } else { _ = readServer(count) }
    }

    private mutating func readClient(_ count: Int) -> (name: String, h: Int)? {
        let bytes = harness.toClient[read.client...].prefix(count)
        read.client += bytes.count
        return client.read(bytes)
    }

    private mutating func readServer(_ count: Int) -> (name: String, h: Int)? {
        let bytes = harness.toServer[read.server...].prefix(count)
        read.server += bytes.count
        return server.read(bytes)
    }

    private mutating func release() {
        if let held = harness.session.heldItems.first { harness.handle(.release(held.number, .pass)) }
    }

    /// Loses the connection with all bytes in transit, and resumes the session on another connection.
    private mutating func reconnect() {
        harness.end(.client, .reset)
        harness.close()
        let now = harness.now
        harness = SessionHarness(options: options, run: run)
        harness.now = now.advanced(by: 1_000_000)
        harness.say(Array(Conversations.plainLogin.prefix(8)))
        read = (harness.toClient.count, harness.toServer.count)
        client.disconnect()
        server.disconnect()
        harness.send("<resume xmlns='urn:xmpp:sm:3' h='\(client.handled)' previd='i1'/>")
        guard let resume = readServer(.max) else { return }
        harness.recv("<resumed xmlns='urn:xmpp:sm:3' h='\(server.handled)' previd='i1'/>")
        server.resume(resume.h)
        var answer: (name: String, h: Int)?
        answer = readClient(.max)
        #expect(answer?.name == "resumed", "seed \(seed)")
        if let answer { client.resume(answer.h) }
    }

    /// Delivers all bytes in transit, and checks that both peers acknowledge all stanzas.
    mutating func finish() {
        for round in 0..<60 {
            if round == 40 || round == 50 {
                client.write(Self.request)
                server.write(Self.request)
            }
            for _ in 0..<4 { write(.max) }
            harness.wait(100_000_000)
            while !harness.session.heldItems.isEmpty { release() }
            _ = readClient(.max)
            _ = readServer(.max)
        }
        let isQuiet = client.outgoing.isEmpty && server.outgoing.isEmpty && harness.session.releaseDeadline == nil
        #expect(isQuiet, "seed \(seed)")
        let (clientSent, serverSent) = (client.sent.count, server.sent.count)
        #expect(client.acknowledged == clientSent && server.acknowledged == serverSent, "seed \(seed)")
        check(order.client, gotByReceiver: server.got, bySender: client.got, "c")
        check(order.server, gotByReceiver: client.got, bySender: server.got, "s")
    }

    private func check(_ ids: [String], gotByReceiver: [String], bySender: [String], _ side: String) {
        let hasRules = !kinds.contains { $0.hasPrefix("only ") } || kinds.contains("only \(side)")
        var first: [String] = []
        for id in ids {
            let kind = kind[id].flatMap { hasRules && kinds.contains($0) ? $0 : nil } ?? "plain"
            let count = gotByReceiver.count { $0 == " \(id)" }
            let expected =
                switch kind {
                case "drop", "bounce": 0...0
                // If the connection is lost after the stanza and before its copy, the copy is not sent again.
                case "copy": 1...2
                case "late": 1...3
                case "some": 0...1
                default: 1...1
                }
            #expect(expected.contains(count), "seed \(seed): \(id) (\(kind)) came \(count) times")
            let back = bySender.count { $0.hasSuffix(" \(id)") }
            #expect(
                back == (kind == "bounce" || kind == "reply" ? 1 : 0),
                "seed \(seed): \(id) (\(kind)) came back \(back) times"
            )
            if count > 0 { first.append(id) }
        }
        var seen: Set<String> = []
        let got = gotByReceiver.map { String($0.dropFirst($0.hasPrefix(" ") ? 1 : 0)) }
        #expect(got.filter { first.contains($0) && seen.insert($0).inserted } == first, "seed \(seed), \(side)")
    }
}
