internal import NIOCore

/// One IP address, or all that begin with the same bits, as people write them: `192.0.2.7`, `192.0.2.0/24`, `2001:db8::/32`.
public struct AddressRange: Sendable, Hashable {
    private let bytes: [UInt8]
    private let bits: Int

    /// Parses an address, with or without `/BITS`; nil if it is invalid.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, !first.contains("%"),
            let address = try? SocketAddress(ipAddress: String(first), port: 0)
        else { return nil }
        let bytes = Self.plain(address)
        // Where IPv4 was written as IPv6, bits are not counted from where they were written.
        guard parts.count == 1 || bytes.count == address.packedAddress.count else { return nil }
        var bits = bytes.count * 8
        if parts.count > 1 {
            guard !parts[1].isEmpty, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let count = Int(parts[1]),
                count <= bits
            else { return nil }
            bits = count
        }
        self.bytes = bytes
        self.bits = bits
    }

    /// Whether an address is among these.
    func contains(_ address: SocketAddress) -> Bool {
        let other = Self.plain(address)
        guard other.count == bytes.count, !bytes.isEmpty else { return false }
        let whole = bits / 8
        guard other.prefix(whole) == bytes.prefix(whole) else { return false }
        let rest = bits % 8
        guard rest > 0 else { return true }
        return (other[whole] ^ bytes[whole]) >> UInt8(8 - rest) == 0
    }

    /// The bytes of an address; of IPv4 in IPv6, as a socket for both families has it, those of IPv4.
    private static func plain(_ address: SocketAddress) -> [UInt8] {
        let bytes = address.packedAddress
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        return bytes.count == 16 && bytes.starts(with: mapped) ? Array(bytes.dropFirst(12)) : bytes
    }
}
