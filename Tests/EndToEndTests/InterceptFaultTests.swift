import TapTestKit
import Testing

/// Tests of TLS that cannot be started. Each time the log has one clear line, the session is closed properly, and the
/// proxy serves the next client.
@Suite(.timeLimit(.minutes(3)), .serialized) struct InterceptFaultTests {
    private static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
    private static let offer =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='localhost' id='s1' "
        + "version='1.0'><stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>"
        + "</stream:features>"
    private static let request = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    private static let consent = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"

    /// A proxy in front of a scripted server, after both streams were opened.
    private struct Script {
        let own: InterceptAuthority
        let tap: Tap
        let client: RawConnection
        let server: RawConnection
        private let listener: RawListener

        init(_ arguments: [String] = []) async throws {
            own = try await InterceptAuthority()
            listener = try RawListener()
            tap = try await Tap(upstream: listener.port, arguments: own.arguments + arguments)
            client = try RawConnection(port: tap.port)
            try await client.write(InterceptFaultTests.header)
            // The proxy's first connection only checks whether the server accepts connections.
            var accepted = try await listener.accept()
            if try await accepted.read(until: { $0.count >= InterceptFaultTests.header.utf8.count }).end != .enough {
                accepted = try await listener.accept()
                try await accepted.read(through: "version='1.0'>")
            }
            server = accepted
            try await server.write(InterceptFaultTests.offer)
            try await client.read(through: "</stream:features>")
        }
    }

    private static func text(_ got: (bytes: [UInt8], end: RawConnection.End)) -> String {
        String(decoding: got.bytes, as: UTF8.self)
    }

    @Test(arguments: [true, false])
    func `clear data after a client's STARTTLS request never reaches the server`(atOnce: Bool) async throws {
        let script = try await Script()
        let injected = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"
        if atOnce {
            try await script.client.write(Self.request + injected)
        } else {
            try await script.client.write(Self.request)
            try await script.server.read(through: "/>")
            try await script.client.write(injected)
            // The injected data must arrive before the `<proceed/>`.
            try await script.tap.wait(for: "starttls", in: script.tap.json)
            try await Task.sleep(for: .milliseconds(200))
            try await script.server.write(Self.consent)
        }
        let answer = Self.text(try await script.client.read { _ in false })
        #expect(answer.contains("<failure") && !answer.contains("<proceed"), "\(answer)")
        let passed = Self.text(try await script.server.read { _ in false })
        #expect(!passed.contains("auth") && !passed.contains("AGEAYg"), "\(passed)")
        try await script.tap.stop()
        let faults = try script.tap.records().filter { $0.code == "starttls-injection" }
        #expect(faults.count == 1 && faults.first?.message?.contains("after <starttls/>") == true)
        #expect(!Tap.read(script.tap.json).contains("AGEAYg"))
    }

    @Test func `clear data after a server's <proceed/> never reaches the client`() async throws {
        let script = try await Script()
        try await script.client.write(Self.request)
        try await script.server.read(through: "/>")
        try await script.server.write(Self.consent + "<message><body>from the network</body></message>")
        let answer = Self.text(try await script.client.read { _ in false })
        #expect(answer.contains("<failure") && !answer.contains("<proceed"), "\(answer)")
        #expect(!answer.contains("from the network"))
        try await script.tap.stop()
        let faults = try script.tap.records().filter { $0.code == "starttls-injection" }
        #expect(faults.count == 1 && faults.first?.message?.contains("after <proceed/>: injected") == true)
    }

    @Test func `a server that sends <proceed/> and then no TLS is diagnosed`() async throws {
        let script = try await Script()
        try await script.client.write(Self.request)
        try await script.server.read(through: "/>")
        try await script.server.write(Self.consent)
        let hello = try await script.server.read { $0.count > 5 }
        #expect(hello.bytes.first == 0x16)
        try await script.server.write("<stream:error/>")
        let answer = Self.text(try await script.client.read { _ in false })
        #expect(answer.contains("<failure") && !answer.contains("<proceed"), "\(answer)")
        try await script.tap.stop()
        let fault = try script.tap.records().first { $0.code == "tls-not-tls" }
        #expect(fault?.message?.hasPrefix("the server sent data that is not TLS") == true)
    }

    @Test func `a server's refusal of STARTTLS is relayed unchanged`() async throws {
        let script = try await Script()
        try await script.client.write(Self.request)
        try await script.server.read(through: "/>")
        let refusal = "<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:stream>"
        try await script.server.write(refusal)
        #expect(try await script.client.read(through: "</stream:stream>") == refusal)
        script.server.finish()
        script.client.finish()
        try await script.tap.stop()
    }

    /// Invalid data that a client sends instead of TLS, the code of the record about it, and a part of its message.
    private static let ways: [(name: String, bytes: [UInt8], code: String, words: String)] = [
        (
            "another message", [0x16, 3, 1, 0, 4, 2, 0xFF, 0xFF, 0xFF], "malformed-client-hello",
            "in place of a ClientHello"
        ),
        ("a record of no length", [0x16, 3, 1, 0, 0], "malformed-client-hello", "an empty record"),
        (
            "a record that is too long", [0x16, 3, 1, 0xFF, 0xFF, 1], "malformed-client-hello",
            "a record of 65535 bytes"
        ),
        ("another name", hello(name: "other.example"), "tls-alert", "does not serve the requested server name"),
        ("an address as its name", hello(name: "192.0.2.7"), "certificate-wrong-name", "not for 192.0.2.7"),
        ("no name", hello(name: nil), "certificate-wrong-name", "not for 127.0.0.1"),
    ]

    /// Returns a TLS 1.2 ClientHello that asks for a server name.
    private static func hello(name: String?) -> [UInt8] {
        func sized(_ bytes: [UInt8], _ width: Int) -> [UInt8] {
            (0..<width).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
        }
        var extensions: [UInt8] = [0, 10] + sized(sized([0, 29, 0, 23], 2), 2)
        extensions += [0, 13] + sized(sized([4, 3, 8, 4], 2), 2)
        if let name { extensions += [0, 0] + sized(sized([0] + sized(Array(name.utf8), 2), 2), 2) }
        let body: [UInt8] =
            [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + sized([0xC0, 0x2B], 2) + [1, 0] + sized(extensions, 2)
        return [0x16, 3, 1] + sized([1] + sized(body, 3), 2)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing"))
    func `a failed TLS handshake is reported in one line, and the next client is served`() async throws {
        let scene = try await InterceptScene(arguments: ["--limit", "login=3"])
        for way in Self.ways {
            let client = try RawConnection(port: scene.directPort)
            try await client.write(way.bytes)
            let got = try await client.read(within: .seconds(10)) { _ in false }
            #expect(got.end == .finished || got.end == .reset, "\(way.name): \(got.end)")
            // A client with direct TLS receives only a TLS alert, if anything.
            #expect(got.bytes.isEmpty || got.bytes.first == 0x15, "\(way.name): \(got.bytes)")
        }
        // Plaintext to a port for direct TLS, and TLS to a port for STARTTLS.
        let plain = try RawConnection(port: scene.directPort)
        try await plain.write(Self.header)
        #expect(try await plain.read(within: .seconds(10)) { _ in false }.end != .silent)
        let early = try RawConnection(port: scene.tap.port)
        try await early.write(Self.hello(name: "localhost"))
        #expect(try await early.read(within: .seconds(10)) { _ in false }.end != .silent)

        for port in [scene.tap.port, scene.directPort] {
            let parameters = try await TLSPeer.connect(
                port: port,
                trusting: scene.authority,
                ["--sni", "localhost"] + (port == scene.tap.port ? ["--starttls"] : [])
            )
            #expect(parameters.mechanisms != nil && parameters.error == nil, "\(parameters)")
        }
        try await scene.stop()
        let records = try scene.tap.records()
        for (index, way) in Self.ways.enumerated() {
            let faults = records.filter { $0.session == UInt64(index + 1) && $0.kind == "error" }
            #expect(faults.count == 1, "\(way.name): \(faults.map(\.message))")
            #expect(faults.first?.code == way.code, "\(way.name): \(faults.first?.code ?? "")")
            #expect(faults.first?.message?.contains(way.words) == true, "\(way.name): \(faults.first?.message ?? "")")
        }
        let misled = records.filter { $0.session == UInt64(Self.ways.count + 2) && $0.kind == "error" }
        #expect(misled.first?.message?.contains("the server sent data that is not TLS") == true)
        // The server is not to blame for either failure.
        let diagnoses = (1...2).map { offset in
            records.first { $0.session == UInt64(Self.ways.count + offset) && $0.code == "login-failed" }?.details
        }
        #expect(diagnoses[0]?.side == "client" || diagnoses[0]?.side == "network", "\(diagnoses)")
        #expect(diagnoses[0]?.proxyIsCause == false, "\(diagnoses)")
        #expect(diagnoses[1]?.cause == "tls-unexpected" && diagnoses[1]?.side == "client", "\(diagnoses)")
        for session in 1...UInt64(Self.ways.count + 4) {
            #expect(records.contains { $0.session == session && $0.code == "session-ended" }, "session \(session)")
        }
    }

    @Test(
        .enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing"),
        arguments: [true, false]
    )
    func `an unfinished handshake is closed after the login limit`(direct: Bool) async throws {
        let scene = try await InterceptScene(arguments: ["--limit", "login=1"])
        let client = try RawConnection(port: direct ? scene.directPort : scene.tap.port)
        if !direct {
            try await client.write(Self.header)
            try await client.read(through: "</stream:features>")
            try await client.write(Self.request)
            try await client.read(through: Self.consent)
        }
        try await client.write(Array(Self.hello(name: "localhost").prefix(20)))
        let got = try await client.read(within: .seconds(15)) { _ in false }
        #expect(got.end != .silent)
        let parameters = try await TLSPeer.connect(
            port: scene.tap.port,
            trusting: scene.authority,
            ["--sni", "localhost", "--starttls"]
        )
        #expect(parameters.error == nil, "\(parameters)")
        try await scene.stop()
        let faults = try scene.tap.records().filter { $0.session == 1 && $0.kind == "error" }
        #expect(faults.map(\.code) == ["tls-timeout"], "\(faults.map(\.message))")
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing"))
    func `a client that continues in clear after <proceed/> gets an error that names its fault`() async throws {
        let scene = try await InterceptScene()
        let client = try RawConnection(port: scene.tap.port)
        try await client.write(Self.header)
        try await client.read(through: "</stream:features>")
        try await client.write(Self.request)
        try await client.read(through: Self.consent)
        try await client.write(Self.header)
        #expect(try await client.read(within: .seconds(10)) { _ in false }.end != .silent)
        try await scene.stop()
        let faults = try scene.tap.records().filter { $0.kind == "error" }
        #expect(faults.map(\.code) == ["tls-not-tls"])
        #expect(faults.first?.message?.hasPrefix("the client sent data that is not TLS") == true)
    }
}
