import TapRecord

/// Searches an output for secrets: in plain text, in base64 at each of its three alignments, and in hexadecimal.
///
/// Six consecutive bytes of a secret are found at any place; shorter secrets are searched as a whole. Digits could also
/// be part of a digest, an id or a time, so longer pieces are searched of secrets that consist of digits: see
/// ``chance(in:)``.
package struct SecretSearch: Sendable {
    private static let window = 6
    /// Minimum number of hexadecimal digits in a piece of a secret that consists of digits and separators only.
    private static let digits = 18
    /// Minimum number of digits in a whole secret that consists of digits and separators only. It is lower, because
    /// there is only one such piece.
    private static let digitsOfWhole = 16

    /// By length: the needles of this length, each with its secret.
    private var needles: [Int: [ArraySlice<UInt8>: String]] = [:]
    /// A bit for each combination of three bytes with which a needle begins. It excludes most places of an output
    /// quickly.
    private var beginnings = [UInt64](repeating: 0, count: 1 << 18)
    private let isBesideTimes: Bool

    /// Creates a search for all secrets of a catalogue's items.
    package init(_ items: [SecretCatalogue.Item], besideTimes: Bool = false) {
        self.init(secrets: items.flatMap(\.secrets), besideTimes: besideTimes)
    }

    /// Creates a search for secrets.
    ///
    /// - Parameter besideTimes: Whether the output contains times and other numbers: pieces that could be part of a
    ///   number are not searched (default: false).
    package init(secrets: [[UInt8]], besideTimes: Bool = false) {
        isBesideTimes = besideTimes
        for secret in secrets {
            let name = String(decoding: secret, as: UTF8.self)
            // Shorter secrets occur by chance everywhere.
            guard secret.count > 2 else { continue }
            addPieces(of: secret, name) { $0 }
            guard secret.count >= Self.window else { continue }
            for shift in 0..<3 { addPieces(of: secret, name) { Self.core(of: $0, shift: shift) } }
            addPieces(of: secret, name, Self.hexadecimal)
            addPieces(of: secret, name) { Self.hexadecimal($0).map { $0 >= 0x61 ? $0 & ~0x20 : $0 } }
        }
    }

    /// Adds pieces of a secret after `write` has encoded them: from each position, the shortest piece that can be
    /// searched.
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

    /// Returns whether a piece cannot occur by chance in a digest, an id or a time.
    private static func isSure(_ needle: [UInt8], digits: Int) -> Bool {
        !needle.allSatisfy(isFigure) || needle.count(where: isDigit) >= digits
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10 || byte | 0x20 &- 0x61 < 6
    }

    /// Returns whether a byte is a hexadecimal digit, or a separator in ids and times.
    private static func isFigure(_ byte: UInt8) -> Bool {
        isDigit(byte) || Array("-:.+TZ ".utf8).contains(byte)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { Array((($0 < 16 ? "0" : "") + String($0, radix: 16)).utf8) }
    }

    /// Returns an upper bound for the probability that a needle occurs by chance in `count` random hexadecimal digits.
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

    /// Returns the base64 characters that depend only on `part`, if `shift` bytes precede it.
    static func core(of part: [UInt8], shift: Int) -> [UInt8] {
        let text = Array(Base64.encode([UInt8](repeating: 0, count: shift) + part).utf8)
        let first = (shift * 8 + 5) / 6
        let last = (shift + part.count) * 8 / 6
        return Array(text[first..<last])
    }

    /// Returns the secrets that occur in `output`, completely or in part, with their positions.
    package func leaks(in output: [UInt8]) -> [String] {
        var leaks: [String] = []
        search(output) { secret, found in
            leaks.append("\(secret) as '\(String(decoding: found, as: UTF8.self))' at \(found.startIndex)")
        }
        return leaks
    }

    /// Returns the secrets that occur in `output`, completely or in part, with their positions.
    package func leaks(in output: String) -> [String] { leaks(in: Array(output.utf8)) }

    /// Returns the secrets that occur in `output`, completely or in part, without duplicates.
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
