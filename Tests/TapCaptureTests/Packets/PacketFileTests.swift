import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

@Suite("Packet capture files")
struct PacketFileTests {
    private static let packet = PacketBuilder.version4(
        .client,
        .server,
        PacketBuilder.tcp(.client, .server, sequence: 1)
    )
    private static let time: Int64 = 1_700_000_000_123_456_000

    @Test("pcap is read in both byte orders and both time resolutions", arguments: [true, false], [true, false])
    func pcap(isLittle: Bool, isNano: Bool) throws {
        let time = Self.time + (isNano ? 789 : 0)
        let file = PacketBuilder.pcap(
            [(time, Self.packet), (time + 1000, [1, 2, 3])],
            isLittle: isLittle,
            isNano: isNano
        )
        let content = try PacketBuilder.read(PcapFile.init, file)
        #expect(content.packets.map(\.bytes) == [Self.packet, [1, 2, 3]])
        #expect(content.packets.map(\.packet.time.nanoseconds) == [time, time + 1000])
        #expect(content.packets.map(\.packet.link) == [.raw, .raw])
        #expect(content.fault == nil)
    }

    @Test("A truncated pcap file returns the packets before its end")
    func tornPcap() throws {
        let file = PacketBuilder.pcap([(Self.time, Self.packet), (Self.time, Self.packet)])
        let first = 24 + 16 + Self.packet.count
        for length in 0..<file.count {
            let torn = Array(file.prefix(length))
            guard length >= 24 else {
                #expect(throws: PacketFault.self) { try PacketBuilder.read(PcapFile.init, torn) }
                continue
            }
            let content = try PacketBuilder.read(PcapFile.init, torn)
            #expect(content.packets.count == (length < first ? 0 : 1))
            if length == 24 || length == first {
                #expect(content.fault == nil)
            } else {
                #expect(content.fault == .truncated(at: UInt64(length)))
            }
        }
    }

    @Test(
        "pcapng files are read in both byte orders, with several link types and time resolutions",
        arguments: [true, false]
    )
    func pcapng(isLittle: Bool) throws {
        let seconds: UInt64 = 1_700_000_000
        var file = PacketBuilder.section(isLittle: isLittle)
        file += PacketBuilder.interface(101, isLittle: isLittle)
        // Nanoseconds, an hour later; and units of 2^-10 s.
        let offset = [UInt8](repeating: 0, count: 6) + PacketBuilder.big16(3600)
        let nano =
            PacketBuilder.option(9, [9], isLittle: isLittle)
            + PacketBuilder.option(14, isLittle ? offset.reversed() : offset, isLittle: isLittle)
        file += PacketBuilder.interface(1, options: nano, isLittle: isLittle)
        file += PacketBuilder.interface(
            113,
            options: PacketBuilder.option(9, [0x8A], isLittle: isLittle),
            isLittle: isLittle
        )
        file += PacketBuilder.packet([1], time: seconds * 1_000_000 + 5, isLittle: isLittle)
        file += PacketBuilder.packet([2, 2], interface: 1, time: seconds * 1_000_000_000 + 7, isLittle: isLittle)
        file += PacketBuilder.packet([3, 3, 3], interface: 2, time: seconds * 1024 + 512, isLittle: isLittle)
        file += PacketBuilder.block(3, PacketBuilder.number(4, isLittle: isLittle) + [4, 4, 4, 4], isLittle: isLittle)
        // A block that is not known, and another section in the other order.
        file += PacketBuilder.block(0xBAD, [0, 0, 0, 0], isLittle: isLittle)
        file += PacketBuilder.section(isLittle: !isLittle) + PacketBuilder.interface(276, isLittle: !isLittle)
        file += PacketBuilder.packet([5], time: 1, isLittle: !isLittle)
        let content = try PacketBuilder.read(PcapngFile.init, file)
        #expect(content.fault == nil)
        #expect(content.packets.map(\.bytes) == [[1], [2, 2], [3, 3, 3], [4, 4, 4, 4], [5]])
        #expect(content.packets.map(\.packet.link) == [.raw, .ethernet, .cooked, .raw, .cooked2])
        let whole = Int64(seconds) * 1_000_000_000
        #expect(
            content.packets.map(\.packet.time.nanoseconds)
                == [whole + 5000, whole + 3_600_000_000_007, whole + 500_000_000, 0, 1000]
        )
        #expect(content.packets.map(\.packet.number) == [1, 2, 3, 4, 5])
    }

    @Test("TLS secrets in a pcapng file are read, and WireGuard keys are ignored")
    func secrets() throws {
        let lines = Array("CLIENT_RANDOM 00 11\n".utf8)
        func secrets(_ type: UInt32) -> [UInt8] {
            let body =
                PacketBuilder.number(type, isLittle: true)
                + PacketBuilder.number(UInt32(lines.count), isLittle: true) + lines
            return PacketBuilder.block(0x0A, body)
        }
        let file = PacketBuilder.section() + secrets(0x544C_534B) + secrets(0x5747_4B4C)
        let content = try PacketBuilder.read(PcapngFile.init, file)
        // Keys of WireGuard are ignored.
        #expect(content.keys == [lines])
        #expect(content.fault == nil)
    }

    @Test(
        "A malformed pcapng file is reported with the offset",
        arguments: [
            (
                PacketBuilder.section() + PacketBuilder.packet([1], time: 0), 28,
                "a packet of interface 0, which is not described"
            ),
            ([0x0A, 0x0D, 0x0D, 0x0A, 28, 0, 0, 0, 1, 2, 3, 4], 0, "a section without a known byte order"),
            (PacketBuilder.section() + [1, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0], 28, "a block of 13 bytes"),
            (
                PacketBuilder.section() + [1, 0, 0, 0, 0xFC, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0], 28,
                "a block of 2147483644 bytes is too long"
            ),
            (PacketBuilder.section() + [1, 0, 0, 0, 12, 0, 0, 0, 16, 0, 0, 0], 28, "a block whose two lengths differ"),
            (PacketBuilder.section() + PacketBuilder.block(1, [1, 0, 0, 0]), 28, "an interface of 4 bytes"),
        ] as [([UInt8], UInt64, String)]
    )
    func damaged(file: [UInt8], place: UInt64, reason: String) throws {
        let content = try PacketBuilder.read(PcapngFile.init, file)
        #expect(content.fault == .damaged(at: place, reason))
        #expect(content.packets.isEmpty)
    }

    @Test("A truncated or damaged pcapng file does not crash the reader")
    func hostile() throws {
        var file = PacketBuilder.section() + PacketBuilder.interface(101, options: PacketBuilder.option(9, [9]))
        file += PacketBuilder.packet(Self.packet, time: 5) + PacketBuilder.packet(Self.packet, time: 6)
        for length in 0..<file.count {
            let content = try PacketBuilder.read(PcapngFile.init, Array(file.prefix(length)))
            #expect(content.packets.count <= 1)
        }
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2000 {
            var changed = file
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                changed[Int.random(in: changed.indices, using: &generator)] = UInt8.random(
                    in: .min ... .max,
                    using: &generator
                )
            }
            _ = try PacketBuilder.read(PcapngFile.init, changed)
            _ = try? PacketBuilder.read(PcapFile.init, changed)
        }
    }
}
