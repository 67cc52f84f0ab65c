import TapRecord
import TapTestKit
import Testing

/// Tests of the built proxy with unauthenticated peers, attackers and broken peers: the proxy keeps running, its memory
/// is bounded, and the next login works.
@Suite(
    .timeLimit(.minutes(10)),
    .enabled(if: BuildMode.isReleaseProgram, "release builds only")
)
struct HostileContactLongTests {
    private static let large = 50 << 20
    /// The peak memory in KiB that hostile peers may cost in addition to two logins: the full buffers of four logs, and
    /// the size of one more buffer for everything else.
    private static let allowance = 5 * 16 << 10
    /// The maximum size in bytes of the system's send and receive buffers of a TCP connection.
    private static let socketBuffers = ["tcp_rmem", "tcp_wmem"].reduce(0) { sum, name in
        let limits = Tap.read("/proc/sys/net/ipv4/\(name)").split(whereSeparator: \.isWhitespace)
        return sum + (limits.last.flatMap { Int($0) } ?? 32 << 20)
    }
    private static let isEnabled = TestProgram.areInstalled(.prosody, .slixmpp)

    /// A proxy with two listeners: one for a Prosody server, and one for a scripted server.
    private struct Site {
        let server: ProsodyServer
        let scripted: RawListener
        let tap: Tap
        private let baseline: Int

        init() async throws {
            server = try await ProsodyServer()
            scripted = try RawListener()
            tap = try await Tap(upstream: server.port, scripted.port)
            // The proxy checks at startup whether its servers accept connections; that connection does not belong to a
            // session.
            _ = try await scripted.accept().drain()
            try await Self.login(tap)
            try await Self.login(tap)
            baseline = try tap.memory("VmHWM")
        }

        /// Logs in with a real client, which must always succeed.
        static func login(_ tap: Tap) async throws {
            let client = try ScriptedClient(.slixmpp, as: .juliet, port: tap.ports[0], .init(ping: true))
            let told = try await client.finish()
            #expect(told.contains { $0.event == "pong" })
        }

        /// Connects a client and a scripted server through the proxy, and plays the first turns of a login.
        func pair(turns: Int = 0) async throws -> (client: RawConnection, server: RawConnection) {
            let connected = turns == 0 ? connections : 0
            let client = try RawConnection(port: tap.ports[1])
            let server = try await scripted.accept()
            // Waits until the proxy has logged the connection; a server that disconnects earlier counts as unreachable.
            while turns == 0, connections == connected { try await Task.sleep(for: .milliseconds(5)) }
            for turn in Conversations.plainLogin[..<turns] {
                let (from, to) = turn.direction == .send ? (client, server) : (server, client)
                try await from.write(turn.text)
                let count = turn.text.utf8.count
                let (got, _) = try await to.read { $0.count >= count }
                #expect(String(decoding: got, as: UTF8.self) == turn.text)
            }
            return (client, server)
        }

        /// The number of connections to servers that the proxy has logged.
        private var connections: Int { Tap.read(tap.json).ranges(of: "\"step\":\"connect\"").count }

        /// Checks what must hold after each attack.
        func check(_ what: String, logsIn: Bool = true) async throws {
            try #require(tap.binary.process.isRunning, "\(what): the proxy has ended")
            let peak = try tap.memory("VmHWM")
            #expect(peak < baseline + HostileContactLongTests.allowance, "\(what): \(peak) KiB after \(baseline)")
            if logsIn {
                try await Self.login(tap)
            } else {
                _ = try RawConnection(port: tap.ports[0])
            }
        }

        /// Stops the proxy and the server, and checks what the proxy has logged.
        func stop() async throws {
            try await tap.stop()
            try await server.stop()
            let begun = try await tap.count(code: "session-began")
            let ended = try await tap.count(code: "session-ended")
            #expect(begun > 0 && ended == begun)
            let errors = tap.binary.process.text(of: .standardError)
            #expect(!errors.contains("Fatal error") && !errors.contains("internal"), "\(errors)")
        }
    }

    @Test(
        "Hostile clients do not prevent others from using a real server",
        .enabled(if: isEnabled, "Prosody or slixmpp is missing")
    )
    func clients() async throws {
        let site = try await Site()
        for hostile in HostileBytes.all(large: Self.large) {
            for isReset in [false, true] {
                let client = try RawConnection(port: site.tap.ports[0])
                async let answer = client.drain()
                try await client.write(hostile.bytes, patience: .seconds(2))
                if isReset { client.reset() } else { client.finish() }
                let (_, end) = try await answer
                #expect(end != .silent, "\(hostile.name): the client is not told of the end")
            }
            try await site.check("a client with \(hostile.name)", logsIn: true)
        }
        try await site.stop()
    }

    @Test(
        "Hostile clients and servers do not disturb other sessions at any stage of a login",
        .enabled(if: isEnabled, "Prosody or slixmpp is missing"),
        arguments: [Direction.recv, .send]
    )
    func stages(direction: Direction) async throws {
        let site = try await Site()
        for hostile in HostileBytes.all(large: Self.large) {
            for turns in [0, 3, 10] {
                let (client, server) = try await site.pair(turns: turns)
                let (villain, victim) = direction == .send ? (client, server) : (server, client)
                async let heard = victim.drain()
                async let answered = villain.drain()
                let bytes = hostile.bytes
                let taken = try await villain.write(bytes, patience: .seconds(5))
                villain.finish()
                let (count, end) = try await heard
                victim.finish()
                let (_, answer) = try await answered
                #expect(end != .silent, "\(hostile.name) at \(turns): the victim is not told of the end")
                #expect(answer != .silent, "\(hostile.name) at \(turns): the villain is not told of the end")
                // After the login, the proxy forwards all data, even if it is invalid.
                if turns == 10 { #expect(count == taken && taken == bytes.count, "\(hostile.name): \(count) passed") }
            }
            try await site.check("\(direction) of \(hostile.name)", logsIn: false)
        }
        try await site.check("\(direction)")
        try await site.stop()
    }

    @Test(
        "A reset or close at any stage of a login is relayed to the other leg",
        .enabled(if: isEnabled, "Prosody or slixmpp is missing")
    )
    func resets() async throws {
        let site = try await Site()
        let last = Conversations.plainLogin.count - 1
        for turns in 0...last {
            let next = Conversations.plainLogin[turns]
            for half in ["", String(next.text.prefix(next.text.count / 2))] {
                for (leg, isReset) in [(Leg.client, true), (.server, true), (.client, false), (.server, false)] {
                    let (client, server) = try await site.pair(turns: turns)
                    try await (next.direction == .send ? client : server).write(half)
                    // Gives the data time to arrive before the reset.
                    if !half.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
                    let (ender, other) = leg == .client ? (client, server) : (server, client)
                    if isReset { ender.reset() } else { ender.finish() }
                    let (_, end) = try await other.drain()
                    // Closing a socket with unread data resets its connection. After a client has closed its stream,
                    // the proxy therefore treats a reset as an orderly end.
                    let isPassedOn = isReset && !(leg == .client && turns == last)
                    #expect(end == (isPassedOn ? .reset : .finished), "\(turns) \(half) \(leg): \(end)")
                }
            }
        }
        try await site.check("resets")
        try await site.stop()
    }

    @Test(
        "A peer that does not read stops the other peer, and memory stays bounded",
        .enabled(if: isEnabled, "Prosody or slixmpp is missing"),
        arguments: [Direction.recv, .send]
    )
    func doesNotRead(direction: Direction) async throws {
        let site = try await Site()
        // Twice what the buffers of two connections can hold, and more than the proxy reads ahead.
        let stanzas = max(100 << 20, 4 * Self.socketBuffers) / 10_000
        var pairs: [(RawConnection, RawConnection)] = []
        for _ in 0..<4 {
            let (client, server) = try await site.pair(turns: 10)
            let (writer, reader) = direction == .send ? (client, server) : (server, client)
            let stanza = "<message to='a@b'><body>" + String(repeating: "x", count: 10_000) + "</body></message>"
            let flood = Array(String(repeating: stanza, count: stanzas).utf8)
            let taken = try await writer.write(flood, patience: .milliseconds(500))
            // The sockets' buffers and the data that the proxy may read ahead take at most half of the data.
            #expect(taken < flood.count / 2, "\(taken) of \(flood.count) bytes were taken")
            pairs.append((writer, reader))
        }
        try await site.check("peers that read nothing")
        // When the peer reads again, it receives all data that was sent.
        let (writer, reader) = try #require(pairs.first)
        writer.finish()
        let (count, end) = try await reader.drain()
        #expect(count > 0 && end == .finished)
        for (writer, reader) in pairs {
            writer.reset()
            reader.reset()
        }
        try await site.check("peers that are gone")
        try await site.stop()
    }

    @Test(
        "Requests that are never answered use bounded memory",
        .enabled(if: isEnabled, "Prosody or slixmpp is missing")
    )
    func unansweredRequests() async throws {
        let site = try await Site()
        let (client, server) = try await site.pair(turns: 10)
        async let heard = client.drain()
        for number in 0..<2000 {
            let id = "\(number)" + String(repeating: "x", count: 50_000)
            try await server.write("<iq type='get' id='\(id)' from='example.org'><ping xmlns='urn:xmpp:ping'/></iq>")
        }
        server.finish()
        _ = try await heard
        client.close()
        try await site.check("unanswered requests")
        try await site.stop()
    }
}
