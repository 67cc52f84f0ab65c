import TapTestKit
import Testing

@testable import TapNetwork

struct DNSReplyTests {
    /// Returns a reply to a query for `_xmpp-client._tcp.example.org`, with these records.
    private static func reply(_ records: [[UInt8]], count: Int? = nil) -> [UInt8] {
        let count = UInt16(count ?? records.count)
        let header: [UInt8] = [0x12, 0x34, 0x81, 0x80, 0, 1, UInt8(count >> 8), UInt8(count & 0xFF), 0, 0, 0, 0]
        let question = name("_xmpp-client", "_tcp", "example", "org") + [0, 33, 0, 1]
        return header + question + records.flatMap { $0 }
    }

    private static func name(_ labels: String...) -> [UInt8] {
        labels.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    /// Returns a record with a name that points to the name in the question.
    private static func record(type: UInt8, kind: UInt8 = 1, _ data: [UInt8]) -> [UInt8] {
        [0xC0, 12, 0, type, 0, kind, 0, 0, 0, 60, UInt8(data.count >> 8), UInt8(data.count & 0xFF)] + data
    }

    private static func server(_ target: [UInt8], priority: UInt8 = 5) -> [UInt8] {
        record(type: 33, [0, priority, 0, 10, 0x14, 0x66] + target)
    }

    private static func servers(_ bytes: [UInt8]) throws -> [String] { try DNSReply(bytes).servers.map(\.target) }

    @Test func `SRV records are parsed, with and without compressed names`() throws {
        let reply = try DNSReply(Self.reply([Self.server(Self.name("x1", "example", "org"))]))
        #expect(
            reply.servers == [DNSReply.Server(priority: 5, weight: 10, port: 5222, target: "x1.example.org")]
        )
        // The name in the question is at offset 12; "example.org" starts 18 bytes later.
        let pointed = Self.server([2] + Array("x2".utf8) + [0xC0, 12 + 18])
        #expect(try Self.servers(Self.reply([pointed, Self.server([0])])) == ["x2.example.org", ""])
    }

    @Test func `Addresses of both families are parsed, and other records are skipped`() throws {
        let alias = Self.record(type: 5, Self.name("other", "example"))
        let chaos = Self.record(type: 1, kind: 3, [1, 2, 3, 4])
        let six = [UInt8](0..<16)
        let bytes = Self.reply([alias, chaos, Self.record(type: 1, [127, 0, 0, 1]), Self.record(type: 28, six)])
        let reply = try DNSReply(bytes)
        #expect(reply.addresses == [[127, 0, 0, 1], six])
        #expect(reply.servers.isEmpty)
    }

    @Test func `SRV targets that are not host names are omitted`() throws {
        let odd = [[3] + Array("a.b".utf8) + [0], [2, 0x1B, 0x5B, 0], [1, 0xFF, 0]] as [[UInt8]]
        for target in odd { #expect(try Self.servers(Self.reply([Self.server(target)])) == []) }
        #expect(try Self.servers(Self.reply([Self.server(Self.name("_a-1"))])) == ["_a-1"])
    }

    @Test(
        "A malformed DNS reply throws an error",
        arguments: [
            ([], .truncated), ([UInt8](repeating: 0x80, count: 11), .truncated),
            (Array(reply([]).prefix(2)) + [0] + Array(reply([]).dropFirst(3)), .notReply),
            (reply([], count: 1), .truncated), (reply([], count: 65535), .truncated),
            (Array(reply([server(name("x1"))]).dropLast()), .truncated),
            (reply([record(type: 33, [0, 1, 0, 1, 0])]), .badRecord),
            (reply([record(type: 33, [0, 1, 0, 1, 0, 1, 0, 0])]), .badRecord),
            (reply([record(type: 1, [1, 2, 3])]), .badRecord), (reply([record(type: 28, [1, 2, 3, 4])]), .badRecord),
            // Names that point to themselves or forwards, or with an invalid label type; names that are too long.
            (reply([server([0xC0, 64])]), .badName), (reply([server([0xC3, 0xFF])]), .badName),
            (reply([server([1, 0x61, 0xC0, 64])]), .badName), (reply([server([0x40, 0])]), .badName),
            (reply([server(Array(repeating: [1, 0x61], count: 200).flatMap { $0 } + [0])]), .badName),
        ] as [([UInt8], DNSReply.Fault)]
    )
    func faults(_ bytes: [UInt8], _ fault: DNSReply.Fault) {
        #expect(throws: fault) { try DNSReply(bytes) }
    }

    @Test func `The number of parsed records is limited`() throws {
        let many = Array(repeating: Self.server(Self.name("x1")), count: 1000)
        #expect(try DNSReply(Self.reply(many)).servers.count == DNSReply.maximumRecords)
    }

    @Test func `Random damage to a reply causes no other error, and the result is bounded`() throws {
        var generator = SeededGenerator(seed: 35)
        let good = Self.reply([
            Self.server(Self.name("x1", "example", "org")), Self.record(type: 1, [1, 2, 3, 4]),
            Self.server([2, 0x78, 0x32, 0xC0, 30]),
        ])
        var read = 0
        for _ in 0..<20_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            bytes.removeLast(Int.random(in: 0...2, using: &generator))
            guard let reply = try? DNSReply(bytes) else { continue }
            read += 1
            #expect(reply.servers.count + reply.addresses.count <= 3)
            #expect(reply.servers.allSatisfy { $0.target.utf8.count <= 255 })
        }
        #expect(read > 100)
    }
}
