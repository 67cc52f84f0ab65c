import TapRecord

/// Looks for secrets in an output: as they are, in base64 at each of its three alignments, in hexadecimal.
///
/// Six bytes of a secret in a row are found wherever they stand; a shorter secret is looked for whole. What could be part
/// of a digest, an id or a time is found by chance in an output that is full of these, so of such a secret longer pieces
/// are looked for: see ``chance(in:)``.
package struct SecretSearch: Sendable {
    private static let window = 6
    /// Hexadecimal digits that a piece of a secret must have if it has nothing else but what stands between digits.
    private static let digits = 18
    /// Digits that a whole secret must have, of which there is one piece and not many.
    private static let digitsOfWhole = 16

    /// For each length the needles of that length, each with the secret it is of.
    private var needles: [Int: [ArraySlice<UInt8>: String]] = [:]
    /// A bit for each first three bytes that a needle has: most places of an output are ruled out by it.
    private var beginnings = [UInt64](repeating: 0, count: 1 << 18)
    private let isBesideTimes: Bool

    /// A search for all secrets of a catalogue's items.
    package init(_ items: [SecretCatalogue.Item], besideTimes: Bool = false) {
        self.init(secrets: items.flatMap(\.secrets), besideTimes: besideTimes)
    }

    /// A search for these secrets.
    ///
    /// - Parameter besideTimes: The output holds times and other numbers: pieces that could be part of one are not
    ///   searched. False by default.
    package init(secrets: [[UInt8]], besideTimes: Bool = false) {
        isBesideTimes = besideTimes
        for secret in secrets {
            let name = String(decoding: secret, as: UTF8.self)
            // Shorter secrets occur everywhere.
            guard secret.count > 2 else { continue }
            addPieces(of: secret, name) { $0 }
            guard secret.count >= Self.window else { continue }
            for shift in 0..<3 { addPieces(of: secret, name) { Self.core(of: $0, shift: shift) } }
            addPieces(of: secret, name, Self.hexadecimal)
            addPieces(of: secret, name) { Self.hexadecimal($0).map { $0 >= 0x61 ? $0 & ~0x20 : $0 } }
        }
    }

    /// Adds each piece of a secret, written so, that is as short as may be looked for.
    private mutating func addPieces(of secret: [UInt8], _ name: String, _ write: ([UInt8]) -> [UInt8]) {
        for start in secret.indices {
            var end = start + min(Self.window, secret.count)
            while end <= secret.count {
                let needle = write(Array(secret[start..<end]))
                let isWhole = end - start == secret.count
                if Self.isSure(needle, digits: isWhole ? Self.digitsOfWhole : Self.digits) || isWhole && !isBesideTimes
                {
                    add(needle, name)
                    break
                }
                end += 1
            }
        }
    }

    /// Whether a piece cannot occur in a digest, id or time by chance.
    private static func isSure(_ needle: [UInt8], digits: Int) -> Bool {
        !needle.allSatisfy(isFigure) || needle.count(where: isDigit) >= digits
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10 || byte | 0x20 &- 0x61 < 6
    }

    /// Hexadecimal digits, and separators in ids and times.
    private static func isFigure(_ byte: UInt8) -> Bool {
        isDigit(byte) || Array("-:.+TZ ".utf8).contains(byte)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { Array((($0 < 16 ? "0" : "") + String($0, radix: 16)).utf8) }
    }

    /// How likely something is found in that many bytes of random hexadecimal digits, at most.
    package func chance(in count: Int) -> Double {
        var chance = 0.0
        for needle in needles.values.flatMap(\.keys) where needle.allSatisfy(Self.isFigure) {
            var each = Double(count)
            for byte in needle where Self.isDigit(byte) { each /= 16 }
            chance += each
        }
        return chance
    }

    private mutating func add(_ needle: [UInt8], _ name: String) {
        if isBesideTimes, needle.allSatisfy({ Array("0123456789-:.TZ".utf8).contains($0) }) { return }
        needles[needle.count, default: [:]][needle[...]] = name
        let beginning = Int(needle[0]) << 16 | Int(needle[1]) << 8 | Int(needle[2])
        beginnings[beginning >> 6] |= 1 << UInt64(beginning & 63)
    }

    /// The characters of base64 that depend only on `part`, if `shift` bytes precede it.
    static func core(of part: [UInt8], shift: Int) -> [UInt8] {
        let text = Array(Base64.encode([UInt8](repeating: 0, count: shift) + part).utf8)
        let first = (shift * 8 + 5) / 6
        let last = (shift + part.count) * 8 / 6
        return Array(text[first..<last])
    }

    /// The secrets that occur in `output`, even in part, with their positions.
    package func leaks(in output: [UInt8]) -> [String] {
        var leaks: [String] = []
        search(output) { secret, found in
            leaks.append("\(secret) as '\(String(decoding: found, as: UTF8.self))' at \(found.startIndex)")
        }
        return leaks
    }

    /// The secrets that occur in `output`, even in part.
    package func leaks(in output: String) -> [String] { leaks(in: Array(output.utf8)) }

    /// The secrets that occur in `output`, even in part, each once.
    package func secrets(in output: [UInt8]) -> Set<String> {
        var secrets: Set<String> = []
        search(output) { secret, _ in secrets.insert(secret) }
        return secrets
    }

    private func search(_ output: [UInt8], _ found: (String, ArraySlice<UInt8>) -> Void) {
        let lengths = needles.keys.sorted()
        guard output.count > 2 else { return }
        var key = Int(output[0]) << 8 | Int(output[1])
        for start in 0..<(output.count - 2) {
            key = (key & 0xFFFF) << 8 | Int(output[start + 2])
            guard beginnings[key >> 6] & (1 << UInt64(key & 63)) != 0 else { continue }
            for length in lengths where length <= output.count - start {
                let part = output[start..<(start + length)]
                if let secret = needles[length]?[part] { found(secret, part) }
            }
        }
    }
}
