internal import CZlib

/// The checksum CRC-32, as in gzip (RFC 1952 §8).
package enum CRC32 {
    /// Returns the checksum of bytes.
    package static func checksum(_ bytes: RawSpan) -> UInt32 {
        bytes.withUnsafeBytes { UInt32(truncatingIfNeeded: xmpptap_crc32($0.baseAddress, $0.count)) }
    }
}
