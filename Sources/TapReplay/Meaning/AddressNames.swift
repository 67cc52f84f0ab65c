internal import XMPPCore

/// The accounts and domains of one side of a comparison, under names that both sides share.
///
/// Where both sides use the same accounts there is nothing in it, and every text stands for itself.
struct AddressNames: Sendable {
    /// JIDs and domains with what each is called on both sides, by the hash of the text.
    private var names: [UInt64: (text: [UInt8], name: [UInt8])] = [:]
    /// Their lengths, the longest first: a domain may end another, and stands in an account.
    private var lengths: [Int] = []

    var isEmpty: Bool { names.isEmpty }

    /// Gives a bare JID or a domain the name that it has on both sides.
    mutating func add(_ text: String, as name: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty else { return }
        names[Hash.of(bytes.span, seed: 1)] = (bytes, Array(name.utf8))
        guard !lengths.contains(bytes.count) else { return }
        lengths.append(bytes.count)
        lengths.sort(by: >)
    }

    /// A text with each account and domain, where it stands as a whole word, under its shared name; nil where none stands in it.
    func shared(_ text: Span<UInt8>) -> [UInt8]? {
        guard !names.isEmpty else { return nil }
        var result: [UInt8] = []
        var copied = 0
        var index = 0
        while index < text.count {
            guard index == 0 || Self.mayPrecede(text[index - 1]), let found = name(at: index, in: text) else {
                index += 1
                continue
            }
            for position in copied..<index { result.append(text[position]) }
            result += found.name
            index += found.text.count
            copied = index
        }
        guard copied > 0 else { return nil }
        for position in copied..<text.count { result.append(text[position]) }
        return result
    }

    private func name(at index: Int, in text: Span<UInt8>) -> (text: [UInt8], name: [UInt8])? {
        for length in lengths where Self.mayEnd(at: index + length, in: text) {
            let word = text.extracting(index..<(index + length))
            if let found = names[Hash.of(word, seed: 1)], word.equals(found.text.span) { return found }
        }
        return nil
    }

    /// Whether `word` stands at `index` and no letter of a longer word follows.
    static func stands(_ word: [UInt8], at index: Int, in text: Span<UInt8>) -> Bool {
        let end = index + word.count
        return mayEnd(at: end, in: text) && text.extracting(index..<end).equals(word.span)
    }

    /// Whether a word can end at `end`, which may be beyond the text.
    private static func mayEnd(at end: Int, in text: Span<UInt8>) -> Bool {
        guard end < text.count, isWordByte(text[end]) else { return end <= text.count }
        // A full stop ends a sentence, unless a name goes on behind it.
        return text[end] == 0x2E && (end + 1 == text.count || !isWordByte(text[end + 1]))
    }

    /// `conference.` before a domain and `romeo@` before it leave it a separate word; letters and hyphens do not.
    static func mayPrecede(_ byte: UInt8) -> Bool { !isWordByte(byte) || byte == 0x2E }

    /// Letters, digits, `-`, `_`, `.` and what is beyond ASCII.
    static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x80...: true
        default: false
        }
    }
}
