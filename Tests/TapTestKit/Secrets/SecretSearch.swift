import TapCore

/// Looks for secrets in an output: as they are, in base64 at each of its three alignments, in hexadecimal.
///
/// Six bytes of a secret in a row are found wherever they stand; a shorter secret is looked for whole.
public struct SecretSearch: Sendable {
    private static let window = 6

    /// For each length the needles of that length, each with the secret it is of.
    private var needles: [Int: [ArraySlice<UInt8>: String]] = [:]
    /// Which pairs of bytes a needle begins with: nearly all of an output is passed over by this alone.
    private var beginnings = [Bool](repeating: false, count: 1 << 16)

    /// A search for all secrets of a catalogue's items.
    public init(_ items: [SecretCatalogue.Item]) {
        self.init(secrets: items.flatMap(\.secrets))
    }

    /// A search for these secrets.
    public init(secrets: [[UInt8]]) {
        for secret in secrets {
            let name = String(decoding: secret, as: UTF8.self)
            let count = min(Self.window, secret.count)
            guard count > 0 else { continue }
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
        needles[needle.count, default: [:]][needle[...]] = name
        guard needle.count > 1 else { return }
        beginnings[Int(needle[0]) << 8 | Int(needle[1])] = true
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
        guard output.count > 1 else { return leaks }
        for start in 0..<(output.count - 1) where beginnings[Int(output[start]) << 8 | Int(output[start + 1])] {
            for (count, names) in needles where count <= output.count - start {
                let part = output[start..<(start + count)]
                guard let name = names[part] else { continue }
                leaks.append("\(name) as '\(String(decoding: part, as: UTF8.self))' at \(start)")
            }
        }
        return leaks
    }

    /// The secrets of which something stands in `output`.
    public func leaks(in output: String) -> [String] { leaks(in: Array(output.utf8)) }
}
