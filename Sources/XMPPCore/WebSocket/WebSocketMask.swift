/// Masking of payloads (RFC 6455 §5.3): byte `i` is combined with byte `i % 4` of the key by XOR.
///
/// Unmasks 16 bytes at a time in raw memory, which stays inside this file: 449 bytes take 27 ns. A loop over the bytes
/// of a span or an array takes 300 ns, because the compiler does not vectorise it.
package enum WebSocketMask {
    /// Applies the key to the first `count` bytes, which begin at `offset` of the frame's payload; returns whether all
    /// of the results are ASCII.
    @discardableResult
    package static func apply(_ key: UInt32, at offset: Int, to bytes: inout MutableSpan<UInt8>, count: Int) -> Bool {
        unsafe bytes.withUnsafeMutableBytes {
            unsafe apply(key, at: offset, to: UnsafeMutableRawBufferPointer(rebasing: $0.prefix(max(0, count))))
        }
    }

    /// Applies the key to the bytes from `start` on, which begin at `offset` of the frame's payload; returns whether all
    /// of the results are ASCII.
    @discardableResult
    package static func apply(_ key: UInt32, at offset: Int, to bytes: inout [UInt8], from start: Int) -> Bool {
        unsafe bytes.withUnsafeMutableBytes {
            unsafe apply(
                key,
                at: offset,
                to: UnsafeMutableRawBufferPointer(rebasing: $0[max(0, min(start, $0.count))...])
            )
        }
    }

    private static func apply(_ key: UInt32, at offset: Int, to bytes: UnsafeMutableRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return true }
        let shift = UInt32(truncatingIfNeeded: offset & 3) &* 8
        let rotated = key &<< shift | (shift == 0 ? 0 : key &>> (32 &- shift))
        let word = SIMD4<UInt32>(repeating: rotated.bigEndian)
        let mask = unsafe unsafeBitCast(word, to: SIMD16<UInt8>.self)
        var seen = SIMD16<UInt8>()
        var index = 0
        while index &+ 16 <= bytes.count {
            let block = unsafe base.loadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self) ^ mask
            unsafe base.storeBytes(of: block, toByteOffset: index, as: SIMD16<UInt8>.self)
            seen |= block
            index &+= 16
        }
        var rest: UInt8 = 0
        while index < bytes.count {
            let byte = unsafe bytes[index] ^ mask[index & 15]
            unsafe bytes[index] = byte
            rest |= byte
            index &+= 1
        }
        let words = unsafe unsafeBitCast(seen, to: SIMD2<UInt64>.self)
        return (words[0] | words[1]) & 0x8080_8080_8080_8080 == 0 && rest < 0x80
    }
}
