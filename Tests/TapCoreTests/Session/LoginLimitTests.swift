import TapTestKit
import Testing

@testable import TapCore
import TapRecord

/// Tests when the time limit of a login ends if the login itself cannot be decoded.
@Suite struct LoginLimitTests {
    private typealias Step = (direction: Direction, bytes: [UInt8])

    /// The smallest ClientHello: version, random, no session, one cipher suite, no compression.
    private static let hello: [UInt8] = {
        let body = [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0x13, 1, 1, 0]
        return [0x16, 3, 1, 0, UInt8(body.count + 4), 1, 0, 0, UInt8(body.count)] + body
    }()
    private static let serverHello: [UInt8] = [0x16, 3, 3, 0, 0x7A, 2, 0, 0, 0x76, 3, 3]
    private static let warning: [UInt8] = [0x15, 3, 3, 0, 2, 1, 112]
    private static let fatalAlert: [UInt8] = [0x15, 3, 3, 0, 2, 2, 40]

    private static let compression: [Conversations.Turn] =
        Conversations.plainLogin.prefix(3) + [
            (.send, "<compress xmlns='http://jabber.org/protocol/compress'><method>zlib</method></compress>"),
            (.recv, "<compressed xmlns='http://jabber.org/protocol/compress'/>"),
        ]

    /// Passes a conversation and then bytes to a session; returns whether the login counts as over after each of them.
    private static func judge(_ turns: [Conversations.Turn], _ steps: Step...) -> [Bool] {
        var harness = SessionHarness()
        harness.say(turns)
        var result: [Bool] = [harness.session.isPastLogin]
        for (direction, bytes) in steps {
            harness.receive(direction, bytes)
            result.append(harness.session.isPastLogin)
        }
        return result
    }

    @Test("TLS passed through counts as a login once the server answers a whole ClientHello", arguments: [false, true])
    func tls(startsInClear: Bool) {
        let turns = startsInClear ? Conversations.startTLS : []
        let (hello, answer) = (Self.hello, Self.serverHello)
        #expect(Self.judge(turns, (.send, hello), (.recv, answer)) == [false, false, true])
        let half = Array(hello.prefix(20))
        #expect(Self.judge(turns, (.send, half), (.send, Array(hello.dropFirst(20))), (.recv, answer)).last == true)
        #expect(Self.judge(turns, (.send, [0x16])) == [false, false])
        // An answer of the server before a complete ClientHello does not count.
        #expect(Self.judge(turns, (.send, half), (.recv, answer)).last == false)
        #expect(Self.judge(turns, (.send, hello), (.recv, Self.fatalAlert), (.recv, answer)).last == false)
        #expect(Self.judge(turns, (.send, hello), (.recv, Self.warning + answer)).last == true)
        #expect(Self.judge(turns, (.send, hello), (.recv, Array("<stream:error/>".utf8))).last == false)
        let warnings = (0..<100).flatMap { _ in Self.warning }
        #expect(Self.judge(turns, (.send, hello), (.recv, warnings), (.recv, answer)).last == false)
    }

    @Test func `a login over the time limit is ended at its deadline, an open session is not`() {
        var options = SessionOptions(level: .trace)
        options.loginTime = 1_500_000_000
        var harness = SessionHarness(options: options)
        #expect(harness.session.nextDeadline == 1_500_000_000)
        harness.say(Array(Conversations.plainLogin.prefix(3)))
        harness.wait(1_499_999_999 - harness.now.monotonic)
        #expect(harness.closed == nil)
        harness.wait(1)
        #expect(harness.closed == false && harness.session.nextDeadline == nil)
        #expect(harness.told(code: "aborted").first?.record.messageText == "No login within 1500 ms (limit login).")
        #expect(String(decoding: harness.toClient, as: UTF8.self).contains("<connection-timeout"))
        #expect(harness.session.counters.events == [.limitHit(.login): 1])

        var open = SessionHarness(options: options)
        open.say(Array(Conversations.plainLogin.prefix(10)))
        #expect(open.session.nextDeadline == nil)
        open.wait(2_000_000_000)
        #expect(open.closed == nil)
    }

    @Test func `a session without data for the idle time is ended, and each byte restarts the time`() {
        var options = SessionOptions(level: .trace)
        options.idleTime = 3_000_000_000
        var harness = SessionHarness(options: options)
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.wait(2_999_999_999)
        harness.recv(" ")
        #expect(harness.session.nextDeadline == harness.now.monotonic + 3_000_000_000)
        harness.wait(2_999_999_999)
        #expect(harness.closed == nil)
        harness.wait(1)
        #expect(harness.closed == false)
        #expect(harness.told(code: "aborted").first?.record.messageText == "No data for 3 s (limit idle).")
        #expect(harness.session.counters.events == [.limitHit(.idle): 1])
    }

    @Test func `a refused client that opens no stream is disconnected after 10 s`() {
        var harness = SessionHarness(connected: false)
        harness.failServer("no route")
        #expect(harness.session.nextDeadline == 10_000_000_000)
        harness.wait(9_999_999_999)
        #expect(harness.closed == nil)
        harness.wait(1)
        #expect(harness.closed == false && harness.toClient.isEmpty)
    }

    @Test func `The server's TLS answer can arrive byte by byte`() {
        var harness = SessionHarness()
        harness.receive(.send, Self.hello)
        for (index, byte) in (Self.warning + Self.serverHello).enumerated() {
            harness.receive(.recv, [byte])
            let isPastLogin = harness.session.isPastLogin
            #expect(isPastLogin == (index >= Self.warning.count + 5), "after byte \(index)")
        }
    }

    @Test func `Data that arrives together with proceed does not count as a login`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.startTLS.prefix(4)))
        harness.recv(Conversations.startTLS[4].text + String(decoding: Self.serverHello, as: UTF8.self))
        let isPastLogin = harness.session.isPastLogin
        #expect(!isPastLogin)
    }

    @Test func `Undecodable data counts as a login once both sides have sent data`() {
        let (zlib, http) = ([0x78, 0x9C, 1] as [UInt8], Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
        #expect(Self.judge([], (.send, Array("G".utf8)), (.recv, http)) == [false, false, true])
        #expect(Self.judge([], (.recv, Array("220 mail\r\n".utf8)), (.send, zlib)) == [false, false, true])
        #expect(Self.judge(Self.compression, (.send, zlib), (.recv, zlib)) == [false, false, true])
        let features = Array(Conversations.plainLogin.prefix(3))
        let (bad, more) = (Array("<a></b>".utf8), Array("<presence/>".utf8))
        #expect(Self.judge(features, (.send, bad), (.recv, more)) == [false, false, true])
        #expect(Self.judge(features, (.recv, bad), (.send, more), (.recv, more)) == [false, false, true, true])
        let refusal = "<stream:error><not-well-formed xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"
        #expect(Self.judge(features, (.send, bad), (.recv, Array((refusal + "</stream:stream>").utf8))).last == false)
    }
}
