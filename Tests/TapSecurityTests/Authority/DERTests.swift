import TapTestKit
import Testing

@testable import TapSecurity

struct DERTests {
    @Test("Lengths are written as short as they can be, and read back", arguments: [0, 1, 127, 128, 255, 256, 70_000])
    func lengths(count: Int) {
        let content = [UInt8](repeating: 7, count: count)
        let bytes = DER.octets(content)
        let head = bytes.count - count
        #expect(head == (count < 128 ? 2 : count < 256 ? 3 : count < 65_536 ? 4 : 5))
        var reader = DERReader(bytes[...])
        let read = reader.next(0x04).map { Array($0) }
        #expect(read == content)
        let isOver = reader.next() == nil
        #expect(isOver)
    }

    @Test(
        "What is no DER ends the reading",
        arguments: [
            [], [0x30], [0x30, 0x02, 0x00], [0x30, 0x80, 0x00, 0x00], [0x1F, 0x01, 0x00], [0x30, 0x81],
            [0x30, 0x85, 0, 0, 0, 0, 1, 0], [0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x30, 0xFF],
        ] as [[UInt8]]
    )
    func malformed(bytes: [UInt8]) {
        var reader = DERReader(bytes[...])
        for _ in 0..<2 {
            let value = reader.next()
            #expect(value == nil)
        }
    }

    @Test func `Names in a certificate of random bytes, and in a torn one, do no harm`() throws {
        let authority = try CertificateAuthority(for: .domain("example.org"), at: .day("2026-11-21"))
        let identity = try authority.leaf(
            for: [.domain("example.org"), .service("_xmpp-client.example.org"), .xmpp("example.org")],
            from: authority.begin,
            until: authority.end
        )
        let whole = identity.leafDER
        #expect(AlternativeName.names(ofCertificate: whole, limit: 10).count == 3)
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<2000 {
            var bytes = whole
            for _ in 0...Int.random(in: 0..<4, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            let torn = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
            #expect(AlternativeName.names(ofCertificate: torn, limit: 10).count <= 3)
            #expect(AlternativeName.names(ofCertificate: bytes, limit: 10).count <= 10)
        }
    }
}
