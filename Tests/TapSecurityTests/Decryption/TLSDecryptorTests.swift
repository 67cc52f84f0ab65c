import NIOCore
import TapRecord
import TapTestKit
import Testing

@testable import TapSecurity

@Suite(.enabled(if: TestProgram.openssl.isInstalled)) struct TLSDecryptorTests {
    /// A TLS version and OpenSSL cipher suites.
    struct Case: Sendable, CustomTestStringConvertible {
        let version: TLSVersion
        let suite: String
        var encryptsThenMACs = true

        var testDescription: String { "\(version) \(suite)\(encryptsThenMACs ? "" : " MAC-then-encrypt")" }

        func laboratory() async throws -> TLSLaboratory {
            var options = TLSLaboratory.Options(version: version, suites: suite)
            options.encryptsThenMACs = encryptsThenMACs
            return try await TLSLaboratory(options)
        }

        static let usual = [
            Case(version: .tls13, suite: "TLS_AES_256_GCM_SHA384"),
            Case(version: .tls12, suite: "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ]

        static let all =
            [
                "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
                "TLS_AES_128_CCM_SHA256",
                "TLS_AES_128_CCM_8_SHA256",
            ].map { Case(version: .tls13, suite: $0) }
            + [
                "AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305", "AES128-CCM", "AES256-CCM8",
                "AES128-SHA",
                "AES256-SHA", "AES128-SHA256", "AES256-SHA384",
            ].map { Case(version: .tls12, suite: "ECDHE-ECDSA-" + $0) }
            + ["AES128-SHA", "AES128-SHA256", "AES256-SHA384"].map {
                Case(version: .tls12, suite: "ECDHE-ECDSA-" + $0, encryptsThenMACs: false)
            }
    }

    private func expectAll(
        _ decrypted: Decrypted,
        of recorded: RecordedTLS,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(decrypted.plaintext == recorded.sent, sourceLocation: location)
        #expect(decrypted.failures == [:], sourceLocation: location)
        #expect(decrypted.holes == [:], sourceLocation: location)
        #expect(decrypted.handshakes == 1, sourceLocation: location)
    }

    @Test(arguments: Case.all)
    func `every cipher suite is decrypted, from one chunk or byte by byte`(suite: Case) async throws {
        let laboratory = try await suite.laboratory()
        let recorded = try RecordedTLS(laboratory)
        recorded.converse()
        recorded.close()
        for size in [Int.max, 1] {
            let decrypted = recorded.decrypted(size: size)
            expectAll(decrypted, of: recorded)
            #expect(decrypted.closed == [.send, .recv])
            let handshake = try #require(decrypted.handshake)
            #expect(handshake.version == suite.version.rawValue)
            #expect(handshake.suite == recorded.suite)
            #expect(handshake.serverName == "example.org")
            #expect(handshake.applicationProtocol == "xmpp-client")
            #expect(!handshake.isResumed)
            #expect(handshake.hasSecrets)
        }
    }

    @Test(arguments: Case.usual)
    func `either direction can be received first`(suite: Case) async throws {
        let recorded = try RecordedTLS(await suite.laboratory())
        recorded.write(.send, RecordedTLS.text(400, "c"))
        recorded.write(.recv, RecordedTLS.text(400, "s"))
        expectAll(recorded.decrypted(order: [.send, .recv]), of: recorded)
        expectAll(recorded.decrypted(order: [.recv, .send]), of: recorded)
    }

    @Test func `the key log of xmpptap's TLS engine decrypts its connections`() async throws {
        let lines = Lines()
        let fixture = try await EngineFixture { $0.keyLog = lines.append }
        var pair = try fixture.pair()
        var transcript: [(Direction, [UInt8])] = []
        pair.client.advance(into: &pair.atClient)
        for round in 0..<6 {
            if round == 3 { pair.client.write(ByteBuffer(string: "<presence/>")) }
            if let output = pair.client.takeOutput() {
                transcript.append((.send, Array(buffer: output)))
                pair.server.receive(output)
                pair.server.advance(into: &pair.atServer)
            }
            if let output = pair.server.takeOutput() {
                transcript.append((.recv, Array(buffer: output)))
                pair.client.receive(output)
                pair.client.advance(into: &pair.atClient)
            }
        }
        let keyLog = KeyLog()
        for line in lines.all { keyLog.append(Array("\(line)\n".utf8).span) }
        let reader = TLSDecryptor(keyLog: keyLog)
        for (direction, bytes) in transcript { reader.receive(direction, bytes) }
        var result = Decrypted()
        result.take(from: reader)
        #expect(result.plaintext[.send] == Array("<presence/>".utf8))
        #expect(result.failures == [:])
    }

    // MARK: Handshakes

    @Test func `decryption continues after a KeyUpdate in either direction`() async throws {
        let recorded = try RecordedTLS(await TLSLaboratory())
        for direction in [Direction.send, .recv, .send] {
            recorded.updateKeys(direction, both: direction == .recv)
            recorded.converse()
        }
        expectAll(recorded.decrypted(), of: recorded)
        expectAll(recorded.decrypted(size: 1), of: recorded)
    }

    @Test func `a handshake with a HelloRetryRequest is decrypted`() async throws {
        var options = TLSLaboratory.Options()
        options.clientGroups = "X25519:P-256"
        options.serverGroups = "P-256"
        let recorded = try RecordedTLS(await TLSLaboratory(options))
        recorded.converse()
        let hellos = recorded.transcript.prefix(4).filter { $0.direction == .send && $0.bytes.contains(1) }
        #expect(hellos.count >= 2)
        expectAll(recorded.decrypted(), of: recorded)
        expectAll(recorded.decrypted(order: [.send, .recv]), of: recorded)
        expectAll(recorded.decrypted(order: [.recv, .send]), of: recorded)
    }

    @Test(arguments: [(TLSVersion.tls13, true), (.tls12, true), (.tls12, false)])
    func `a resumed session is decrypted with its own secrets`(version: TLSVersion, tickets: Bool) async throws {
        var options = TLSLaboratory.Options(version: version)
        options.usesTickets = tickets
        let laboratory = try await TLSLaboratory(options)
        let first = try RecordedTLS(laboratory)
        first.converse()
        first.close()
        let second = try RecordedTLS(laboratory, resuming: first)
        #expect(second.isResumed)
        second.converse()
        expectAll(second.decrypted(), of: second)
        #expect(second.decrypted().handshake?.isResumed == true)
        expectAll(first.decrypted(), of: first)
        #expect(first.decrypted().handshake?.isResumed == false)
    }

    @Test(arguments: [false, true])
    func `early data is decrypted if the server accepts it`(isRefused: Bool) async throws {
        var options = TLSLaboratory.Options()
        options.maximumEarlyData = 16_384
        let laboratory = try await TLSLaboratory(options)
        let first = try RecordedTLS(laboratory)
        first.converse()
        first.close()
        let early = RecordedTLS.text(1000, "e")
        let second = try RecordedTLS(laboratory, resuming: first, earlyData: early, refusesEarlyData: isRefused)
        second.converse()
        #expect(second.sent[.send]?.starts(with: early) == !isRefused)
        for order in [nil, [Direction.send, .recv], [.recv, .send]] {
            expectAll(second.decrypted(order: order), of: second)
        }
        expectAll(second.decrypted(size: 1), of: second)
    }

    @Test func `early data without its secret is reported as a hole`() async throws {
        var options = TLSLaboratory.Options()
        options.maximumEarlyData = 16_384
        let laboratory = try await TLSLaboratory(options)
        let first = try RecordedTLS(laboratory)
        first.converse()
        first.close()
        let second = try RecordedTLS(laboratory, resuming: first, earlyData: RecordedTLS.text(1000, "e"))
        second.converse()
        let keyLog = KeyLog()
        for line in laboratory.keyLog.split(separator: "\n") where !line.hasPrefix("CLIENT_EARLY_TRAFFIC") {
            keyLog.append(Array("\(line)\n".utf8).span)
        }
        let decrypted = second.decrypted(keyLog)
        #expect(decrypted.plaintext[.send] == second.sent[.send].map { Array($0.dropFirst(1000)) })
        #expect(decrypted.failures == [:])
        #expect(try #require(decrypted.holes[.send]) > 1000)
    }

    @Test func `decryption continues after a renegotiation in TLS 1.2`() async throws {
        let recorded = try RecordedTLS(await TLSLaboratory(TLSLaboratory.Options(version: .tls12)))
        recorded.converse()
        let before = recorded.transcript.count
        recorded.renegotiate()
        #expect(recorded.transcript.count > before + 2)
        recorded.converse()
        expectAll(recorded.decrypted(), of: recorded)
    }

    // MARK: Secrets

    @Test(arguments: Case.usual)
    func `without secrets, each direction fails at once, and its bytes are counted`(suite: Case) async throws {
        let recorded = try RecordedTLS(await suite.laboratory())
        recorded.converse()
        let decryptor = TLSDecryptor(keyLog: KeyLog())
        for (direction, bytes) in recorded.transcript { decryptor.receive(direction, bytes) }
        var decrypted = Decrypted()
        decrypted.take(from: decryptor)
        let isNew = suite.version == .tls13
        #expect(decrypted.failures[.send] == .noSecret(isNew ? .clientHandshake : .master))
        #expect(decrypted.failures[.recv] == .noSecret(isNew ? .serverHandshake : .master))
        #expect(decrypted.handshake?.hasSecrets == false)
        #expect(decrypted.handshake?.suite == recorded.suite)
        #expect(decrypted.plaintext == [.send: [], .recv: []])
        for direction in Direction.allCases {
            let count = try #require(recorded.sent[direction]).count
            #expect(count...recorded.bytes(direction).count ~= decryptor.undecryptedBytes(direction))
        }
    }

    @Test(arguments: Case.usual)
    func `wrong secrets for the client random are reported`(suite: Case) async throws {
        let laboratory = try await suite.laboratory()
        let recorded = try RecordedTLS(laboratory)
        recorded.converse()
        let keyLog = KeyLog()
        for line in laboratory.keyLog.split(separator: "\n") {
            // The last digit is changed.
            let digit = line.hasSuffix("0") ? "1" : "0"
            keyLog.append(Array("\(line.dropLast())\(digit)\n".utf8).span)
        }
        let decrypted = recorded.decrypted(keyLog)
        #expect(decrypted.failures == [.send: .wrongSecret, .recv: .wrongSecret])
        #expect(decrypted.handshake?.hasSecrets == true)
        #expect(decrypted.plaintext == [.send: [], .recv: []])
    }

    @Test(arguments: Case.usual)
    func `a late secret is used if the encrypted bytes were kept`(suite: Case) async throws {
        let laboratory = try await suite.laboratory()
        let recorded = try RecordedTLS(laboratory)
        recorded.write(.send, RecordedTLS.text(400, "c"))
        recorded.write(.recv, RecordedTLS.text(400, "s"))
        let keyLog = KeyLog()
        let decryptor = TLSDecryptor(keyLog: keyLog, missingSecretLimit: 1 << 16)
        for (direction, bytes) in recorded.transcript { decryptor.receive(direction, bytes) }
        var decrypted = Decrypted()
        decrypted.take(from: decryptor)
        #expect(decrypted.plaintext == [.send: [], .recv: []])
        #expect(decrypted.failures == [:])
        #expect(decryptor.isWaitingForSecret)
        for line in laboratory.keyLog.split(separator: "\n") {
            keyLog.append(Array("\(line)\n".utf8).span)
            decryptor.retry()
        }
        decrypted.take(from: decryptor)
        expectAll(decrypted, of: recorded)
        #expect(!decryptor.isWaitingForSecret)
        #expect(decrypted.handshake?.hasSecrets == true)
    }

    @Test(arguments: Case.usual)
    func `after secrets are given up, the directions that wait for them fail`(suite: Case) async throws {
        let recorded = try RecordedTLS(await suite.laboratory())
        recorded.converse()
        let decryptor = TLSDecryptor(keyLog: KeyLog(), missingSecretLimit: .max)
        for (direction, bytes) in recorded.transcript { decryptor.receive(direction, bytes) }
        decryptor.giveUpSecrets()
        var decrypted = Decrypted()
        decrypted.take(from: decryptor)
        let isNew = suite.version == .tls13
        #expect(decrypted.failures[.send] == .noSecret(isNew ? .clientHandshake : .master))
        #expect(decrypted.failures[.recv] == .noSecret(isNew ? .serverHandshake : .master))
        #expect(!decryptor.isWaitingForSecret)
    }

    @Test func `the amount of data kept for a missing secret is limited`() async throws {
        let recorded = try RecordedTLS(await TLSLaboratory())
        let decryptor = TLSDecryptor(keyLog: KeyLog(), missingSecretLimit: 20_000)
        recorded.converse()
        for (direction, bytes) in recorded.transcript { decryptor.receive(direction, bytes) }
        var decrypted = Decrypted()
        decrypted.take(from: decryptor)
        #expect(decrypted.failures == [.send: .noSecret(.clientHandshake), .recv: .noSecret(.serverHandshake)])
    }

    // MARK: Failures

    @Test(
        arguments: [
            (TLSVersion.tls12, "ECDHE-ECDSA-NULL-SHA", .unsupportedSuite("TLS_ECDHE_ECDSA_WITH_NULL_SHA")),
            (.tls11, "ECDHE-ECDSA-AES128-SHA", .unsupportedVersion(0x0302)),
        ] as [(TLSVersion, String, TLSDecryptionFailure)]
    )
    func `unsupported parameters are reported`(version: TLSVersion, suite: String, failure: TLSDecryptionFailure)
        async throws
    {
        let recorded = try RecordedTLS(await TLSLaboratory(TLSLaboratory.Options(version: version, suites: suite)))
        recorded.converse()
        let decrypted = recorded.decrypted()
        #expect(decrypted.failures == [.send: failure, .recv: failure])
        #expect(decrypted.handshake?.suite == recorded.suite)
    }

    @Test func `non-TLS data, a missing handshake and a truncated record cause different failures`() async throws {
        func failures(_ send: [UInt8], _ recv: [UInt8] = []) -> [Direction: TLSDecryptionFailure] {
            let decryptor = TLSDecryptor(keyLog: KeyLog())
            decryptor.receive(.send, send)
            decryptor.receive(.recv, recv)
            for direction in Direction.allCases { decryptor.finish(direction) }
            var decrypted = Decrypted()
            decrypted.take(from: decryptor)
            return decrypted.failures
        }
        #expect(failures(Array("<stream:stream".utf8), Array("GET".utf8)) == [.send: .notTLS, .recv: .notTLS])
        #expect(failures([0x16, 3, 1, 0xFF, 0xFF]) == [.send: .notTLS])
        let data: [UInt8] = [23, 3, 3, 0, 20] + [UInt8](repeating: 7, count: 20)
        #expect(failures(data, data) == [.send: .noHandshake, .recv: .noHandshake])
        #expect(failures([0x16, 3, 1, 0, 4, 1]) == [.send: .truncated])
        #expect(failures([], []) == [:])
        let recorded = try RecordedTLS(await TLSLaboratory())
        recorded.converse()
        // The server's direction was not recorded.
        #expect(failures(recorded.bytes(.send)) == [.send: .noHandshake])
        #expect(failures([], recorded.bytes(.recv)) == [.recv: .noHandshake])
        #expect(failures(recorded.bytes(.send) + [0, 0, 0]).count == 1)
    }

    // MARK: Holes

    @Test(arguments: Case.all)
    func `after a hole, decryption continues with the next complete record`(suite: Case) async throws {
        let laboratory = try await suite.laboratory()
        let recorded = try RecordedTLS(laboratory)
        recorded.write(.send, Array("<first/>".utf8))
        let start = recorded.bytes(.send).count
        for number in 0..<20 { recorded.write(.send, Array("<message id='\(number)'/>".utf8)) }
        let end = recorded.bytes(.send).count
        recorded.write(.send, Array("<last/>".utf8))
        let bytes = recorded.bytes(.send)
        let all = try #require(recorded.sent[.send])
        for (from, to, size) in [
            (start, end, 1), (start + 3, end - 3, 7), (start - 1, end + 0, .max), (start + 100, start + 101, 50),
        ] {
            let decryptor = TLSDecryptor(keyLog: laboratory.makeKeyLog())
            decryptor.receive(.recv, [])
            decryptor.receive(.send, Array(bytes[..<from]), size: size)
            decryptor.receive(.recv, recorded.bytes(.recv), size: size)
            decryptor.hole(.send, bytes: to - from)
            decryptor.receive(.send, Array(bytes[to...]), size: size)
            for direction in Direction.allCases { decryptor.finish(direction) }
            var decrypted = Decrypted()
            decrypted.take(from: decryptor)
            #expect(decrypted.failures == [:])
            let told = try #require(decrypted.plaintext[.send])
            #expect(told.ends(with: Array("<last/>".utf8)))
            #expect(told.count < all.count)
            #expect(try #require(decrypted.holes[.send]) >= to - from)
            #expect(decrypted.plaintext[.recv] == recorded.sent[.recv])
        }
    }

    @Test func `bytes in a hole do not count as undecrypted`() async throws {
        let laboratory = try await TLSLaboratory()
        let recorded = try RecordedTLS(laboratory)
        let start = recorded.bytes(.send).count
        recorded.write(.send, Array("<first/>".utf8))
        let end = recorded.bytes(.send).count
        recorded.write(.send, Array("<last/>".utf8))
        let bytes = recorded.bytes(.send)
        // The first 7 bytes of the record were received.
        let decryptor = TLSDecryptor(keyLog: laboratory.makeKeyLog())
        decryptor.receive(.send, Array(bytes[..<(start + 7)]))
        decryptor.receive(.recv, recorded.bytes(.recv))
        decryptor.hole(.send, bytes: end - start - 7)
        decryptor.receive(.send, Array(bytes[end...]))
        var decrypted = Decrypted()
        decrypted.take(from: decryptor)
        #expect(decrypted.failures == [:] && decrypted.holes == [.send: end - start])
        #expect(decryptor.undecryptedBytes(.send) == 7)
        // After a failure, a hole has no effect.
        decryptor.hole(.send, bytes: 5)
        decryptor.finish(.send)
        decryptor.hole(.send, bytes: 1000)
        decrypted.take(from: decryptor)
        #expect(decrypted.failures == [.send: .gap(at: bytes.count)])
        #expect(decryptor.undecryptedBytes(.send) == 7)
    }

    @Test func `an unknown MAC algorithm throws an error`() throws {
        let suite = CipherSuite(0xC013)
        func make(_ hash: StaticString) throws {
            let protection = CipherSuite.Protection.cbc(hash: hash, macLength: 20)
            let count = RecordProtection.keyBlockLength(suite, protection)
            _ = try RecordProtection(
                suite,
                protection,
                keyBlock: [UInt8](repeating: 1, count: count),
                isClient: true,
                encryptsThenMACs: false
            )
        }
        try make("SHA1")
        #expect(throws: OpenSSLError.self) { try make("NONE-SUCH") }
    }

    @Test func `a hole may include a KeyUpdate or the end of the handshake`() async throws {
        let laboratory = try await TLSLaboratory()
        let recorded = try RecordedTLS(laboratory)
        let handshakeEnd = recorded.bytes(.recv).count
        recorded.write(.recv, Array("<first/>".utf8))
        let start = recorded.bytes(.recv).count
        recorded.updateKeys(.recv, both: false)
        let end = recorded.bytes(.recv).count
        #expect(end > start)
        recorded.write(.recv, Array("<last/>".utf8))
        let bytes = recorded.bytes(.recv)
        for (hole, text) in [(start..<end, "<first/><last/>"), (400..<handshakeEnd, "<first/><last/>")] {
            let decryptor = TLSDecryptor(keyLog: laboratory.makeKeyLog())
            decryptor.receive(.send, recorded.bytes(.send))
            decryptor.receive(.recv, Array(bytes[..<hole.lowerBound]))
            decryptor.hole(.recv, bytes: hole.count)
            decryptor.receive(.recv, Array(bytes[hole.upperBound...]), size: 11)
            decryptor.finish(.recv)
            var decrypted = Decrypted()
            decrypted.take(from: decryptor)
            #expect(decrypted.failures == [:])
            #expect(decrypted.plaintext[.recv] == Array(text.utf8))
        }
    }

    @Test func `a damaged record is reported as a hole`() async throws {
        let laboratory = try await TLSLaboratory()
        let recorded = try RecordedTLS(laboratory)
        recorded.write(.send, Array("<first/>".utf8))
        let start = recorded.bytes(.send).count
        recorded.write(.send, Array("<second/>".utf8))
        recorded.write(.send, Array("<third/>".utf8))
        var bytes = recorded.bytes(.send)
        bytes[start + 8] ^= 1
        let decryptor = TLSDecryptor(keyLog: laboratory.makeKeyLog())
        decryptor.receive(.send, bytes)
        decryptor.receive(.recv, recorded.bytes(.recv))
        var decrypted = Decrypted()
        decrypted.take(from: decryptor)
        #expect(decrypted.plaintext[.send] == Array("<first/><third/>".utf8))
        #expect(decrypted.holes == [.send: 5 + 9 + 1 + 16])
        #expect(decrypted.failures == [:])
    }

    @Test func `decryption of a direction fails after a hole in the ClientHello or at the end`() async throws {
        let laboratory = try await TLSLaboratory()
        let recorded = try RecordedTLS(laboratory)
        recorded.converse()
        let hello = TLSDecryptor(keyLog: laboratory.makeKeyLog())
        hello.receive(.send, Array(recorded.bytes(.send).prefix(50)))
        hello.hole(.send, bytes: 10)
        hello.receive(.recv, recorded.bytes(.recv))
        hello.finish(.recv)
        var decrypted = Decrypted()
        decrypted.take(from: hello)
        #expect(decrypted.failures == [.send: .gap(at: 50), .recv: .noHandshake])

        let end = TLSDecryptor(keyLog: laboratory.makeKeyLog())
        for (direction, bytes) in recorded.transcript { end.receive(direction, bytes) }
        end.hole(.send, bytes: .max)
        end.receive(.send, [UInt8](repeating: 23, count: 2 << 20), size: 1000)
        end.hole(.send, bytes: .max)
        var rest = Decrypted()
        rest.take(from: end)
        #expect(rest.plaintext == recorded.sent)
        #expect(rest.failures == [.send: .gap(at: recorded.bytes(.send).count)])
        #expect(end.undecryptedBytes(.send) >= 2 << 20)
    }

    @Test func `the search for a record after a hole is bounded`() async throws {
        let laboratory = try await TLSLaboratory()
        let recorded = try RecordedTLS(laboratory)
        recorded.converse()
        let decryptor = TLSDecryptor(keyLog: laboratory.makeKeyLog())
        for (direction, bytes) in recorded.transcript { decryptor.receive(direction, bytes) }
        decryptor.hole(.recv, bytes: 1 << 30)
        decryptor.receive(.recv, (0..<200_000).flatMap { _ in [23, 3, 3, 64, 0] as [UInt8] })
        var decrypted = Decrypted()
        decrypted.take(from: decryptor)
        #expect(decrypted.failures == [.recv: .gap(at: recorded.bytes(.recv).count)])
    }

    // MARK: Hostile bytes

    @Test(arguments: Case.usual, [1, 2, 3, 4] as [UInt64])
    func `changed bytes never decrypt to data that was not sent`(suite: Case, seed: UInt64) async throws {
        let laboratory = try await suite.laboratory()
        let recorded = try RecordedTLS(laboratory)
        var words: Set<[UInt8]> = []
        for number in 0..<30 {
            for direction in Direction.allCases {
                let word = Array("<message from='\(direction.name)' id='\(number)'/>".utf8)
                words.insert(word)
                recorded.write(direction, word)
            }
        }
        recorded.close()
        let keyLog = laboratory.makeKeyLog()
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let decryptor = TLSDecryptor(keyLog: keyLog)
            var failures: Set<Direction> = []
            for (direction, original) in recorded.transcript {
                var bytes = original
                switch Int.random(in: 0..<30, using: &generator) {
                case 0:
                    bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(
                        in: 0...255,
                        using: &generator
                    )
                case 1: bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator))
                case 2:
                    bytes.insert(
                        contentsOf: generator.bytes(count: 20),
                        at: Int.random(in: bytes.indices, using: &generator)
                    )
                case 3: decryptor.hole(direction, bytes: Int.random(in: 0..<4000, using: &generator))
                case 4: bytes += original
                default: break
                }
                decryptor.receive(direction, bytes, size: Int.random(in: 1...2000, using: &generator))
            }
            for direction in Direction.allCases { decryptor.finish(direction) }
            while let output = decryptor.next() {
                switch output {
                case .plaintext(let direction, let bytes):
                    #expect(words.contains(bytes))
                    #expect(!failures.contains(direction))
                case .failed(let direction, _): #expect(failures.insert(direction).inserted)
                default: break
                }
            }
        }
    }

    @Test func `random bytes after a ClientHello do not crash the decryptor`() async throws {
        let recorded = try RecordedTLS(await TLSLaboratory())
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<300 {
            let decryptor = TLSDecryptor(keyLog: KeyLog(), missingSecretLimit: 1000)
            for (direction, bytes) in recorded.transcript.prefix(2) { decryptor.receive(direction, bytes) }
            for _ in 0..<20 {
                var bytes = generator.bytes(count: 300)
                // About half of the pieces begin like a record.
                if Bool.random(using: &generator) {
                    bytes.replaceSubrange(0..<5, with: [UInt8.random(in: 20...24, using: &generator), 3, 3, 0, 200])
                }
                decryptor.receive(Bool.random(using: &generator) ? .send : .recv, bytes)
            }
            while let output = decryptor.next() {
                if case .plaintext = output { Issue.record("plaintext from random bytes") }
            }
        }
    }
}

extension [UInt8] {
    fileprivate func ends(with suffix: [UInt8]) -> Bool { Array(self.suffix(suffix.count)) == suffix }
}
