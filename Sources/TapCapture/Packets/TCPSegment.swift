internal import TapCore
internal import TapRecord
internal import XMPPCore

/// An endpoint of a TCP connection.
struct PacketEndpoint: Hashable, Sendable {
    /// The upper 64 bits of the address; 0 for IPv4.
    var high: UInt64
    /// The lower 64 bits of the address, or the 32 bits of an IPv4 address.
    var low: UInt64
    var port: UInt16
    var isIPv6: Bool
}

/// Hashes the ends of connections. The seed is random, so that an attacker cannot choose addresses with equal hashes.
struct EndpointHash: Sendable {
    static let shared = EndpointHash()

    private let seed = UInt64.random(in: .min ... .max)
    private let factor = UInt64.random(in: .min ... .max) | 1

    func callAsFunction(_ end: PacketEndpoint) -> UInt64 {
        folded(folded(end.low ^ seed, end.high ^ factor) ^ UInt64(end.port) ^ seed, factor)
    }

    private func folded(_ one: UInt64, _ other: UInt64) -> UInt64 {
        let product = one.multipliedFullWidth(by: other)
        return product.high ^ product.low
    }
}

extension PacketEndpoint: CustomStringConvertible {
    /// The address and the port, as in `192.0.2.1:5222` or `[2001:db8::1]:5222`.
    var description: String {
        guard isIPv6 else {
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: low >> (24 - 8 * $0)) }
            return "\(bytes.map { String($0) }.joined(separator: ".")):\(port)"
        }
        let groups = (0..<8).map { index in
            UInt16(truncatingIfNeeded: (index < 4 ? high : low) >> (48 - 16 * UInt64(index % 4)))
        }
        // `::` replaces the longest run of at least two zero groups; if several are the longest, the first (RFC 5952
        // §4.2).
        var longest = 0..<0
        var index = 0
        while index < 8 {
            let end = groups[index...].firstIndex { $0 != 0 } ?? 8
            if end - index > max(1, longest.count) { longest = index..<end }
            index = end + 1
        }
        let parts = groups.map { String($0, radix: 16) }
        let text =
            longest.isEmpty
            ? parts.joined(separator: ":")
            : parts[..<longest.lowerBound].joined(separator: ":") + "::"
                + parts[longest.upperBound...].joined(separator: ":")
        return "[\(text)]:\(port)"
    }
}

/// The header of a TCP segment. Its bytes are passed separately.
struct TCPSegment: Sendable {
    struct Flags: OptionSet, Sendable {
        let rawValue: UInt8
        static let fin = Flags(rawValue: 0x01)
        static let syn = Flags(rawValue: 0x02)
        static let reset = Flags(rawValue: 0x04)
        static let push = Flags(rawValue: 0x08)
        static let acknowledges = Flags(rawValue: 0x10)
    }

    let source: PacketEndpoint
    let destination: PacketEndpoint
    let sequence: UInt32
    let acknowledgement: UInt32
    let flags: Flags
    /// Number of bytes at the end of the segment that were sent but not captured.
    let cut: Int
    /// A hash of both ends, the same for both directions.
    let connectionHash: UInt64
}

extension TCPSegment {
    init(
        source: PacketEndpoint,
        destination: PacketEndpoint,
        sequence: UInt32,
        acknowledgement: UInt32,
        flags: Flags,
        cut: Int,
        _ hash: EndpointHash = .shared
    ) {
        self.init(
            source: source,
            destination: destination,
            sequence: sequence,
            acknowledgement: acknowledgement,
            flags: flags,
            cut: cut,
            connectionHash: hash(source) ^ hash(destination)
        )
    }
}

/// The bytes of a segment.
enum SegmentPayload {
    /// A range of the packet's bytes.
    case range(Range<Int>)
    /// Bytes that were joined from several fragments.
    case joined([UInt8])
}

/// Finds the TCP segments in packets, through link layers, IPv4 with fragments, IPv6 with extension headers, and
/// tunnels.
///
/// Packets without a TCP segment are skipped. ``Counts`` has the number of damaged and unsupported ones.
struct PacketDecoder {
    typealias Found = (segment: TCPSegment, payload: SegmentPayload)

    /// Numbers of all packets, and of those that were damaged, unsupported or not captured whole.
    struct Counts: Sendable {
        var packets: UInt64 = 0
        /// Packets with incomplete or invalid headers.
        var damaged: UInt64 = 0
        /// Packets of unsupported link types, by `LINKTYPE_` number.
        var unknownLinks: [UInt32: UInt64] = [:]
        /// Packets in tunnels that cannot be read, by the tunnel's protocol.
        var unreadableTunnels: [String: UInt64] = [:]
        /// TCP packets of which only the beginning was captured.
        var cut: UInt64 = 0
    }

    private(set) var counts = Counts()
    /// The time at which the capture began, or at which its first packet was captured.
    private(set) var began: Timestamp?
    /// The time of the last packet. It may be before that of an earlier packet, if there are several interfaces.
    private(set) var now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
    private var fragments = IPFragments()
    private let hash = EndpointHash.shared

    /// Maximum depth of tunnels inside tunnels.
    private static let maximumTunnels = 4

    /// - Parameter began: The time at which the capture began; nil uses the time of the first packet.
    init(began: Timestamp? = nil) {
        self.began = began
        if let began { now.time = began }
    }

    /// Returns the segment that a packet contains, or that its fragment completes; nil if there is none.
    mutating func decode(_ packet: CapturedPacket, _ bytes: Span<UInt8>) -> Found? {
        counts.packets += 1
        let began = began ?? packet.time
        self.began = began
        now = Run.Instant(
            time: packet.time,
            monotonic: max(now.monotonic, Run.Instant(packet.time, since: began).monotonic)
        )
        guard let head = networkLayer(packet, bytes), let found = network(bytes, at: head, depth: 0) else { return nil }
        if found.segment.cut > 0 { counts.cut += 1 }
        return found
    }

    // MARK: Link layer

    /// Returns the offset of the IP header; nil if the packet has none.
    private mutating func networkLayer(_ packet: CapturedPacket, _ bytes: Span<UInt8>) -> Int? {
        switch packet.link {
        case .raw: return 0
        case .ethernet: return protocolOf(bytes, at: 12)
        case .cooked: return protocolOf(bytes, at: 14)
        case .cooked2: return isInternet(bytes, at: 0) ? 20 : nil
        case .loopback: return bytes.count >= 4 ? 4 : nil
        case .firewallLog: return loggedPacket(bytes)
        case .other(let number):
            counts.unknownLinks[number, default: 0] += 1
            return nil
        }
    }

    /// Reads an EtherType after any VLAN tags (IEEE 802.1Q, 802.1ad); returns the offset of the IP header, nil if there
    /// is none.
    private mutating func protocolOf(_ bytes: Span<UInt8>, at offset: Int) -> Int? {
        var at = offset
        while at + 2 <= bytes.count {
            switch bytes.number16(at: at) {
            case 0x0800, 0x86DD: return at + 2
            case 0x8100, 0x88A8, 0x9100: at += 4
            // MPLS (RFC 3032): labels of four bytes. A bit marks the last label.
            case 0x8847, 0x8848:
                var label = at + 2
                while label + 4 <= bytes.count, bytes[label + 2] & 1 == 0 { label += 4 }
                return label + 4 < bytes.count && [4, 6].contains(bytes[label + 4] >> 4) ? label + 4 : nil
            // PPPoE session: a header of six bytes, then the protocol number of PPP.
            case 0x8864:
                guard at + 10 <= bytes.count, [0x0021, 0x0057].contains(bytes.number16(at: at + 8)) else { return nil }
                return at + 10
            default: return nil
            }
        }
        counts.damaged += 1
        return nil
    }

    /// Returns the offset of the packet among the attributes of NFLOG; nil if there is none. The lengths and types of
    /// attributes have the byte order of the machine that captured.
    private mutating func loggedPacket(_ bytes: Span<UInt8>) -> Int? {
        let payload: UInt16 = 9
        for isLittle in [true, false] {
            var at = 4
            while at + 4 <= bytes.count {
                var (length, type) = (bytes.number16(at: at), bytes.number16(at: at + 2))
                if isLittle { (length, type) = (length.byteSwapped, type.byteSwapped) }
                guard length >= 4 else { break }
                if type & 0x3FFF == payload { return at + 4 }
                at += (Int(length) + 3) & ~3
            }
        }
        counts.damaged += 1
        return nil
    }

    private func isInternet(_ bytes: Span<UInt8>, at offset: Int) -> Bool {
        bytes.count >= 20 && [0x0800, 0x86DD].contains(bytes.number16(at: offset))
    }

    // MARK: IP

    private mutating func network(_ bytes: Span<UInt8>, at start: Int, depth: Int) -> Found? {
        guard bytes.count - start >= 20 else { return damagedPacket() }
        switch bytes[start] >> 4 {
        case 4: return version4(bytes, at: start, depth: depth)
        case 6: return version6(bytes, at: start, depth: depth)
        default: return damagedPacket()
        }
    }

    private mutating func damagedPacket() -> Found? {
        counts.damaged += 1
        return nil
    }

    private mutating func version4(_ bytes: Span<UInt8>, at start: Int, depth: Int) -> Found? {
        let head = Int(bytes[start] & 0x0F) * 4
        let captured = bytes.count - start
        // The length is 0 if a large packet was captured before the network card cut it into segments.
        let stated = Int(bytes.number16(at: start + 2))
        let length = stated == 0 ? captured : stated
        guard head >= 20, length >= head, captured >= head else { return damagedPacket() }
        let next = bytes[start + 9]
        let payload = start + head..<start + min(length, captured)
        let pair = AddressPair(
            source: (0, UInt64(bytes.number32(at: start + 12))),
            destination: (0, UInt64(bytes.number32(at: start + 16))),
            isIPv6: false
        )
        let cut = max(0, length - captured)
        let place = bytes.number16(at: start + 6)
        guard place & 0x3FFF != 0 else { return transport(next, bytes, payload, pair, cut: cut, depth: depth) }
        guard cut == 0 else { return nil }
        let key = IPFragments.Key(pair: pair, identification: UInt32(bytes.number16(at: start + 4)))
        let part = bytes.extracting(payload)
        let (offset, hasMore) = (Int(place & 0x1FFF) * 8, place & 0x2000 != 0)
        return joined(next, fragments.add(part, key, offset: offset, hasMore: hasMore), pair, depth: depth)
    }

    private mutating func version6(_ bytes: Span<UInt8>, at start: Int, depth: Int) -> Found? {
        guard bytes.count - start >= 40 else { return damagedPacket() }
        let stated = Int(bytes.number16(at: start + 4))
        let end = stated == 0 ? bytes.count : start + 40 + stated
        let pair = AddressPair(
            source: (bytes.number64(at: start + 8), bytes.number64(at: start + 16)),
            destination: (bytes.number64(at: start + 24), bytes.number64(at: start + 32)),
            isIPv6: true
        )
        let cut = max(0, end - bytes.count)
        let captured = min(end, bytes.count)
        var next = bytes[start + 6]
        var at = start + 40
        while next != 6 {
            guard at + 8 <= captured else { return nil }
            let following = bytes[at]
            switch next {
            // Hop-by-hop, routing, destination options (RFC 8200 §4), mobility.
            case 0, 43, 60, 135: at += 8 + Int(bytes[at + 1]) * 8
            // Authentication (RFC 4302).
            case 51: at += 8 + Int(bytes[at + 1]) * 4
            case 44:
                let place = bytes.number16(at: at + 2)
                // An atomic fragment (RFC 6946) is a whole packet.
                if place & 0xFFF9 != 0 {
                    guard cut == 0 else { return nil }
                    let key = IPFragments.Key(pair: pair, identification: bytes.number32(at: at + 4))
                    let part = bytes.extracting(at + 8..<captured)
                    let (offset, hasMore) = (Int(place & 0xFFF8), place & 1 != 0)
                    let whole = fragments.add(part, key, offset: offset, hasMore: hasMore)
                    return joined(following, whole, pair, depth: depth)
                }
                at += 8
            default: return transport(next, bytes, at..<captured, pair, cut: cut, depth: depth)
            }
            next = following
        }
        guard at <= captured else { return nil }
        return segment(bytes, at..<captured, pair, cut: cut)
    }

    // MARK: Transport

    private mutating func joined(_ number: UInt8, _ bytes: [UInt8]?, _ pair: AddressPair, depth: Int) -> Found? {
        guard let bytes,
            let (segment, payload) = transport(number, bytes.span, 0..<bytes.count, pair, cut: 0, depth: depth)
        else { return nil }
        guard case .range(let range) = payload else { return (segment, payload) }
        return (segment, .joined(Array(bytes[range])))
    }

    /// Returns the segment in the payload of an IP packet, or in the tunnel that the payload contains; nil if there is
    /// none.
    private mutating func transport(
        _ number: UInt8,
        _ bytes: Span<UInt8>,
        _ payload: Range<Int>,
        _ pair: AddressPair,
        cut: Int,
        depth: Int
    ) -> Found? {
        if number == 6 { return segment(bytes, payload, pair, cut: cut) }
        guard depth < Self.maximumTunnels else { return nil }
        switch PacketTunnel.content(of: number, bytes, payload) {
        case nil: return nil
        case .network(let start): return network(bytes, at: start, depth: depth + 1)
        case .ethernet(let start):
            guard let inner = protocolOf(bytes, at: start + 12) else { return nil }
            return network(bytes, at: inner, depth: depth + 1)
        case .unreadable(let name):
            counts.unreadableTunnels[name, default: 0] += 1
            return nil
        }
    }

    private mutating func segment(
        _ bytes: Span<UInt8>,
        _ range: Range<Int>,
        _ pair: AddressPair,
        cut: Int
    ) -> Found? {
        let at = range.lowerBound
        guard range.count >= 20 else { return damagedPacket() }
        let head = Int(bytes[at + 12] >> 4) * 4
        guard head >= 20, head <= range.count else { return damagedPacket() }
        let segment = TCPSegment(
            source: pair.source(port: bytes.number16(at: at)),
            destination: pair.destination(port: bytes.number16(at: at + 2)),
            sequence: bytes.number32(at: at + 4),
            acknowledgement: bytes.number32(at: at + 8),
            flags: TCPSegment.Flags(rawValue: bytes[at + 13]),
            cut: cut,
            hash
        )
        return (segment, .range(at + head..<range.upperBound))
    }
}

/// The source and destination addresses of an IP packet.
struct AddressPair: Hashable {
    private var sourceHigh, sourceLow, destinationHigh, destinationLow: UInt64
    private var isIPv6: Bool

    init(source: (UInt64, UInt64), destination: (UInt64, UInt64), isIPv6: Bool) {
        (sourceHigh, sourceLow) = source
        (destinationHigh, destinationLow) = destination
        self.isIPv6 = isIPv6
    }

    func source(port: UInt16) -> PacketEndpoint {
        PacketEndpoint(high: sourceHigh, low: sourceLow, port: port, isIPv6: isIPv6)
    }

    func destination(port: UInt16) -> PacketEndpoint {
        PacketEndpoint(high: destinationHigh, low: destinationLow, port: port, isIPv6: isIPv6)
    }
}

/// Reassembles the fragments of IP packets (RFC 791 §3.2, RFC 8200 §4.5). If fragments overlap, the bytes of the one
/// with the lower offset are used; if offsets are equal, of the one captured first.
struct IPFragments {
    struct Key: Hashable {
        var pair: AddressPair
        var identification: UInt32
    }

    fileprivate struct Packet {
        var parts: [(offset: Int, bytes: [UInt8])] = []
        var length: Int?
        /// The number of the packet's first fragment among all fragments.
        var born: UInt64
    }

    /// Maximum number of incomplete packets. If there are more, the oldest is discarded.
    private static let maximumPackets = 256
    /// Maximum length of a packet in bytes.
    private static let maximumLength = 65_535
    /// Maximum number of fragments of one packet: enough for the longest packet on a link with the smallest MTU (68
    /// bytes).
    private static let maximumParts = 1_400

    private var packets: [Key: Packet] = [:]
    private var count: UInt64 = 0

    /// Adds a fragment; returns the payload of the whole packet, or nil if fragments are missing.
    mutating func add(_ bytes: Span<UInt8>, _ key: Key, offset: Int, hasMore: Bool) -> [UInt8]? {
        guard offset + bytes.count <= Self.maximumLength else { return nil }
        count += 1
        if packets[key] == nil, packets.count >= Self.maximumPackets,
            let oldest = packets.min(by: { $0.value.born < $1.value.born })
        {
            packets[oldest.key] = nil
        }
        var packet = packets.removeValue(forKey: key) ?? Packet(born: count)
        if !hasMore { packet.length = packet.length ?? offset + bytes.count }
        var copy: [UInt8] = []
        copy.append(bytes)
        let place = packet.parts.firstIndex { $0.offset > offset } ?? packet.parts.endIndex
        packet.parts.insert((offset, copy), at: place)
        if let whole = packet.whole { return whole }
        if packet.parts.count < Self.maximumParts { packets[key] = packet }
        return nil
    }
}

extension IPFragments.Packet {
    /// The payload of the whole packet; nil if a part is missing.
    fileprivate var whole: [UInt8]? {
        guard let length else { return nil }
        var whole: [UInt8] = []
        for part in parts {
            guard part.offset <= whole.count else { return nil }
            whole += part.bytes.dropFirst(whole.count - part.offset)
        }
        return whole.count >= length ? Array(whole.prefix(length)) : nil
    }
}
