@testable import TapSecurity

/// Reads a key log at once and in pieces: the secrets and the damaged lines must be the same.
enum KeyLogTarget {
    static func run(_ input: [UInt8]) -> String? {
        guard let step = input.first else { return nil }
        let bytes = Array(input.dropFirst())
        let (whole, pieces, small) = (KeyLog(), KeyLog(), KeyLog(limit: 2))
        whole.append(bytes.span)
        whole.finish()
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + 1 + Int(step & 63))
            pieces.append(bytes.span.extracting(start..<end))
            start = end
        }
        pieces.finish()
        guard whole.count == pieces.count, whole.damage == pieces.damage, whole.damagedLines == pieces.damagedLines
        else { return "in pieces of \(1 + step & 63) bytes it is another" }
        small.append(bytes.span)
        small.finish()
        guard small.count == min(2, whole.count) else { return "\(small.count) secrets where 2 are kept" }
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).count
        return whole.count + whole.damagedLines > lines ? "more than its \(lines) lines" : nil
    }
}
