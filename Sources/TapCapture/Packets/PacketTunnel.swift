internal import TapRecord
internal import XMPPCore

/// Decodes the headers of tunnels that routers and port mirrors use.
enum PacketTunnel {
    /// The content of a tunnel.
    enum Content: Equatable {
        /// An IP packet.
        case network(at: Int)
        /// An Ethernet frame.
        case ethernet(at: Int)
        /// Content that cannot be read, because it is encrypted or its protocol is not supported; the name of the
        /// protocol.
        case unreadable(String)
    }

    /// IP protocols (iana.org/assignments/protocol-numbers).
    private enum IPProtocol {
        static let ipv4: UInt8 = 4
        static let udp: UInt8 = 17
        static let ipv6: UInt8 = 41
        static let gre: UInt8 = 47
        static let esp: UInt8 = 50
    }

    /// Returns the content of a tunnel; nil if the payload is not a complete tunnel header.
    ///
    /// - Parameters:
    ///   - number: The protocol number in the IP header, or in its last extension header.
    ///   - payload: The range of the bytes after these headers.
    static func content(of number: UInt8, _ bytes: Span<UInt8>, _ payload: Range<Int>) -> Content? {
        switch number {
        case IPProtocol.ipv4, IPProtocol.ipv6: .network(at: payload.lowerBound)
        case IPProtocol.gre: gre(bytes, payload)
        case IPProtocol.udp: udp(bytes, payload)
        case IPProtocol.esp: .unreadable("IPsec")
        default: nil
        }
    }

    /// Decodes GRE (RFC 2784), also with key and sequence number (RFC 2890), and the version of PPTP (RFC 2637).
    private static func gre(_ bytes: Span<UInt8>, _ payload: Range<Int>) -> Content? {
        guard payload.count >= 4 else { return nil }
        let flags = bytes.number16(at: payload.lowerBound)
        let type = bytes.number16(at: payload.lowerBound + 2)
        // RFC 2784 has removed source routing.
        guard flags & 0x4000 == 0, flags & 0x7 <= 1 else { return .unreadable("GRE") }
        let hasSequence = flags & 0x1000 != 0
        var at = payload.lowerBound + 4
        if flags & 0x8000 != 0 { at += 4 }
        if flags & 0x2000 != 0 { at += 4 }
        if hasSequence { at += 4 }
        if flags & 0x7 == 1, flags & 0x0080 != 0 { at += 4 }
        guard at <= payload.upperBound else { return nil }
        switch type {
        case 0x0800, 0x86DD: return .network(at: at)
        case 0x6558: return .ethernet(at: at)
        // ERSPAN: type I has no header, type II one of 8 bytes, type III one of 12 and up to 8 more.
        case 0x88BE: return .ethernet(at: hasSequence ? at + 8 : at)
        case 0x22EB:
            guard at + 12 <= payload.upperBound else { return nil }
            return .ethernet(at: bytes[at + 11] & 1 != 0 ? at + 20 : at + 12)
        case 0x880B: return pointToPoint(bytes, at..<payload.upperBound)
        default: return .unreadable("GRE")
        }
    }

    /// Decodes PPP, with or without its address and control bytes (RFC 1661 §6.5, RFC 1662 §3.1).
    private static func pointToPoint(_ bytes: Span<UInt8>, _ payload: Range<Int>) -> Content? {
        var at = payload.lowerBound
        if at + 2 <= payload.upperBound, bytes[at] == 0xFF, bytes[at + 1] == 0x03 { at += 2 }
        guard at + 2 <= payload.upperBound else { return nil }
        // A protocol number below 256 may be compressed to one byte, which has its lowest bit set (RFC 1661 §6.5).
        let isShort = bytes[at] & 1 != 0
        let type = isShort ? UInt16(bytes[at]) : bytes.number16(at: at)
        switch type {
        case 0x21, 0x57: return .network(at: at + (isShort ? 1 : 2))
        // Compressed or encrypted data.
        case 0xFD: return .unreadable("PPP")
        default: return nil
        }
    }

    /// Decodes VXLAN (RFC 7348) and Geneve (RFC 8926), recognised by their UDP ports.
    private static func udp(_ bytes: Span<UInt8>, _ payload: Range<Int>) -> Content? {
        guard payload.count >= 16 else { return nil }
        let at = payload.lowerBound + 8
        switch bytes.number16(at: payload.lowerBound + 2) {
        // Linux used port 8472 before VXLAN had a registered port. The flag states that the header has a network
        // identifier.
        case 4789, 8472: return bytes[at] & 0x08 != 0 ? .ethernet(at: at + 8) : nil
        case 6081:
            guard bytes[at] >> 6 == 0 else { return nil }
            let end = at + 8 + Int(bytes[at] & 0x3F) * 4
            switch bytes.number16(at: at + 2) {
            case 0x6558: return .ethernet(at: end)
            case 0x0800, 0x86DD: return .network(at: end)
            default: return .unreadable("Geneve")
            }
        default: return nil
        }
    }
}
