internal import XMPPCore

/// The accounts and domains of one side of a comparison, under names that both sides share.
///
/// Where both sides use the same accounts there is nothing in it, and every text stands for itself.
struct AddressNames: Sendable {
    /// What a JID or domain is called on both sides.
    private var names: [[UInt8]: [UInt8]] = [:]
    /// The longest first: a domain may end another, and stands in an account.
    private var ordered: [[UInt8]] = []

    var isEmpty: Bool { names.isEmpty }

    /// Gives a bare JID or a domain the name that it has on both sides.
    mutating func add(_ text: String, as name: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty, names.updateValue(Array(name.utf8), forKey: bytes) == nil else { return }
        ordered.append(bytes)
        ordered.sort { $0.count > $1.count }
    }

    /// A text with each account and domain, where it stands as a whole word, under its shared name; nil where none stands in it.
    func shared(_ text: Span<UInt8>) -> [UInt8]? {
        guard !names.isEmpty else { return nil }
        var result: [UInt8] = []
        var copied = 0
        var index = 0
        while index < text.count {
            guard index == 0 || Self.mayPrecede(text[index - 1]),
                let found = ordered.first(where: { Self.stands($0, at: index, in: text) })
            else {
                index += 1
                continue
            }
            for position in copied..<index { result.append(text[position]) }
            result += names[found] ?? found
            index += found.count
            copied = index
        }
        guard copied > 0 else { return nil }
        for position in copied..<text.count { result.append(text[position]) }
        return result
    }

    /// Whether `word` stands at `index` and no letter of a longer word follows.
    static func stands(_ word: [UInt8], at index: Int, in text: Span<UInt8>) -> Bool {
        let end = index + word.count
        guard end <= text.count, text.extracting(index..<end).equals(word.span) else { return false }
        guard end < text.count, isWordByte(text[end]) else { return true }
        // A full stop ends a sentence, unless a name goes on behind it.
        return text[end] == 0x2E && (end + 1 == text.count || !isWordByte(text[end + 1]))
    }

    /// `conference.` before a domain and `romeo@` before it leave it a word of its own; letters and hyphens do not.
    static func mayPrecede(_ byte: UInt8) -> Bool { !isWordByte(byte) || byte == 0x2E }

    /// Letters, digits, `-`, `_`, `.` and what is beyond ASCII.
    static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x80...: true
        default: false
        }
    }
}
