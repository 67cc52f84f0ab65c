import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests of sessions with unauthenticated, hostile and faulty peers. ``CheckedSession`` checks each session at every
/// step.
@Suite struct HostileTests {
    /// The numbers of turns of `Conversations.plainLogin` after which the hostile bytes arrive.
    private static let stages = [0, 1, 3, 4, 5, 7, 9, 10, 12]
    private static let conversations = [
        Conversations.plainLogin, Conversations.startTLS, Conversations.legacyLogin, Conversations.component,
        Conversations.sasl2,
    ]

    @Test("Hostile bytes at any stage are relayed unchanged or end the session", arguments: Direction.allCases)
    func hostileBytes(direction: Direction) {
        // The limits are smaller than the default ones, so that tests can quickly exceed them.
        Self.hostileBytes(direction, large: 200 << 10, StreamLimits(itemBytes: 128 << 10), stages: Self.stages)
    }

    static func hostileBytes(_ direction: Direction, large: Int, _ limits: StreamLimits, stages: [Int]) {
        for hostile in HostileBytes.all(large: large) {
            let bytes = hostile.bytes
            for stage in bytes.count > 1 << 18 ? [0, 3, 10] : stages {
                var session = CheckedSession(limits: limits)
                for turn in Conversations.plainLogin[..<stage] { session.say(turn.direction, Array(turn.text.utf8)) }
                session.say(direction, bytes, piece: 65_536)
                for turn in Conversations.plainLogin[stage...] { session.say(turn.direction, Array(turn.text.utf8)) }
                session.finish(recordLimit: 60 + 3 * hostile.items + bytes.count / 65_536)
            }
        }
    }

    @Test func `Before login the buffered data of a client stays within the limit, whatever it sends`() {
        for hostile in HostileBytes.all(large: 100 << 10) {
            for stage in [0, 3] {
                var session = CheckedSession(level: .info)
                for turn in Conversations.plainLogin[..<stage] { session.say(turn.direction, Array(turn.text.utf8)) }
                session.say(.send, hostile.bytes, piece: 4096)
                // Data after a request for TLS waits for the answer, up to a separate limit.
                let bound = hostile.name == "1,000 requests for TLS" ? 256 << 10 : 64 << 10
                #expect(session.peak <= bound + 4096, "\(hostile.name): \(session.peak)")
                session.finish()
            }
        }
    }

    @Test("The end of a client is handled if the server is not connected yet", arguments: [LegEnd.finished, .reset])
    func endsBeforeTheServer(end: LegEnd) {
        for said in ["", Conversations.plainLogin[0].text] {
            var session = CheckedSession(connected: false)
            session.say(.send, Array(said.utf8))
            session.end(.client, end)
            if end == .finished {
                let isClosed = session.isClosed
                #expect(!isClosed)
                session.connect()
                let told = session.harness.finished
                #expect(told == [.server], "the server is told of the end")
            }
            session.finish()
        }
    }

    @Test func `A server that ends without an answer to STARTTLS ends the hold of the client's data`() {
        var session = CheckedSession()
        for turn in Conversations.startTLS.prefix(4) { session.say(turn.direction, Array(turn.text.utf8)) }
        session.say(.send, Array("<a/>".utf8))
        session.end(.server)
        session.finish()
    }

    @Test func `Without an answer to STARTTLS, the server receives all data of a client that ends`() {
        for behind in ["", " \n", "<a xmlns='u'/>", "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", "<half"] {
            var session = CheckedSession()
            for turn in Conversations.startTLS.prefix(4) { session.say(turn.direction, Array(turn.text.utf8)) }
            session.say(.send, Array(behind.utf8))
            session.end(.client)
            let told = session.harness.finished
            #expect(told == [.server])
            let passed = session.harness.text(.send)
            #expect(passed == Conversations.text(Conversations.startTLS, .send) + behind)
            // The server's late answer still reaches the client.
            session.say(.recv, Array(Conversations.startTLS[4].text.utf8))
            session.finish()
        }
    }

    /// Bytes that were forwarded already must not wait to be decoded, because they would accumulate without a limit.
    @Test func `A STARTTLS request in an open session, or while it is resumed, does not hold data`() {
        let message = "<message><body>" + String(repeating: "x", count: 90) + "</body></message>"
        let much = Array(String(repeating: message, count: 30_000).utf8)
        let request = Array(Conversations.startTLS[3].text.utf8)
        var open = CheckedSession(level: .info)
        for turn in Conversations.plainLogin { open.say(turn.direction, Array(turn.text.utf8)) }
        open.say(.recv, Array("<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8))
        open.say(.send, request)
        open.say(.send, much, piece: 65_536)
        open.finish()

        var opening = CheckedSession(level: .info)
        for turn in Conversations.startTLS.prefix(4) { opening.say(turn.direction, Array(turn.text.utf8)) }
        opening.say(.recv, Array("<resumed xmlns='urn:xmpp:sm:3' h='0' previd='1'/>".utf8))
        opening.say(.send, much, piece: 65_536)
        opening.finish()
    }

    @Test("Every truncated conversation ends, however its legs end", arguments: [LegEnd.finished, .reset])
    func cutAnywhere(end: LegEnd) { Self.cut(every: 17, end) }

    static func cut(every stride: Int, _ end: LegEnd) {
        for conversation in conversations {
            let total = conversation.reduce(0) { $0 + $1.text.utf8.count }
            for length in Swift.stride(from: 0, through: total, by: stride) {
                for leg in Leg.allCases {
                    var session = CheckedSession()
                    var left = length
                    for turn in conversation where left > 0 {
                        let bytes = Array(turn.text.utf8.prefix(left))
                        left -= bytes.count
                        session.say(turn.direction, bytes)
                    }
                    session.end(leg, end)
                    session.finish(recordLimit: 60)
                }
            }
        }
    }

    @Test func `Conversations with random damage are relayed byte for byte`() {
        for seed in 0..<400 { Self.damage(seed: UInt64(seed)) }
    }

    static func damage(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var turns = conversations.randomElement(using: &generator) ?? []
        if Bool.random(using: &generator), let more = conversations.randomElement(using: &generator) { turns += more }
        var session = CheckedSession()
        for turn in turns {
            var bytes = Array(turn.text.utf8)
            if Int.random(in: 0..<6, using: &generator) == 0 { mutate(&bytes, using: &generator) }
            let direction = Int.random(in: 0..<30, using: &generator) == 0 ? turn.direction.opposite : turn.direction
            session.say(direction, bytes, piece: Int.random(in: 1...200, using: &generator))
            if Int.random(in: 0..<40, using: &generator) == 0 {
                let end = [LegEnd.finished, .reset, .failed("timed out")].randomElement(using: &generator) ?? .finished
                session.end(Bool.random(using: &generator) ? .client : .server, end)
            }
        }
        session.finish(recordLimit: 600)
    }

    private static let tokens = [
        "<", ">", "</", "/>", "'", "\"", "&", "&lt;", "&#0;", "&#x41;", "<!--", "]]>", "<![CDATA[", "<?", "xmlns='u'",
        "</stream:stream>", "<stream:error/>", "<a:b/>", "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
        "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>", "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
        "<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
        "<iq type='result' id='b1'/>", "<resumed xmlns='urn:xmpp:sm:3' h='1'/>",
        "<compressed xmlns='http://jabber.org/protocol/compress'/>", " ", "\u{1F339}", "\u{FEFF}",
    ]

    private static func mutate(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        let at = Int.random(in: 0...bytes.count, using: &generator)
        let length = Int.random(in: 0...min(20, bytes.count - at), using: &generator)
        switch Int.random(in: 0..<6, using: &generator) {
        case 0 where at < bytes.count: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 1: bytes.removeSubrange(at..<(at + length))
        case 2: bytes.insert(contentsOf: bytes[at..<(at + length)], at: at)
        case 3: bytes.insert(contentsOf: generator.bytes(count: length), at: at)
        case 4: bytes += bytes
        default: bytes.insert(contentsOf: Array((tokens.randomElement(using: &generator) ?? "").utf8), at: at)
        }
    }
}

/// The tests of ``HostileTests`` with more cases, and with the default limits.
@Suite struct HostileLongTests {
    @Test("Hostile bytes over the real limits are relayed unchanged or end the session", arguments: Direction.allCases)
    func hostileBytes(direction: Direction) {
        HostileTests.hostileBytes(direction, large: 3 << 20, .authenticated, stages: [0, 3, 10])
    }

    @Test("Every conversation truncated at any byte ends, however its legs end", arguments: [LegEnd.finished, .reset])
    func cutEverywhere(end: LegEnd) { HostileTests.cut(every: 1, end) }

    @Test("Conversations with random damage are relayed byte for byte", arguments: 0..<20)
    func damage(block: Int) {
        for seed in 0..<2000 { HostileTests.damage(seed: UInt64(1000 + block * 2000 + seed)) }
    }
}
