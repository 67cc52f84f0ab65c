import TapCore
import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

private func bytes(hex: String) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = hex[...]
    while rest.count >= 2 {
        bytes.append(UInt8(rest.prefix(2), radix: 16) ?? 0)
        rest = rest.dropFirst(2)
    }
    return bytes
}

/// ClientHello messages that were recorded from clients.
enum RecordedHello {
    /// The ClientHello of `openssl s_client -servername xmpp.example.org -alpn xmpp-client,h2` (OpenSSL 3.0).
    static let modern = bytes(
        hex: "16030101520100014e03034f1c9d766b3ebbe1045eccfc0da684686c9623c2d85eb42eac948dd194d7c90a204024bb6fb9b886b5"
            + "65c580a84c19ab35c69872959b5a41b2995530cf733b70a6003e130213031301c02cc030009fcca9cca8ccaac02bc02f009ec0"
            + "24c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f00ff010000c7000000150013000010786d"
            + "70702e6578616d706c652e6f7267000b000403000102000a00160014001d0017001e001900180100010101020103010400230000"
            + "00100011000f0b786d70702d636c69656e740268320016000000170000000d002a0028040305030603080708080809080a080b08"
            + "0408050806040105010601030303010302040205020602002b0009080304030303020301002d00020101003300260024001d0020"
            + "a36dd33f4485c335fba9d72beb34c173c7194fbe670274bb026dfd5782c69a45"
    )

    /// The ClientHello of `openssl s_client -noservername -tls1_2 -cipher ECDHE-RSA-AES128-GCM-SHA256`.
    static let plain = bytes(
        hex: "16030100830100007f0303fc7665ee760d630fffb6be97b456637c09cf27fd3b6e71f6cd8e5309c5cc0bbb000004c02f00ff0100"
            + "0052000b000403000102000a000c000a001d0017001e00190018002300000016000000170000000d002a002804030503060308"
            + "0708080809080a080b080408050806040105010601030303010302040205020602"
    )

    /// The ClientHello of go-sendxmpp 0.5.6.
    static let go = bytes(
        hex: "160301010e0100010a03035295cecbe2fe7e356424cb758639217587b2b20bcf103e810bc03cc6549980b5202f1067241c6dd104"
            + "ed72d844d32ad0e6758793a01133e3ee5086edf579c03ceb0026c02bc02fc02cc030cca9cca8c009c013c00ac014009c009d002f"
            + "0035c012000a1301130213030100009b0000000e000c0000096c6f63616c686f7374000500050100000000000a000a0008001d00"
            + "1700180019000b00020100000d001a0018080404030807080508060401050106010503060302010203ff010001000010000e000c"
            + "0b786d70702d636c69656e7400120000002b00050403040303003300260024001d0020337c4cb190e89e0cf9fb584958cedce0e4"
            + "9a516b22d7bdd54cfec1dd725d0e32"
    )

    /// The ClientHello of an `SSLSocket` of OpenJDK 17.
    static let java = bytes(
        hex: "16030301b3010001af0303702e9a51273fac6263d636169d763c0183ea9327e7479a7e0773040527c7b8b620e3ce1b58985a719d"
            + "2f06be487b7eb3bcd88750a69ef8dfd67745bdc011991a58004a130213011303c02cc02bcca9c030cca8c02f009fccaa00a3009e"
            + "00a2c024c028c023c027006b006a00670040c00ac014c009c0130039003800330032009d009c003d003c0035002f00ff0100011c"
            + "000500050100000000000a00160014001d001700180019001e01000101010201030104000b000201000011000900070200040000"
            + "00000017000000230000000d002c002a040305030603080708080804080508060809080a080b0401050106010402030303010302"
            + "020302010202002b00050403040303002d000201010032002c002a040305030603080708080804080508060809080a080b040105"
            + "01060104020303030103020203020102020033006b0069001d0020933a85495daed13607495269867aacbeea41371fff945033b9"
            + "c9650c8509766b0017004104d243f493274c79d84d36d46eb21da6956e20e0100f31d01badee12b72a44af854c3aa4ede8aebe0e"
            + "067c508c723148775d49ee7ad464f9fc7b10f262080f7b12"
    )

    /// The ClientHello of `gnutls-cli` (GnuTLS 3.7).
    static let gnutls = bytes(
        hex: "16030101820100017e03037a89ba526239962c6427a9ee07b93dbdc6e2ccb730f832d3535534bf08fa209820dab051e823912639"
            + "90b165935f6eff30f3db75250b734812587bdc2ff56cc7e3003a1302130313011304c02ccca9c0adc00ac02bc0acc009c030cca8"
            + "c014c02fc013009dc09d0035009cc09c002f009fccaac09f0039009ec09e0033010000fb000500050100000000000a0016001400"
            + "1700180019001d001e01000101010201030104000b00020100000d00220020040108090804040308070501080a08050503080806"
            + "01080b08060603020102030016000000170000002300000033006b00690017004104821bc5de57fa7e5f0d4da2b241e9606a4963"
            + "ecdbf9878681656e175f91dd1f41f17728b1c9ca14ec9fc9390b42722cd6b6d88024e921b25d3242e13e738afc94001d00204ab6"
            + "c508f5406430b0d9cd06b7fca3215962712e53f120954875638980a7843f002b0009080304030303020301ff010001000000000e"
            + "000c0000096c6f63616c686f7374002d0003020100001c00024001"
    )
}

private let modern = RecordedHello.modern
private let plain = RecordedHello.plain

/// Returns the result after reading these bytes in pieces.
private func read(_ bytes: [UInt8], cuts: [Int] = []) -> ClientHelloReader.Result {
    var reader = ClientHelloReader()
    var result = ClientHelloReader.Result.needMore
    var start = 0
    for end in cuts + [bytes.count] {
        result = reader.append(bytes.span.extracting(start..<end))
        start = end
    }
    return result
}

/// Returns the same handshake message in records of `size` bytes.
private func fragmented(_ hello: [UInt8], into size: Int) -> [UInt8] {
    var output: [UInt8] = []
    var rest = hello.dropFirst(5)
    while !rest.isEmpty {
        let part = rest.prefix(size)
        output += [0x16, 0x03, 0x01, UInt8(part.count >> 8), UInt8(part.count & 0xFF)] + part
        rest = rest.dropFirst(size)
    }
    return output
}

/// Returns a ClientHello with these extensions.
private func hello(extensions: [(UInt16, [UInt8])]) -> [UInt8] {
    func vector(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes }
    let list = extensions.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 0xFF)] + vector($0.1) }
    let body =
        [0x03, 0x03] + [UInt8](repeating: 7, count: 32) + [0] + vector([0x4A, 0x4A, 0x13, 0x01]) + [1, 0] + vector(list)
    let message = [1, 0] + vector(body)
    return [0x16, 0x03, 0x01] + vector(message)
}

@Suite struct ClientHelloTests {
    @Test func `the extensions of a ClientHello are read`() throws {
        guard case .hello(let hello) = read(modern) else {
            Issue.record("not read")
            return
        }
        #expect(hello.serverName == "xmpp.example.org")
        #expect(hello.protocols == ["xmpp-client", "h2"])
        #expect(hello.legacyVersion == 0x0303)
        #expect(hello.supportedVersions == [0x0304, 0x0303, 0x0302, 0x0301])
        #expect(hello.version == 0x0304)
        #expect(hello.cipherCount == 30)
        #expect(!hello.offersResumption)
        #expect(
            hello.details == [
                "server_name": "xmpp.example.org", "alpn": .strings(["xmpp-client", "h2"]), "version": "TLS 1.3",
                "legacy_version": "TLS 1.2",
                "supported_versions": .strings(["TLS 1.3", "TLS 1.2", "TLS 1.1", "TLS 1.0"]), "ciphers": 30,
            ]
        )
    }

    @Test func `a ClientHello without extensions is read`() {
        guard case .hello(let hello) = read(plain) else {
            Issue.record("not read")
            return
        }
        #expect(hello.serverName == nil)
        #expect(hello.protocols == [])
        #expect(hello.supportedVersions == [])
        #expect(hello.version == 0x0303)
        #expect(hello.cipherCount == 1)
        #expect(hello.details == ["version": "TLS 1.2", "legacy_version": "TLS 1.2", "ciphers": 1])
    }

    @Test(arguments: [
        (RecordedHello.modern, ClientSoftware.Library?.some(.openSSL)), (RecordedHello.plain, .openSSL),
        (RecordedHello.go, .go), (RecordedHello.java, .java), (RecordedHello.gnutls, .gnuTLS),
    ])
    func `a TLS library is recognised by its ClientHello extensions`(bytes: [UInt8], library: ClientSoftware.Library?) {
        guard case .hello(let hello) = read(bytes) else {
            Issue.record("not read")
            return
        }
        #expect(hello.library == library)
    }

    @Test(arguments: [[(22, []), (11, [3, 0, 1, 2])], [(18, [])], [(17, [])]] as [[(UInt16, [UInt8])]])
    func `no TLS library is derived from a ClientHello with GREASE`(extensions: [(UInt16, [UInt8])]) {
        guard case .hello(let grease) = read(hello(extensions: extensions)) else {
            Issue.record("not read")
            return
        }
        #expect(grease.library == nil)
    }

    @Test func `an invalid list of point formats does not invalidate the ClientHello`() {
        guard case .hello = read(hello(extensions: [(11, []), (11, [9, 0])])) else {
            Issue.record("not read")
            return
        }
    }

    @Test func `a ClientHello gives the same result for any split`() {
        let whole = read(modern)
        #expect(read(modern, cuts: Array(1..<modern.count)) == whole)
        for cut in 1..<modern.count { #expect(read(modern, cuts: [cut]) == whole) }
        for size in [1, 2, 3, 50, 300] {
            let records = fragmented(modern, into: size)
            #expect(read(records) == whole, "records of \(size) bytes")
            #expect(read(records, cuts: Array(1..<records.count)) == whole, "records of \(size) bytes, byte by byte")
        }
        #expect(read(modern + [0x14, 0x03, 0x03, 0, 1, 1]) == whole, "what follows is not looked at")
    }

    @Test func `more bytes are needed until the ClientHello is complete`() {
        for count in 0..<modern.count { #expect(read(Array(modern.prefix(count))) == .needMore, "\(count) bytes") }
    }

    @Test func `bytes that are not TLS are recognized at once`() {
        for input in ["<", "<?xml", "GET / HTTP/1.1\r\n", "\u{16}", "\u{16}\u{16}"] {
            let result = read(Array(input.utf8))
            #expect(result == (input == "\u{16}" ? .needMore : .notTLS), "\(input)")
        }
    }

    @Test func `a malformed ClientHello is reported with the reason`() {
        func reason(_ input: [UInt8]) -> String? {
            guard case .malformed(let reason) = read(input) else { return nil }
            return reason
        }
        var server = modern
        server[5] = 2
        #expect(reason(server) == "handshake message 2 in place of a ClientHello")
        var long = modern
        long[6] = 0xFF
        #expect(reason(long) == "a ClientHello of 16712014 bytes")
        #expect(reason([0x16, 3, 1, 0, 0]) == "an empty record")
        #expect(reason([0x16, 3, 1, 0xFF, 0xFF, 1]) == "a record of 65535 bytes")
        #expect(reason([0x16, 3, 1, 0, 1, 1, 0x17, 3, 3, 0, 1, 0]) == "another record inside the ClientHello")
        var truncated = modern
        truncated[43] = 0xFF
        #expect(reason(truncated) == "a length inside the ClientHello does not fit it")
        // The message is cut into records of one byte each, so its records have far more bytes than the message.
        let endless = fragmented([0, 0, 0, 0, 0, 1, 0, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 60_000), into: 1)
        #expect(reason(endless) == "the ClientHello is longer than 65536 bytes")
    }

    @Test func `GREASE values are ignored`() {
        let input = hello(extensions: [
            (0x4A4A, []), (16, [0, 15, 2, 0x4A, 0x4A, 11] + Array("xmpp-client".utf8)), (43, [4, 0x1A, 0x1A, 3, 4]),
            (42, []), (41, [0]), (0xFE0D, [0]),
        ])
        guard case .hello(let hello) = read(input) else {
            Issue.record("not read")
            return
        }
        #expect(hello.protocols == ["xmpp-client"])
        #expect(hello.supportedVersions == [0x0304])
        #expect(hello.cipherCount == 1)
        #expect(hello.offersResumption && hello.offersEarlyData && hello.offersEncryptedHello)
    }

    @Test func `mutated ClientHellos do not cause a crash`() {
        var random = SeededGenerator(seed: 3)
        var outcomes: Set<String> = []
        for round in 0..<40_000 {
            var input = round.isMultiple(of: 2) ? modern : plain
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                input[Int.random(in: 0..<input.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if Bool.random(using: &random) { input.removeLast(Int.random(in: 0..<input.count, using: &random)) }
            switch read(input, cuts: [Int.random(in: 0...input.count, using: &random)]) {
            case .hello(let hello): outcomes.insert("hello \(hello.details.isEmpty)")
            case .malformed: outcomes.insert("malformed")
            case .notTLS: outcomes.insert("not TLS")
            case .needMore: outcomes.insert("more")
            }
        }
        #expect(outcomes == ["hello false", "malformed", "not TLS", "more"])
    }

    @Test(arguments: [
        ("<?xml version='1.0'?>", ProtocolGuess.xml), (" \n<stream", .xml), ("\r\n\r\n<", .xml),
        ("GET / HTTP/1.1\r\n", .http), ("PRI * HTTP/2.0\r\n", .http), ("HTTP/1.1 400 Bad Request", .httpResponse),
        ("SSH-2.0-OpenSSH_9.2p1", .ssh), ("PROXY TCP4 192.0.2.1 ", .proxyProtocol),
        ("PROXY UNKNOWN\r\n", .proxyProtocol),
        ("\r\n\r\n\0\r\nQUIT\n\u{21}", .proxyProtocol), ("EHLO mail.example", .mail), ("* OK IMAP4 ready", .mail),
        ("\u{16}\u{3}\u{1}", .tls), ("\u{16}\u{16}", .unknown), ("<\0s\0t\0", .wideXML), ("\0<\0s", .wideXML),
        ("hello, is there anybody in there", .text), ("GET", .text), ("hello\0\u{1}\u{2}", .unknown), ("", .unknown),
    ]) func `the protocol is recognized by the first bytes`(_ input: String, _ guess: ProtocolGuess) {
        let bytes = Array(input.utf8)
        let found = ProtocolGuess(bytes.span, isFinal: true)
        #expect(found == guess)
        #expect(!guess.description.isEmpty)
        // With fewer bytes there may be no guess yet. A guess must not be contradicted by later bytes of a known
        // protocol.
        for count in 0..<bytes.count {
            let early = ProtocolGuess(bytes.span.extracting(0..<count))
            if early == nil || early == guess { continue }
            #expect(
                early == .xml && guess == .proxyProtocol || early == .xml && guess == .wideXML
                    || early == .tls && guess == .unknown || early == .unknown && guess == .wideXML,
                "\(count) of \(input)"
            )
        }
    }

    @Test func `encodings of two bytes are recognized`() {
        #expect(ProtocolGuess([0xFE, 0xFF, 0, 0x3C].span) == .wideXML)
        #expect(ProtocolGuess([0xFF, 0xFE, 0x3C, 0].span) == .wideXML)
        #expect(ProtocolGuess([0xEF, 0xBB, 0xBF, 0x3C].span) == .xml)
        #expect(ProtocolGuess([0x80, 0x81].span) == nil)
        #expect(ProtocolGuess([0x80, 0x81].span, isFinal: true) == .text)
    }
}
