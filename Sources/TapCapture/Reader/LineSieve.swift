internal import XMPPCore

/// Finds lines that may contain one of several texts, 16 bytes at a time.
struct LineSieve {
    private struct Needle {
        let bytes: [UInt8]
        let first: UInt8
        let last: UInt8
    }

    private let needles: [Needle]
    let maximumLength: Int

    /// Texts that always count as hits: references, CDATA sections and escapes, because they can hide a text, and
    /// headers, because they are always read.
    private static let others = ["&#", "[CDATA[", "\\u", "\"xtap\""].map { Array($0.utf8) }

    /// Creates a sieve for lines of JSON.
    ///
    /// - Parameter texts: Texts of at least two bytes.
    init(_ texts: [[UInt8]]) {
        needles = (texts + Self.others).compactMap { text in
            guard text.count > 1, let first = text.first, let last = text.last else { return nil }
            return Needle(bytes: text, first: first, last: last)
        }
        maximumLength = needles.map(\.bytes.count).max() ?? 0
    }

    /// Returns the offset of the first hit of any text, at or after an offset.
    func firstHit(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while index &+ 16 &+ maximumLength <= bytes.count {
            let heads = bytes.loadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
            var marks = SIMDMask<SIMD16<Int8>>(repeating: false)
            for needle in needles {
                let ends = bytes.loadUnaligned(
                    fromByteOffset: index &+ needle.bytes.count &- 1,
                    as: SIMD16<UInt8>.self
                )
                marks = marks .| (heads.marks(needle.first) .& ends.marks(needle.last))
            }
            let halves = unsafeBitCast(marks, to: SIMD2<UInt64>.self)
            if halves.x | halves.y != 0 {
                for offset in 0..<16 where marks[offset] && isHit(bytes, index &+ offset) { return index &+ offset }
            }
            index &+= 16
        }
        while index < bytes.count {
            if isHit(bytes, index) { return index }
            index &+= 1
        }
        return nil
    }

    private func isHit(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> Bool {
        needles.contains { needle in
            index + needle.bytes.count <= bytes.count && bytes[index...].starts(with: needle.bytes)
        }
    }
}
