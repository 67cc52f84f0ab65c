internal import CZlib

/// The checksum CRC-32, as in gzip (RFC 1952 §8).
package enum CRC32 {
    /// Returns the checksum of bytes.
    package static func checksum(_ bytes: RawSpan) -> UInt32 {
        bytes.withUnsafeBytes { place in
            var sum = CZlib.crc32(0, nil, 0)
            var rest = place[...]
            while !rest.isEmpty {
                let piece = rest.prefix(Int(Int32.max))
                sum = UnsafeRawBufferPointer(rebasing: piece).withMemoryRebound(to: UInt8.self) {
                    CZlib.crc32(sum, $0.baseAddress, UInt32($0.count))
                }
                rest = rest.dropFirst(piece.count)
            }
            return UInt32(truncatingIfNeeded: sum)
        }
    }
}
