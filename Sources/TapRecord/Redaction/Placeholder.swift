internal import XMPPCore

/// The text that replaces a secret.
package enum Placeholder {
    private static let opening: StaticString = "[redacted:"

    /// Appends `[redacted:KIND#NUMBER]`, or `[redacted:KIND-SIZE#NUMBER]` if the size is informative.
    static func append(_ kind: SecretKind, _ number: UInt32, size: Int?, to bytes: inout [UInt8]) {
        bytes += "[redacted:\(kind.rawValue)".utf8
        if let size { bytes += "-\(size)".utf8 }
        bytes += "#\(number)]".utf8
    }

    /// Returns the placeholder of a value that has no number; `#0` takes its place.
    static func text(_ kind: SecretKind, size: Int) -> String {
        var bytes: [UInt8] = []
        append(kind, 0, size: size, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the end of the placeholder at `index`; nil if there is none.
    package static func end(in bytes: Span<UInt8>, at index: Int, before limit: Int) -> Int? {
        // 64 bytes are enough for the longest kind, a size and a number.
        let limit = min(limit, bytes.count, index + 64)
        guard index < limit, bytes[index] == 0x5B else { return nil }
        for end in index..<limit where bytes[end] == 0x5D {
            return isPlaceholder(bytes.extracting(index...end)) ? end + 1 : nil
        }
        return nil
    }

    /// Returns the placeholders in `bytes`, each once, in order.
    package static func all(in bytes: Span<UInt8>) -> [String] {
        var found: [String] = []
        for index in bytes.indices where bytes[index] == 0x5B {
            guard let end = end(in: bytes, at: index, before: bytes.count) else { continue }
            let text = bytes.extracting(index..<end).string()
            if !found.contains(text) { found.append(text) }
        }
        return found
    }

    /// Returns whether `bytes` consist of a single placeholder, as in captures with redacted secrets.
    package static func isPlaceholder(_ bytes: Span<UInt8>) -> Bool {
        let prefix = opening.utf8CodeUnitCount
        guard bytes.count > prefix + 3, bytes.extracting(0..<prefix).equals(opening), bytes[bytes.count - 1] == 0x5D
        else { return false }
        var sign: Int?
        for index in prefix..<(bytes.count - 1) {
            switch bytes[index] {
            case 0x30...0x39: continue
            case 0x61...0x7A, 0x2D: if sign != nil { return false }
            case 0x23:
                guard sign == nil, index > prefix else { return false }
                sign = index
            default: return false
            }
        }
        return sign.map { $0 < bytes.count - 2 } ?? false
    }
}
