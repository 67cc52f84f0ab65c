import CPcap
import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

@Suite("Decoding of packets")
struct PacketDecoderTests {
    private static let payload = Array("<presence/>".utf8)
    private static let segment = PacketBuilder.tcp(.client, .server, sequence: 7, acknowledgement: 9, payload)
    private static let packet4 = PacketBuilder.version4(.client, .server, segment)
    private static let segment6 = PacketBuilder.tcp(.client6, .server6, sequence: 7, acknowledgement: 9, payload)
    private static let packet6 = PacketBuilder.version6(.client6, .server6, segment6)

    private static func decode(
        _ bytes: [UInt8],
        _ link: LinkType,
        by decoder: inout PacketDecoder,
        original: Int? = nil
    ) -> (segment: TCPSegment, payload: [UInt8])? {
        let packet = CapturedPacket(
            time: Timestamp(nanoseconds: 0),
            link: link,
            originalLength: original ?? bytes.count,
            number: 1
        )
        guard let (segment, payload) = decoder.decode(packet, bytes.span) else { return nil }
        switch payload {
        case .range(let range): return (segment, Array(bytes[range]))
        case .joined(let bytes): return (segment, bytes)
        }
    }

    @Test(
        "Every kind of frame is decoded, with IPv4 and IPv6",
        arguments: [
            (packet4, .raw), (packet6, .raw),
            (PacketBuilder.ethernet(packet4), .ethernet), (PacketBuilder.ethernet(packet6), .ethernet),
            // A VLAN, and one in another (IEEE 802.1ad).
            (PacketBuilder.ethernet(packet4, tags: [0x81, 0x00, 0, 5]), .ethernet),
            (PacketBuilder.ethernet(packet6, tags: [0x88, 0xA8, 0, 5, 0x81, 0x00, 0, 6]), .ethernet),
            // PPPoE.
            ([UInt8](repeating: 0, count: 12) + [0x88, 0x64, 0x11, 0, 0, 1, 0, 55, 0x00, 0x21] + packet4, .ethernet),
            ([2, 0, 0, 0] + packet4, .loopback), ([0, 0, 0, 2] + packet4, .loopback),
            ([30, 0, 0, 0] + packet6, .loopback),
            // MPLS with two labels.
            ([UInt8](repeating: 0, count: 12) + [0x88, 0x47, 0, 1, 0, 9, 0, 2, 1, 9] + packet4, .ethernet),
            ([UInt8](repeating: 0, count: 14) + [0x08, 0x00] + packet4, .cooked),
            ([0x86, 0xDD] + [UInt8](repeating: 0, count: 18) + packet6, .cooked2),
            // The trailer that short frames of Ethernet have.
            (PacketBuilder.ethernet(packet4) + [0, 0, 0, 0, 0, 0], .ethernet),
        ] as [([UInt8], LinkType)]
    )
    func frames(bytes: [UInt8], link: LinkType) throws {
        var decoder = PacketDecoder()
        let found = try #require(Self.decode(bytes, link, by: &decoder))
        #expect(found.payload == Self.payload)
        #expect(found.segment.sequence == 7 && found.segment.acknowledgement == 9)
        #expect(found.segment.flags == .acknowledges)
        #expect(
            found.segment.source.description
                == (found.segment.source.isIPv6 ? "[2001:db8::1]:40000" : "192.0.2.1:40000")
        )
        #expect(found.segment.destination.port == 5222)
        #expect(decoder.counts.damaged == 0)
    }

    /// An IPv4 packet of another protocol than TCP, between routers.
    private static func carried(_ number: UInt8, _ payload: [UInt8]) -> [UInt8] {
        var packet = PacketBuilder.version4(
            .init(address: [198, 51, 100, 1], port: 0),
            .init(address: [198, 51, 100, 2], port: 0),
            payload
        )
        packet[9] = number
        return packet
    }

    private static func datagram(_ port: Int, _ payload: [UInt8]) -> [UInt8] {
        carried(17, [0xC0, 0] + PacketBuilder.big16(port) + PacketBuilder.big16(payload.count + 8) + [0, 0] + payload)
    }

    private static let frame = PacketBuilder.ethernet(packet4)
    private static let key: [UInt8] = [0, 0, 0, 42]
    private static let tunnels: [[UInt8]] = [
        // GRE: plain, with key and sequence number and checksum, with Ethernet.
        carried(47, [0, 0, 0x08, 0x00] + packet4), carried(47, [0, 0, 0x86, 0xDD] + packet6),
        carried(47, [0x20, 0, 0x08, 0x00] + key + packet4), carried(47, [0x30, 0, 0x08, 0x00] + key + key + packet4),
        carried(47, [0xB0, 0, 0x86, 0xDD] + key + key + key + packet6), carried(47, [0, 0, 0x65, 0x58] + frame),
        // ERSPAN of type II, and of type III with and without its last part.
        carried(47, [0x10, 0, 0x88, 0xBE] + key + [UInt8](repeating: 0, count: 8) + frame),
        carried(47, [0x10, 0, 0x22, 0xEB] + key + [UInt8](repeating: 0, count: 12) + frame),
        carried(47, [0x10, 0, 0x22, 0xEB] + key + [UInt8](repeating: 1, count: 20) + frame),
        // PPTP, acknowledging.
        carried(47, [0x30, 0x81, 0x88, 0x0B] + key + key + key + [0xFF, 0x03, 0x00, 0x21] + packet4),
        // IP in IP.
        carried(4, packet4), carried(41, packet6),
        PacketBuilder.version6(.client6, .server6, packet4, next: 4),
        // VXLAN and Geneve with an option of 4 bytes.
        datagram(4789, [8, 0, 0, 0, 0, 0, 1, 0] + frame), datagram(8472, [8, 0, 0, 0, 0, 0, 1, 0] + frame),
        datagram(6081, [1, 0, 0x65, 0x58, 0, 0, 1, 0] + key + frame),
        datagram(6081, [0, 0, 0x08, 0x00, 0, 0, 1, 0] + packet4),
        // A tunnel in a tunnel.
        carried(47, [0, 0, 0x08, 0x00] + datagram(4789, [8, 0, 0, 0, 0, 0, 1, 0] + frame)),
    ]

    @Test("Packets in tunnels are decoded", arguments: tunnels)
    func tunnel(packet: [UInt8]) throws {
        var decoder = PacketDecoder()
        let found = try #require(Self.decode(PacketBuilder.ethernet(packet), .ethernet, by: &decoder))
        #expect(found.payload == Self.payload)
        #expect(found.segment.destination.port == 5222 && found.segment.cut == 0)
        #expect(decoder.counts.damaged == 0)
        // One that was captured in part says how much is missing.
        let part = try #require(Self.decode(Array(packet.dropLast(4)), .raw, by: &decoder, original: packet.count))
        #expect(part.segment.cut == 4 && part.payload == Array(Self.payload.dropLast(4)))
    }

    /// Compiles a filter of libpcap for Ethernet, and applies it to a frame.
    private static func matches(_ filter: String, _ frame: [UInt8]) throws -> Bool {
        let dead = try #require(pcap_open_dead(1, 65535))
        defer { pcap_close(dead) }
        var program = bpf_program()
        try #require(pcap_compile(dead, &program, filter, 1, PCAP_NETMASK_UNKNOWN) == 0, "\(filter)")
        defer { pcap_freecode(&program) }
        var header = pcap_pkthdr()
        header.caplen = UInt32(frame.count)
        header.len = header.caplen
        return pcap_offline_filter(&program, &header, frame) != 0
    }

    @Test("A live capture's filter accepts packets in tunnels, whatever its ports are", arguments: [[], [5222]])
    func liveTunnels(ports: [UInt16]) throws {
        for filter in LiveCapture.filters(ports) {
            for packet in Self.tunnels {
                #expect(try Self.matches(filter, PacketBuilder.ethernet(packet)))
            }
            #expect(try Self.matches(filter, Self.frame))
            #expect(try !Self.matches(filter, PacketBuilder.ethernet(Self.datagram(53, Self.frame))))
        }
        #expect(try Self.matches(LiveCapture.filters([5269])[0], Self.frame) == false)
    }

    @Test("A fragmented packet of a tunnel is decoded")
    func fragmentedTunnel() throws {
        var decoder = PacketDecoder()
        let whole = [0, 0, 0x08, 0x00] + Self.packet4
        for range in [16..<whole.count, 0..<16] {
            var packet = PacketBuilder.version4(
                .client,
                .server,
                Array(whole[range]),
                fragment: range.lowerBound,
                hasMore: range.upperBound < whole.count
            )
            packet[9] = 47
            let found = Self.decode(packet, .raw, by: &decoder)
            #expect((found == nil) == (range.lowerBound > 0))
            if let found { #expect(found.payload == Self.payload) }
        }
    }

    @Test("Unreadable tunnels are counted, and other protocols are not counted as tunnels")
    func unreadableTunnels() {
        var decoder = PacketDecoder()
        let encrypted = Self.carried(50, [UInt8](repeating: 7, count: 40))
        let routed = Self.carried(47, [0x40, 0, 0x08, 0x00] + Self.packet4)
        for packet in [encrypted, encrypted, routed, Self.datagram(53, Self.frame)] {
            #expect(Self.decode(packet, .raw, by: &decoder) == nil)
        }
        #expect(decoder.counts.unreadableTunnels == ["IPsec": 2, "GRE": 1])
        // As many tunnels inside each other as fit.
        var deep = Self.packet4
        for _ in 0..<60 { deep = Self.carried(4, deep) }
        #expect(Self.decode(deep, .raw, by: &decoder) == nil)
    }

    @Test("Packets logged by a Linux firewall are decoded in both byte orders", arguments: [true, false])
    func firewallLog(isLittle: Bool) throws {
        func attribute(_ type: Int, _ value: [UInt8]) -> [UInt8] {
            let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
            return PacketBuilder.number16(value.count + 4, isLittle: isLittle)
                + PacketBuilder.number16(type, isLittle: isLittle) + value + padding
        }
        var decoder = PacketDecoder()
        let packet = [2, 0, 0, 0] + attribute(1, [8, 0, 1, 0]) + attribute(10, Array("prefix\0".utf8))
        let whole = packet + attribute(9, Self.packet4)
        #expect(try #require(Self.decode(whole, LinkType(239), by: &decoder)).payload == Self.payload)
        #expect(Self.decode(packet, LinkType(239), by: &decoder) == nil)
        #expect(decoder.counts.damaged == 1)
    }

    @Test(
        "IPv6 extension headers are skipped",
        arguments: [
            // Hop-by-hop options, then destination options of 16 bytes, then routing.
            ([60, 0, 0, 0, 0, 0, 0, 0] + [43, 1] + [UInt8](repeating: 0, count: 14) + [6, 0, 0, 0, 0, 0, 0, 0], 0),
            // Authentication of 16 bytes.
            ([6, 2] + [UInt8](repeating: 0, count: 14), 51),
            // A fragment that is all (RFC 6946).
            ([6, 0, 0, 0, 0, 0, 0, 1], 44),
        ] as [([UInt8], UInt8)]
    )
    func extensions(headers: [UInt8], first: UInt8) throws {
        var decoder = PacketDecoder()
        let packet = PacketBuilder.version6(.client6, .server6, Self.segment6, extensions: headers, next: first)
        #expect(try #require(Self.decode(packet, .raw, by: &decoder)).payload == Self.payload)
    }

    @Test("Fragments are reassembled in any order, even if interleaved")
    func fragments() throws {
        let parts = [0..<8, 8..<24, 24..<Self.segment.count]
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1], [0, 0, 1, 1, 2]] {
            var decoder = PacketDecoder()
            var found: [[UInt8]] = []
            for index in order {
                let part = parts[index]
                let packet = PacketBuilder.version4(
                    .client,
                    .server,
                    Array(Self.segment[part]),
                    fragment: part.lowerBound,
                    hasMore: part.upperBound < Self.segment.count
                )
                if let whole = Self.decode(packet, .raw, by: &decoder) { found.append(whole.payload) }
                // Another packet's fragment with the same offset.
                let other = PacketBuilder.version4(
                    .client,
                    .server,
                    [9, 9, 9, 9, 9, 9, 9, 9],
                    identification: 2,
                    hasMore: true
                )
                #expect(Self.decode(other, .raw, by: &decoder) == nil)
            }
            #expect(found == [Self.payload])
        }
    }

    @Test("IPv6 fragments are reassembled")
    func fragments6() throws {
        var decoder = PacketDecoder()
        func fragment(_ range: Range<Int>) -> [UInt8] {
            let hasMore = range.upperBound < Self.segment6.count
            let header: [UInt8] = [6, 0] + PacketBuilder.big16(range.lowerBound | (hasMore ? 1 : 0)) + [0, 0, 0, 9]
            let part = Array(Self.segment6[range])
            return PacketBuilder.version6(.client6, .server6, part, extensions: header, next: 44)
        }
        #expect(Self.decode(fragment(16..<Self.segment6.count), .raw, by: &decoder) == nil)
        #expect(try #require(Self.decode(fragment(0..<16), .raw, by: &decoder)).payload == Self.payload)
    }

    @Test("A packet captured in part has the number of missing bytes")
    func snapped() throws {
        var decoder = PacketDecoder()
        let part = Array(Self.packet4.dropLast(4))
        let found = try #require(Self.decode(part, .raw, by: &decoder, original: Self.packet4.count))
        #expect(found.payload == Array(Self.payload.dropLast(4)))
        #expect(found.segment.cut == 4)
    }

    @Test("A packet with the length 0, left to the network card to segment, is decoded")
    func offloaded() throws {
        var decoder = PacketDecoder()
        let packet = PacketBuilder.version4(.client, .server, Self.segment, length: 0)
        #expect(try #require(Self.decode(packet, .raw, by: &decoder)).payload == Self.payload)
    }

    @Test("Damaged packets and other link types are counted")
    func damaged() {
        var decoder = PacketDecoder()
        for length in 0..<40 { _ = Self.decode(Array(Self.packet4.prefix(length)), .raw, by: &decoder) }
        #expect(decoder.counts.damaged == 40)
        _ = Self.decode(Self.packet4, LinkType(147), by: &decoder)
        #expect(decoder.counts.unknownLinks == [147: 1])
    }

    @Test("Random bytes do not crash the decoder")
    func hostile() {
        var generator = SeededGenerator(seed: 2)
        var decoder = PacketDecoder()
        let frames = [Self.packet4, Self.packet6, PacketBuilder.ethernet(Self.packet4, tags: [0x81, 0, 0, 5])]
        let whole = frames + Self.tunnels + [[0, 0, 0, 0, 0, 0, 9, 0] + Self.packet4]
        for round in 0..<20_000 {
            var bytes = whole[round % whole.count]
            for _ in 0..<Int.random(in: 0...6, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(
                    in: .min ... .max,
                    using: &generator
                )
            }
            bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
            for link in [LinkType.raw, .ethernet, .cooked, .cooked2, .loopback, .firewallLog] {
                if let found = Self.decode(bytes, link, by: &decoder) { #expect(found.payload.count <= 65_535) }
            }
        }
    }

    @Test(
        "Addresses are written as RFC 5952 requires",
        arguments: [
            (0, 0, "[::]:1"), (0, 1, "[::1]:1"), (0x2001_0DB8_0000_0000, 0x0000_0000_0002_0001, "[2001:db8::2:1]:1"),
            (0x2001_0DB8_0000_0001, 0x0001_0001_0001_0001, "[2001:db8:0:1:1:1:1:1]:1"),
            (0x2001_0000_0000_0001, 0x0000_0000_0000_0001, "[2001:0:0:1::1]:1"),
            (0xFE80_0000_0000_0000, 0xABCD_0000_0000_0000, "[fe80::abcd:0:0:0]:1"),
        ] as [(UInt64, UInt64, String)]
    )
    func addresses(high: UInt64, low: UInt64, text: String) {
        #expect(PacketEndpoint(high: high, low: low, port: 1, isIPv6: true).description == text)
    }
}
