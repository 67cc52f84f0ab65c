import Glibc
import NIOCore
import TapRecord
import TapSecurity
import TapTestKit
import Testing

@Suite(.enabled(if: TestProgram.openssl.isInstalled)) struct TLSEngineTests {
    @Test func `the borders of TLS records in a read are known, however a record was received`() async throws {
        var pair = try await EngineFixture.common.pair()
        pair.pump()
        var plaintext = ByteBuffer()
        for text in ["one", "three", "seventeen"] { pair.client.write(ByteBuffer(string: text)) }
        var sent = pair.client.takeOutput() ?? ByteBuffer()
        let most = sent.readableBytes - 10
        pair.server.receive(sent.readSlice(length: most) ?? ByteBuffer())
        pair.server.advance(into: &plaintext)
        #expect(String(buffer: plaintext) == "onethree" && pair.server.recordStarts == [3])
        // The rest of the last record arrives with the next one.
        pair.client.write(ByteBuffer(string: "end"))
        sent.writeImmutableBuffer(pair.client.takeOutput() ?? ByteBuffer())
        plaintext.clear()
        pair.server.receive(sent)
        pair.server.advance(into: &plaintext)
        #expect(String(buffer: plaintext) == "seventeenend" && pair.server.recordStarts == [9])
        // A record of the maximum length, of which most was received before.
        pair.client.write(ByteBuffer(repeating: 0x78, count: 16_384))
        var record = pair.client.takeOutput() ?? ByteBuffer()
        let beginning = record.readableBytes - 1
        pair.server.receive(record.readSlice(length: beginning) ?? ByteBuffer())
        pair.server.advance(into: &plaintext)
        plaintext.clear()
        pair.server.receive(record)
        pair.server.advance(into: &plaintext)
        #expect(plaintext.readableBytes == 16_384 && pair.server.recordStarts.isEmpty)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13], [1, 2, 3, 5, 7, 64, 1000, Int.max])
    func `both ends open and all data arrives, however the bytes are split`(
        version: TLSVersion,
        size: Int
    ) async throws {
        let fixture = try await EngineFixture.common
        var pair = try fixture.pair { $0.maximumVersion = version }
        pair.pump(size: size)
        #expect(pair.client.state == .open)
        #expect(pair.server.state == .open)
        #expect(pair.client.parameters()?.versionNumber == version)
        #expect(pair.server.parameters()?.versionNumber == version)
        var random = SeededGenerator(seed: UInt64(version.rawValue))
        var sent: [UInt8] = []
        for length in [1, 350, 16_384, 16_385, 40_000] {
            let bytes = random.bytes(count: length)
            sent += bytes
            #expect(pair.client.write(ByteBuffer(bytes: bytes)))
            #expect(pair.server.write(ByteBuffer(bytes: bytes)))
            pair.pump(size: size)
        }
        #expect(Array(buffer: pair.atServer) == sent)
        #expect(Array(buffer: pair.atClient) == sent)
        #expect(pair.client.state == .open)
        #expect(pair.server.state == .open)
    }

    @Test func `an empty write sends nothing`() async throws {
        var pair = try await EngineFixture.common.pair()
        pair.pump()
        #expect(pair.client.write(ByteBuffer()))
        #expect(pair.client.takeOutput() == nil)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `close_notify closes one direction and leaves the other open`(version: TLSVersion) async throws {
        var pair = try await EngineFixture.common.pair { $0.maximumVersion = version }
        pair.pump()
        pair.client.write(ByteBuffer(string: "last"))
        pair.client.finish()
        pair.pump()
        #expect(String(buffer: pair.atServer) == "last")
        #expect(pair.server.state == .inputFinished)
        #expect(pair.client.state == .open)
        #expect(!pair.client.write(ByteBuffer(string: "more")))
        #expect(pair.server.write(ByteBuffer(string: "answer")))
        pair.server.finish()
        pair.pump()
        #expect(String(buffer: pair.atClient) == "answer")
        #expect(pair.client.state == .inputFinished)
        pair.server.transportEnded()
        #expect(pair.server.state == .inputFinished)
    }

    @Test func `the maximum version applies to the client leg`() async throws {
        var pair = try await EngineFixture.common.pair { _ in
        } server: {
            $0.maximumVersion = .tls12
        }
        pair.pump()
        #expect(pair.client.parameters()?.version == "TLS 1.2")
    }

    @Test func `TLS versions below 1.2 are refused unless allowed`() async throws {
        var pair = try await EngineFixture.common.pair { $0.maximumVersion = .tls11 }
        pair.pump()
        #expect(pair.client.state.fault?.code == .version)

        let old = try await EngineFixture { $0.minimumVersion = .tls10 }
        for version in [TLSVersion.tls10, .tls11] {
            var pair = try old.pair { $0.maximumVersion = version }
            pair.pump()
            #expect(pair.client.parameters()?.versionNumber == version)
            #expect(pair.server.state == .open)
        }
    }

    @Test func `a peer without a common TLS version gets the alert protocol_version`() async throws {
        let old = try await EngineFixture { $0.minimumVersion = .tls10 }
        let new = try await EngineFixture.common
        var pair = try EnginePair(
            old.pair(client: { $0.maximumVersion = .tls11 }).client,
            new.pair().server
        )
        pair.pump()
        #expect(pair.server.state.fault == TLSFault(.version, alertSent: .protocolVersion))
        #expect(pair.client.state.fault?.code == .alertReceived(.protocolVersion))
        #expect(
            pair.client.state.fault?.explanation(peer: "the server")
                == "the server supports none of the offered TLS versions (alert protocol_version)"
        )
    }

    @Test func `ALPN selects a common protocol, refuses others, and is omitted if the client offers none`()
        async throws
    {
        let fixture = try await EngineFixture.common
        func outcome(_ offered: [String], _ ours: ClientLegOffer.Protocols) throws -> EnginePair {
            var pair = try fixture.pair {
                $0.protocols = offered
            } server: {
                $0.protocols = ours
            }
            pair.pump()
            return pair
        }

        let agreed = try outcome(["http/1.1", "xmpp-client"], .chosen(["xmpp-server", "xmpp-client"]))
        #expect(agreed.client.parameters()?.applicationProtocol == "xmpp-client")
        #expect(agreed.server.parameters()?.applicationProtocol == "xmpp-client")
        let foreign = try outcome(["http/1.1"], .chosen(["xmpp-client"]))
        #expect(foreign.server.state.fault == TLSFault(.noSharedProtocol, alertSent: .noApplicationProtocol))
        #expect(foreign.client.state.fault?.code == .alertReceived(.noApplicationProtocol))
        #expect(try outcome([], .chosen(["xmpp-client"])).client.parameters()?.applicationProtocol == nil)
        let ignored = try outcome(["http/1.1"], .ignored)
        #expect(ignored.client.state == .open)
        #expect(ignored.client.parameters()?.applicationProtocol == nil)
    }

    @Test func `the parameters describe the negotiated connection and its certificate`() async throws {
        var pair = try await EngineFixture(names: ["DNS:example.org", "DNS:*.example.org", "IP:127.0.0.1"]).pair()
        #expect(pair.client.parameters() == nil)
        pair.pump()
        let parameters = try #require(pair.client.parameters())
        #expect(parameters.version == "TLS 1.3")
        #expect(parameters.suite.hasPrefix("TLS_"))
        #expect(parameters.serverName == "example.org")
        #expect(!parameters.isResumed)
        let certificate = try #require(parameters.certificate)
        #expect(certificate.subject == "CN=leaf")
        #expect(certificate.issuer == "CN=Test Authority")
        #expect(certificate.names.all == ["example.org", "*.example.org", "IP:127.0.0.1"])
        #expect(certificate.key == "EC P-256")
        #expect(certificate.notAfter.seconds - certificate.notBefore.seconds == 2 * 86_400)
        #expect(certificate.notBefore.text.hasSuffix("Z"))
        #expect(certificate.fingerprint.count == 32)
        #expect(certificate.fingerprintText.utf8.count == 95)
        let ours = try #require(pair.server.parameters())
        #expect(ours.certificate == certificate)
        #expect(ours.serverName == "example.org")
        #expect(parameters.details["names"] == .strings(["example.org", "*.example.org", "IP:127.0.0.1"]))
    }

    @Test func `an IP address is not sent in SNI`() async throws {
        var pair = try await EngineFixture(names: ["IP:192.0.2.1"]).pair(domain: "192.0.2.1")
        pair.pump()
        #expect(pair.client.state == .open)
        #expect(pair.server.parameters()?.serverName == nil)
    }

    @Test func `the secrets of both ends are logged in the SSLKEYLOGFILE format`() async throws {
        let lines = Lines()
        let fixture = try await EngineFixture { $0.keyLog = { lines.append($0) } }
        var pair = try fixture.pair()
        pair.pump()
        let names = Set(lines.all.map { String($0.prefix { $0 != " " }) })
        #expect(
            names.isSuperset(of: [
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0",
                "SERVER_TRAFFIC_SECRET_0", "EXPORTER_SECRET",
            ])
        )
        #expect(lines.all.allSatisfy { $0.split(separator: " ").count == 3 })
    }

    /// Number of bytes sent in each direction before a session is idle.
    private static let burst = 100_000

    /// Returns the memory of an idle session in bytes, for both legs, after a ``burst`` in each direction.
    private static func bytesOfIdleSession() async throws -> Int {
        let fixture = try await EngineFixture.common
        var generator = SeededGenerator(seed: 1)
        let bytes = ByteBuffer(bytes: generator.bytes(count: burst))
        func make() throws -> EnginePair {
            var pair = try fixture.pair()
            pair.pump(size: 4000)
            // The stream headers, and the session ticket.
            for plaintext in [ByteBuffer(string: "header"), bytes] {
                pair.client.write(plaintext)
                pair.server.write(plaintext)
                pair.pump(size: 4000)
            }
            pair.atClient = ByteBuffer()
            pair.atServer = ByteBuffer()
            return pair
        }
        // The first pair allocates everything that all pairs share.
        _ = try make()
        let count = 1000
        let before = try residentBytes()
        let pairs = try (0..<count).map { _ in try make() }
        let each = (try residentBytes() - before) / count
        withExtendedLifetime(pairs) {}
        return each
    }

    /// Returns the resident memory of this process in bytes.
    private static func residentBytes() throws -> Int {
        let file = try #require(fopen("/proc/self/statm", "r"))
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 200)
        _ = fgets(&line, Int32(line.count), file)
        let words = String(decoding: line.map(UInt8.init(bitPattern:)), as: UTF8.self).split(separator: " ")
        return try #require(words.count > 1 ? Int(words[1]) : nil) * Int(getpagesize())
    }

    @Test(.enabled(if: !BuildMode.isSanitized))
    func `an idle session releases the memory that a burst needed`() async {
        // Runs in a separate process, because other tests allocate memory concurrently.
        await #expect(processExitsWith: .success) {
            let each = try await Self.bytesOfIdleSession()
            // Usually a third of the burst. The buffers of OpenSSL alone would take two thirds, and the forwarded data
            // as much again.
            #expect(each > 1 << 10 && each < Self.burst * 3 / 4, "\(each) bytes")
        }
    }
}
