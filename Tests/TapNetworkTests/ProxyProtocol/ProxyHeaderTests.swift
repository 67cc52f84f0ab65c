import NIOCore
import Testing

@testable import TapNetwork

struct ProxyHeaderTests {
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]

    private static func address(_ text: String, _ port: Int) throws -> SocketAddress {
        try SocketAddress(ipAddress: text, port: port)
    }

    private static func client(_ source: String, _ sourcePort: Int, _ destination: String, _ destinationPort: Int)
        throws
        -> ProxyHeader
    {
        ProxyHeader(
            .client(source: try address(source, sourcePort), destination: try address(destination, destinationPort))
        )
    }

    /// Returns the result after these bytes have been appended one by one.
    private func read(_ bytes: [UInt8]) -> ProxyHeaderReader.Result {
        var reader = ProxyHeaderReader()
        for (index, byte) in bytes.enumerated() {
            let result = reader.append([byte])
            if result != .needMore {
                return index == bytes.count - 1 ? result : .fault("after \(index + 1) bytes: \(result)")
            }
        }
        return .needMore
    }

    private func read(_ text: String) -> ProxyHeaderReader.Result { read(Array(text.utf8)) }

    /// Returns a version 2 header with these parts.
    private func block(_ command: UInt8, _ family: UInt8, _ body: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? body.count
        return Self.signature + [command, family, UInt8(length >> 8), UInt8(length & 0xFF)] + body
    }

    private let addresses: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 2, 0xC3, 0x50, 0x14, 0x66]

    // MARK: Reading

    @Test func `A version 1 header is parsed byte by byte`() throws {
        #expect(
            read("PROXY TCP4 192.0.2.1 198.51.100.2 50000 5222\r\n")
                == .header(try Self.client("192.0.2.1", 50000, "198.51.100.2", 5222), rest: 0)
        )
        #expect(
            read("PROXY TCP6 2001:db8::1 2001:db8::2 1 0\r\n")
                == .header(try Self.client("2001:db8::1", 1, "2001:db8::2", 0), rest: 0)
        )
        #expect(read("PROXY UNKNOWN\r\n") == .header(ProxyHeader(.unknown), rest: 0))
        #expect(read("PROXY UNKNOWN ffff::1 x y z\r\n") == .header(ProxyHeader(.unknown), rest: 0))
        // The longest possible line.
        let full = [String](repeating: "ffff", count: 8).joined(separator: ":")
        let most = "PROXY TCP6 \(full) \(full) 65535 65535\r\n"
        #expect(most.utf8.count <= 107)
        guard case .header = read(most) else {
            Issue.record("\(read(most))")
            return
        }
    }

    @Test func `Data after a header is kept`() throws {
        for header in ["PROXY UNKNOWN\r\n".utf8.map { $0 }, block(0x21, 0x11, addresses)] {
            var reader = ProxyHeaderReader()
            guard case .header(_, rest: 8) = reader.append(header + Array("<stream:".utf8)) else {
                Issue.record("\(header)")
                continue
            }
        }
    }

    @Test(
        "An invalid version 1 header is a fault",
        arguments: [
            "<", "PROXI", "PROXY TCP4 192.0.2.1 198.51.100.2 50000 5222\n", "PROXY TCP5 192.0.2.1 198.51.100.2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 50000\r\n", "PROXY TCP4 192.0.2.1  198.51.100.2 50000 5222\r\n",
            "PROXY TCP4 192.0.2 198.51.100.2 50000 5222\r\n", "PROXY TCP4 ::1 ::2 50000 5222\r\n",
            "PROXY TCP6 192.0.2.1 198.51.100.2 50000 5222\r\n", "PROXY TCP4 192.0.2.1 198.51.100.2 65536 5222\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.2 050 5222\r\n", "PROXY TCP4 192.0.2.1 198.51.100.2 -1 5222\r\n",
            "PROXY TCP6 fe80::1%lo ::2 1 2\r\n", "PROXY \r\n", "PROXY TCP4 a b 1 2 3\r\n",
            "PROXY UNKNOWN" + String(repeating: " ", count: 94),
        ]
    )
    func badLine(_ text: String) {
        guard case .fault(let words) = read(text) else {
            Issue.record("\(text): \(read(text))")
            return
        }
        #expect(!words.hasPrefix("after"), "\(text): \(words)")
    }

    @Test func `A version 2 header is parsed byte by byte`() throws {
        let client = try Self.client("192.0.2.1", 50000, "198.51.100.2", 5222)
        #expect(read(block(0x21, 0x11, addresses)) == .header(client, rest: 0))
        let v6 = [UInt8](repeating: 0, count: 15) + [1] + [UInt8](repeating: 0, count: 15) + [2, 0, 3, 0, 4]
        #expect(read(block(0x21, 0x21, v6)) == .header(try Self.client("::1", 3, "::2", 4), rest: 0))
        #expect(read(block(0x21, 0x00, [])) == .header(ProxyHeader(.unknown), rest: 0))
        #expect(read(block(0x21, 0x31, [UInt8](repeating: 65, count: 216))) == .header(ProxyHeader(.unknown), rest: 0))
        // The content of a LOCAL header is ignored.
        #expect(read(block(0x20, 0xFF, [1, 2, 3])) == .header(ProxyHeader(.local), rest: 0))
        // Fields: a no-op (0x04), a custom one without content (0xE0), and an identifier.
        var named = client
        named.identifier = [7, 8]
        let fields: [UInt8] = addresses + [0x04, 0, 1, 0, 0xE0, 0, 0, 0x05, 0, 2, 7, 8]
        #expect(read(block(0x21, 0x11, fields)) == .header(named, rest: 0))
        let long = [UInt8](repeating: 0, count: 65535 - addresses.count - 3)
        let size = [UInt8(long.count >> 8), UInt8(long.count & 0xFF)]
        #expect(read(block(0x21, 0x11, addresses + [0xEE] + size + long)) == .header(client, rest: 0))
    }

    @Test func `The checksum of a header is verified`() throws {
        let client = try Self.client("192.0.2.1", 50000, "198.51.100.2", 5222)
        let sum = Checksum.crc32c(block(0x21, 0x11, addresses + [0x03, 0, 4, 0, 0, 0, 0]))
        #expect(Checksum.crc32c(Array("123456789".utf8)) == [0xE3, 0x06, 0x92, 0x83])
        #expect(read(block(0x21, 0x11, addresses + [0x03, 0, 4] + sum)) == .header(client, rest: 0))
        for bit in 0..<32 {
            var wrong = sum
            wrong[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(
                read(block(0x21, 0x11, addresses + [0x03, 0, 4] + wrong))
                    == .fault("the PROXY header's checksum is wrong")
            )
        }
    }

    @Test func `An invalid version 2 header is a fault`() {
        let faults: [[UInt8]] = [
            Self.signature.dropLast() + [11], block(0x11, 0x11, addresses), block(0x22, 0x11, addresses),
            block(0x21, 0x12, addresses), block(0x21, 0x22, addresses), block(0x21, 0x41, addresses),
            block(0x21, 0x11, Array(addresses.dropLast())), block(0x21, 0x21, addresses),
            block(0x21, 0x11, addresses + [5]), block(0x21, 0x11, addresses + [5, 0]),
            block(0x21, 0x11, addresses + [5, 0, 2, 1]), block(0x21, 0x11, addresses + [3, 0, 3, 1, 2, 3]),
            block(0x21, 0x11, addresses + [5, 0, 129] + [UInt8](repeating: 1, count: 129)),
        ]
        for bytes in faults {
            var reader = ProxyHeaderReader()
            guard case .fault = reader.append(bytes) else {
                Issue.record("\(bytes)")
                continue
            }
        }
    }

    @Test func `Random bytes do not crash the reader`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            var bytes = block(0x21, [0x11, 0x21, 0x31, 0].randomElement(using: &generator) ?? 0x11, addresses)
            for _ in 0..<Int.random(in: 0...40, using: &generator) {
                bytes.append(.random(in: 0...8, using: &generator))
            }
            bytes[15] = .random(in: 0...60, using: &generator)
            var reader = ProxyHeaderReader()
            var total = 0
            for byte in bytes where reader.append([byte]) == .needMore { total += 1 }
            #expect(total <= bytes.count)
        }
    }

    // MARK: Writing

    @Test func `A serialised header is parsed again to the same value`() throws {
        var headers = [
            ProxyHeader(.local), ProxyHeader(.unknown), try Self.client("192.0.2.1", 50000, "198.51.100.2", 5222),
            try Self.client("2001:db8::1", 1, "::1", 65535),
        ]
        for header in headers { #expect(read(header.bytes(.v2)) == .header(header, rest: 0)) }
        for header in headers.dropFirst() { #expect(read(header.bytes(.v1)) == .header(header, rest: 0)) }
        #expect(read(ProxyHeader(.local).bytes(.v1)) == .header(ProxyHeader(.unknown), rest: 0))
        headers[2].identifier = Array("xmpptap-7".utf8)
        #expect(read(headers[2].bytes(.v2)) == .header(headers[2], rest: 0))
    }

    @Test func `IPv4 and IPv6 addresses in one header become IPv6 addresses`() throws {
        let mixed = try Self.client("192.0.2.1", 50000, "2001:db8::2", 5222)
        let meant = try Self.client("::ffff:192.0.2.1", 50000, "2001:db8::2", 5222)
        #expect(read(mixed.bytes(.v2)) == .header(meant, rest: 0))
        #expect(
            String(decoding: mixed.bytes(.v1), as: UTF8.self)
                == "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 50000 5222\r\n"
        )
        #expect(read(mixed.bytes(.v1)) == .header(meant, rest: 0))
    }

    @Test func `Without both addresses, the client is unknown`() throws {
        let one = try Self.address("192.0.2.1", 1)
        #expect(ProxyHeader(source: one, destination: nil).origin == .unknown)
        #expect(ProxyHeader(source: try SocketAddress(unixDomainSocketPath: "/x"), destination: one).origin == .unknown)
        #expect(ProxyHeader(source: one, destination: one).origin == .client(source: one, destination: one))
    }
}

/// CRC-32C by a table: another algorithm than that of the reader.
private enum Checksum {
    private static let table: [UInt32] = (0..<256).map { index in
        var sum = UInt32(index)
        for _ in 0..<8 { sum = sum & 1 == 1 ? (sum >> 1) ^ 0x82F6_3B78 : sum >> 1 }
        return sum
    }

    static func crc32c(_ bytes: [UInt8]) -> [UInt8] {
        var sum = UInt32.max
        for byte in bytes { sum = (sum >> 8) ^ table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] }
        sum = ~sum
        return [UInt32(24), 16, 8, 0].map { UInt8(truncatingIfNeeded: sum >> $0) }
    }
}
