import NIOCore
import TapSecurity
import TapTestKit
import Testing

@Suite(.enabled(if: TestProgram.openssl.isInstalled)) struct HostileTLSTests {
    /// Returns the fault of an end that receives these bytes first, at once and byte by byte.
    private func fault(_ bytes: [UInt8], server: Bool = true) async throws -> TLSFault.Code? {
        let fixture = try await EngineFixture.common
        let codes = try [Int.max, 1].map { size -> TLSFault.Code? in
            let pair = try fixture.pair()
            let engine = server ? pair.server : pair.client
            var plaintext = ByteBuffer()
            engine.advance(into: &plaintext)
            var buffer = ByteBuffer(bytes: bytes)
            while let piece = buffer.readSlice(length: min(size, buffer.readableBytes)), piece.readableBytes > 0 {
                engine.receive(piece)
                engine.advance(into: &plaintext)
            }
            #expect(plaintext.readableBytes == 0)
            return engine.state.fault?.code
        }
        #expect(codes[0] == codes[1])
        return codes[0]
    }

    @Test(arguments: [
        "<?xml version='1.0'?><stream:stream", "GET / HTTP/1.1\r\n\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
        "\0\0\0\0\0\0\0\0\0\0\0\0",
    ])
    func `plaintext is distinguished from malformed TLS at both ends`(text: String) async throws {
        #expect(try await fault(Array(text.utf8)) == .notTLS)
        #expect(try await fault(Array(text.utf8), server: false) == .notTLS)
    }

    @Test func `a record that is too long is refused at its header`() async throws {
        #expect(try await fault([0x16, 3, 1, 0xFF, 0xFF, 1, 0, 0, 0]) == .recordTooLong)
    }

    @Test func `a ClientHello longer than its record waits for more data, and fails if the connection ends`()
        async throws
    {
        let pair = try await EngineFixture.common.pair()
        var plaintext = ByteBuffer()
        pair.server.receive(ByteBuffer(bytes: [0x16, 3, 1, 0, 4, 1, 0, 1, 0]))
        #expect(pair.server.advance(into: &plaintext) == .handshaking)
        pair.server.transportEnded()
        #expect(pair.server.state.fault?.code == .endedInHandshake)
    }

    /// Returns the ClientHello as a record.
    private func hello(_ pair: EnginePair) -> [UInt8] {
        var plaintext = ByteBuffer()
        pair.client.advance(into: &plaintext)
        return pair.client.takeOutput().map { Array(buffer: $0) } ?? []
    }

    @Test(arguments: [0, 1000]) func `a ClientHello with many unknown extensions is accepted`(count: Int) async throws {
        let pair = try await EngineFixture.common.pair()
        var message = hello(pair)
        // Skips record and message header, version, random, session id, cipher suites and compression methods.
        var index = 5 + 4 + 2 + 32
        index += 1 + Int(message[index])
        index += 2 + Int(message[index]) << 8 + Int(message[index + 1])
        index += 1 + Int(message[index])
        var extra: [UInt8] = []
        for number in 0..<count { extra += [0xC0 | UInt8(number >> 8), UInt8(number & 0xFF), 0, 0] }
        func add(_ place: Int) {
            let sum = Int(message[place]) << 8 + Int(message[place + 1]) + extra.count
            message[place] = UInt8(sum >> 8)
            message[place + 1] = UInt8(sum & 0xFF)
        }
        add(index)
        add(3)
        add(7)
        message.insert(contentsOf: extra, at: index + 2)
        var plaintext = ByteBuffer()
        pair.server.receive(ByteBuffer(bytes: message))
        #expect(pair.server.advance(into: &plaintext) == .handshaking)
        #expect(pair.server.serverName == "example.org")
        // The server responds with its complete flight.
        #expect(try #require(pair.server.takeOutput()).readableBytes > 500)
    }

    @Test func `a ClientHello truncated at any byte fails as an incomplete handshake`() async throws {
        let fixture = try await EngineFixture.common
        let whole = try hello(fixture.pair())
        for length in 0..<whole.count {
            let pair = try fixture.pair()
            var plaintext = ByteBuffer()
            pair.server.receive(ByteBuffer(bytes: whole.prefix(length)))
            pair.server.advance(into: &plaintext)
            pair.server.transportEnded()
            #expect(pair.server.state.fault?.code == .endedInHandshake)
        }
    }

    @Test func `a modified record ends an open connection, and earlier plaintext is kept`() async throws {
        for version in [TLSVersion.tls12, .tls13] {
            var pair = try await EngineFixture.common.pair { $0.maximumVersion = version }
            pair.pump()
            pair.client.write(ByteBuffer(string: "whole"))
            pair.client.write(ByteBuffer(string: "torn"))
            var bytes = try Array(buffer: #require(pair.client.takeOutput()))
            bytes[bytes.count - 1] ^= 1
            var plaintext = ByteBuffer()
            pair.server.receive(ByteBuffer(bytes: bytes))
            let state = pair.server.advance(into: &plaintext)
            #expect(String(buffer: plaintext) == "whole")
            #expect(state.fault == TLSFault(.badRecord, alertSent: TLSAlert(code: 20)))
            pair.pump()
            #expect(pair.client.state.fault?.code == .alertReceived(TLSAlert(code: 20)))
            #expect(!pair.server.write(ByteBuffer(string: "x")))
        }
    }

    @Test func `plaintext in an open connection ends it`() async throws {
        var pair = try await EngineFixture.common.pair()
        pair.pump()
        var plaintext = ByteBuffer()
        pair.server.receive(ByteBuffer(string: "<presence/>"))
        #expect(pair.server.advance(into: &plaintext).fault?.code == .notTLS)
        #expect(plaintext.readableBytes == 0)
    }

    @Test func `a modified handshake opens a connection only with equal keys at both ends`()
        async throws
    {
        let fixture = try await EngineFixture.common
        var random = SeededGenerator(seed: 20_261_121)
        for round in 0..<600 {
            let version: TLSVersion = round % 2 == 0 ? .tls12 : .tls13
            let pair = try fixture.pair { $0.maximumVersion = version }
            var plaintext = ByteBuffer()
            let turn = Int.random(in: 0..<5, using: &random)
            for step in 0..<8 {
                let (from, to) = step % 2 == 0 ? (pair.client, pair.server) : (pair.server, pair.client)
                from.advance(into: &plaintext)
                guard let output = from.takeOutput() else { continue }
                var bytes = Array(buffer: output)
                if step == turn {
                    for _ in 0..<Int.random(in: 1...4, using: &random) {
                        bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
                    }
                    if Bool.random(using: &random) { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random)) }
                }
                to.receive(ByteBuffer(bytes: bytes))
                to.advance(into: &plaintext)
            }
            #expect(plaintext.readableBytes == 0)
            if pair.client.state == .open, pair.server.state == .open {
                #expect(pair.client.channelBinding(.exporter) == pair.server.channelBinding(.exporter))
            }
        }
    }
}
