import TapCore

/// Looks for secrets in an output: as they are, in base64 at each of its three alignments, in hexadecimal.
///
/// Six bytes of a secret in a row are found wherever they stand; a shorter secret is looked for whole.
public struct SecretSearch: Sendable {
    private static let window = 6

    /// For each length the needles of that length, each with the secret it is of.
    private var needles: [Int: [ArraySlice<UInt8>: String]] = [:]
    /// A bit for each first three bytes that a needle has: most places of an output are ruled out by it.
    private var beginnings = [UInt64](repeating: 0, count: 1 << 18)
    private let isBesideTimes: Bool

    /// A search for all secrets of a catalogue's items.
    public init(_ items: [SecretCatalogue.Item], besideTimes: Bool = false) {
        self.init(secrets: items.flatMap(\.secrets), besideTimes: besideTimes)
    }

    /// A search for these secrets.
    ///
    /// - Parameter besideTimes: The output holds times and other numbers of its own: what could be part of one is not
    ///   looked for. False by default.
    public init(secrets: [[UInt8]], besideTimes: Bool = false) {
        isBesideTimes = besideTimes
        for secret in secrets {
            let name = String(decoding: secret, as: UTF8.self)
            let count = min(Self.window, secret.count)
            // What is shorter stands everywhere.
            guard count > 2 else { continue }
            for start in 0...(secret.count - count) {
                let part = Array(secret[start..<(start + count)])
                add(part, name)
                guard count == Self.window else { continue }
                for shift in 0..<3 { add(Self.core(of: part, shift: shift), name) }
                let hexadecimal = part.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
                add(Array(hexadecimal.utf8), name)
                add(Array(hexadecimal.uppercased().utf8), name)
            }
        }
    }

    private mutating func add(_ needle: [UInt8], _ name: String) {
        if isBesideTimes, needle.allSatisfy({ Array("0123456789-:.TZ".utf8).contains($0) }) { return }
        needles[needle.count, default: [:]][needle[...]] = name
        let beginning = Int(needle[0]) << 16 | Int(needle[1]) << 8 | Int(needle[2])
        beginnings[beginning >> 6] |= 1 << UInt64(beginning & 63)
    }

    /// The characters of base64 that depend on nothing but `part`, when `shift` bytes stand before it.
    static func core(of part: [UInt8], shift: Int) -> [UInt8] {
        let text = Array(Base64.encode([UInt8](repeating: 0, count: shift) + part).utf8)
        let first = (shift * 8 + 5) / 6
        let last = (shift + part.count) * 8 / 6
        return Array(text[first..<last])
    }

    /// The secrets of which something stands in `output`, with where it stands.
    public func leaks(in output: [UInt8]) -> [String] {
        var leaks: [String] = []
        search(output) { secret, found in
            leaks.append("\(secret) as '\(String(decoding: found, as: UTF8.self))' at \(found.startIndex)")
        }
        return leaks
    }

    /// The secrets of which something stands in `output`.
    public func leaks(in output: String) -> [String] { leaks(in: Array(output.utf8)) }

    /// The secrets of which something stands in `output`, each once.
    public func secrets(in output: [UInt8]) -> Set<String> {
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
