import TapTestKit
import Testing

@testable import TapSecurity

struct DERTests {
    @Test("Lengths are encoded in minimal form", arguments: [0, 1, 127, 128, 255, 256, 65_535, 65_536, 70_000])
    func lengths(count: Int) {
        let bytes = DER.octets([UInt8](repeating: 7, count: count))
        let head: [UInt8] =
            switch count {
            case 0..<128: [UInt8(count)]
            case 128..<256: [0x81, UInt8(count)]
            case 256..<65_536: [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
            default: [0x83, UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
            }
        #expect(Array(bytes.prefix(1 + head.count)) == [0x04] + head)
        #expect(bytes.count == 1 + head.count + count)
    }

    @Test func `Random and truncated certificates do not crash the parser`() throws {
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
