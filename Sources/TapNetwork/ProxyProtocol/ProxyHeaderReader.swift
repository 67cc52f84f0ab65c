internal import NIOCore

/// Parses a ``ProxyHeader`` from the first bytes of a connection, as they arrive.
///
/// The bytes come from the network and are not trusted: every length is checked, and at most the length of a header is
/// buffered.
struct ProxyHeaderReader {
    /// The result of parsing. All results except ``needMore`` are final.
    enum Result: Hashable {
        /// The header is incomplete.
        case needMore
        /// A complete header, and how many bytes of the last read follow it.
        case header(ProxyHeader, rest: Int)
        /// The header is missing or malformed; the text is the problem, as a human-readable clause.
        case fault(String)
    }

    /// Maximum length of a version 1 line, including its CRLF.
    private static let maximumLineBytes = 107
    /// Length of the part before the addresses in version 2.
    private static let fixedBytes = 16
    private static let lineStart = Array("PROXY ".utf8)

    private var bytes: [UInt8] = []
    private var result = Result.needMore

    mutating func append(_ input: some Collection<UInt8>) -> Result {
        guard result == .needMore, !input.isEmpty else { return result }
        bytes += input
        result = bytes[0] == ProxyHeader.signature[0] ? readBlock() : readLine()
        if result != .needMore { bytes = [] }
        return result
    }

    // MARK: Version 1

    private func readLine() -> Result {
        guard bytes.starts(with: Self.lineStart.prefix(bytes.count)) else {
            return .fault("no PROXY header")
        }
        guard let end = bytes.prefix(Self.maximumLineBytes).firstIndex(of: 0x0A) else {
            return bytes.count < Self.maximumLineBytes ? .needMore : .fault("the PROXY line has no end")
        }
        guard end > 0, bytes[end - 1] == 0x0D else { return .fault("the PROXY line ends without CR") }
        let rest = bytes.count - end - 1
        let words = bytes[Self.lineStart.count..<(end - 1)].split(separator: 0x20, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        // The rest of an UNKNOWN line is ignored, as the specification requires.
        if words.first == "UNKNOWN" { return .header(ProxyHeader(.unknown), rest: rest) }
        guard let family = words.first, family == "TCP4" || family == "TCP6" else {
            return .fault("the PROXY line has an unknown protocol")
        }
        guard words.count == 5 else { return .fault("the PROXY line has \(words.count) words instead of 5") }
        guard let source = Self.address(words[1], family, port: words[3]),
            let destination = Self.address(words[2], family, port: words[4])
        else { return .fault("the PROXY line has an invalid address or port") }
        return .header(ProxyHeader(.client(source: source, destination: destination)), rest: rest)
    }

    private static func address(_ text: String, _ family: String, port: String) -> SocketAddress? {
        guard port.utf8.allSatisfy({ (0x30...0x39).contains($0) }), port == "0" || !port.hasPrefix("0"),
            let port = UInt16(port)
        else { return nil }
        switch try? SocketAddress(ipAddress: text, port: Int(port)) {
        case .v4(let address) where family == "TCP4": return .v4(address)
        case .v6(let address) where family == "TCP6" && !text.contains("%"): return .v6(address)
        default: return nil
        }
    }

    // MARK: Version 2

    private func readBlock() -> Result {
        guard bytes.starts(with: ProxyHeader.signature.prefix(bytes.count)) else {
            return .fault("no PROXY header")
        }
        guard bytes.count >= Self.fixedBytes else { return .needMore }
        guard bytes[12] >> 4 == 2 else { return .fault("the PROXY header has the unknown version \(bytes[12] >> 4)") }
        let end = Self.fixedBytes + number(at: 14)
        guard bytes.count >= end else { return .needMore }
        let rest = bytes.count - end
        switch bytes[12] & 0x0F {
        // The receiver of a LOCAL header must ignore the addresses and fields.
        case 0: return .header(ProxyHeader(.local), rest: rest)
        case 1: return readClient(to: end, rest: rest)
        default: return .fault("the PROXY header has the unknown command \(bytes[12] & 0x0F)")
        }
    }

    private func readClient(to end: Int, rest: Int) -> Result {
        let start = Self.fixedBytes
        let length: Int
        switch bytes[13] {
        case 0x00: length = 0
        case 0x11: length = 12
        case 0x21: length = 36
        case 0x31: length = 216
        default: return .fault("the PROXY header has a protocol other than TCP: \(bytes[13])")
        }
        guard start + length <= end else { return .fault("the PROXY header is too short for its addresses") }
        var header = ProxyHeader(.unknown)
        if length == 12 || length == 36 {
            let size = length == 12 ? 4 : 16
            let ports = start + 2 * size
            guard let source = address(at: start, size, port: number(at: ports)),
                let destination = address(at: start + size, size, port: number(at: ports + 2))
            else { return .fault("the PROXY header has an invalid address") }
            header.origin = .client(source: source, destination: destination)
        }
        if let fault = readFields(from: start + length, to: end, &header) { return .fault(fault) }
        return .header(header, rest: rest)
    }

    private func readFields(from start: Int, to end: Int, _ header: inout ProxyHeader) -> String? {
        var offset = start
        while offset < end {
            guard offset + 3 <= end else { return "the PROXY header ends in the middle of a field" }
            let (value, length) = (offset + 3, number(at: offset + 1))
            guard value + length <= end else { return "the PROXY header ends in the middle of a field" }
            switch bytes[offset] {
            case ProxyHeader.Field.checksum:
                guard length == 4, checksum(without: value, to: end) == Array(bytes[value..<(value + 4)]) else {
                    return "the PROXY header's checksum is wrong"
                }
            case ProxyHeader.Field.identifier:
                guard length <= ProxyHeader.maximumIdentifierBytes else {
                    return "the PROXY header's identifier has \(length) bytes"
                }
                header.identifier = Array(bytes[value..<(value + length)])
            default: break
            }
            offset = value + length
        }
        return nil
    }

    /// Returns the CRC-32C (RFC 4960 appendix B) of the whole header, with the checksum field set to zero; most
    /// significant byte first.
    private func checksum(without field: Int, to end: Int) -> [UInt8] {
        var remainder: UInt32 = 0xFFFF_FFFF
        for (index, byte) in bytes[..<end].enumerated() {
            remainder ^= UInt32(index >= field && index < field + 4 ? 0 : byte)
            for _ in 0..<8 { remainder = remainder >> 1 ^ (remainder & 1 == 1 ? 0x82F6_3B78 : 0) }
        }
        remainder = ~remainder
        return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: remainder >> $0) }
    }

    private func number(at offset: Int) -> Int { Int(bytes[offset]) << 8 | Int(bytes[offset + 1]) }

    private func address(at offset: Int, _ size: Int, port: Int) -> SocketAddress? {
        try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes[offset..<(offset + size)]), port: port)
    }
}
