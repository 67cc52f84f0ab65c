internal import XMPPCore

/// The accounts and domains of one side of a comparison, mapped to names that both sides share.
///
/// Empty if both sides use the same accounts.
struct AddressNames: Sendable {
    /// JIDs and domains with their shared names, by the hash of the text.
    private var names: [UInt64: (text: [UInt8], name: [UInt8])] = [:]
    /// The lengths of the names, longest first, because an account contains its domain and a domain may end with
    /// another.
    private var lengths: [Int] = []

    var isEmpty: Bool { names.isEmpty }

    /// Maps a bare JID or domain to its shared name.
    mutating func add(_ text: String, as name: String) {
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty else { return }
        names[Hash.of(bytes.span, seed: 1)] = (bytes, Array(name.utf8))
        guard !lengths.contains(bytes.count) else { return }
        lengths.append(bytes.count)
        lengths.sort(by: >)
    }

    /// Returns a text in which each account and domain that occurs as a whole word is replaced by its shared name; nil
    /// if none occurs.
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

    /// Returns whether `word` occurs at `index` and ends there as a whole word.
    static func occurs(_ word: [UInt8], at index: Int, in text: Span<UInt8>) -> Bool {
        let end = index + word.count
        return mayEnd(at: end, in: text) && text.extracting(index..<end).equals(word.span)
    }

    /// Returns whether a word can end at `end`, which may be beyond the text.
    private static func mayEnd(at end: Int, in text: Span<UInt8>) -> Bool {
        guard end < text.count, isWordByte(text[end]) else { return end <= text.count }
        // A full stop ends a sentence, unless another part of the name follows.
        return text[end] == 0x2E && (end + 1 == text.count || !isWordByte(text[end + 1]))
    }

    /// Returns whether a word can begin after `byte`: after `romeo@` or `conference.`, but not after letters and
    /// hyphens.
    static func mayPrecede(_ byte: UInt8) -> Bool { !isWordByte(byte) || byte == 0x2E }

    /// Returns whether `byte` is a letter, a digit, `-`, `_`, `.` or not ASCII.
    static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x80...: true
        default: false
        }
    }
}
