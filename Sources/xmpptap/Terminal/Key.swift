/// A key that was pressed in a terminal.
enum Key: Hashable, Sendable {
    case character(Character)
    /// A letter with Ctrl.
    case control(Character)
    case up, down, left, right
    case home, end, pageUp, pageDown
    case insert, delete, backspace
    case enter, tab, backTab, escape
    case function(Int)
    /// Text that the terminal has pasted (bracketed paste).
    case paste(String)
    /// A sequence or a byte without a meaning here.
    case unknown
}

/// Decodes the bytes that a terminal sends for keys: UTF-8, control characters and escape sequences (ECMA-48, xterm).
///
/// A sequence can arrive in several reads. The Esc key is the first byte of a sequence, too: whether more follows is only
/// known after a time, when ``endOfTime()`` is called.
struct KeyDecoder {
    /// Maximum number of bytes of an escape sequence.
    private static let longestSequence = 32
    /// Maximum number of bytes of a pasted text; the rest of it is dropped.
    private static let longestPaste = 64 << 10
    private static let escape: UInt8 = 0x1B
    private static let pasteEnd = Array("\u{1B}[201~".utf8)

    /// Bytes of an incomplete sequence.
    private var rest: [UInt8] = []
    /// The pasted text so far; nil if nothing is being pasted.
    private var pasted: [UInt8]?

    /// Whether bytes wait for the rest of their sequence, so that ``endOfTime()`` has to be called if none arrive.
    var isWaiting: Bool { !rest.isEmpty && pasted == nil }

    /// Returns the keys that are complete with more bytes.
    mutating func decode(_ bytes: some Sequence<UInt8>) -> [Key] {
        rest += bytes
        return keys(isFinal: false)
    }

    /// Returns the keys of an incomplete sequence, after nothing more has arrived for a time.
    mutating func endOfTime() -> [Key] { pasted == nil ? keys(isFinal: true) : [] }

    private mutating func keys(isFinal: Bool) -> [Key] {
        var keys: [Key] = []
        var bytes = rest[...]
        while !bytes.isEmpty {
            if pasted != nil {
                guard let text = paste(&bytes) else { break }
                keys.append(.paste(text))
                continue
            }
            guard let (key, length) = Self.key(bytes, isFinal: isFinal) else { break }
            bytes = bytes.dropFirst(length)
            if let key { keys.append(key) } else { pasted = [] }
        }
        rest = Array(bytes)
        return keys
    }

    /// Takes pasted bytes; returns the text if it is complete.
    private mutating func paste(_ bytes: inout ArraySlice<UInt8>) -> String? {
        while let byte = bytes.first {
            if byte == Self.escape {
                if bytes.starts(with: Self.pasteEnd) {
                    bytes = bytes.dropFirst(Self.pasteEnd.count)
                    let text = String(decoding: pasted ?? [], as: UTF8.self)
                    pasted = nil
                    return text
                }
                // The end may follow in the next read.
                if Self.pasteEnd.starts(with: bytes) { return nil }
            }
            bytes = bytes.dropFirst()
            if let count = pasted?.count, count < Self.longestPaste { pasted?.append(byte) }
        }
        return nil
    }

    /// Returns the first key and the number of its bytes; nil if more bytes are needed. The key is nil at the beginning of
    /// pasted text.
    private static func key(_ bytes: ArraySlice<UInt8>, isFinal: Bool) -> (key: Key?, length: Int)? {
        guard let first = bytes.first else { return nil }
        switch first {
        case escape: return sequence(bytes, isFinal: isFinal)
        case 0x0A, 0x0D: return (.enter, 1)
        case 0x09: return (.tab, 1)
        case 0x08, 0x7F: return (.backspace, 1)
        case 0x01...0x1A: return (.control(Character(Unicode.Scalar(first + 0x60))), 1)
        case 0x00..<0x20: return (.unknown, 1)
        case 0x20..<0x7F: return (.character(Character(Unicode.Scalar(first))), 1)
        default: return character(bytes, isFinal: isFinal)
        }
    }

    /// Decodes a character of UTF-8 beyond ASCII.
    private static func character(_ bytes: ArraySlice<UInt8>, isFinal: Bool) -> (key: Key?, length: Int)? {
        let length =
            switch bytes.first ?? 0 {
            case 0xC2...0xDF: 2
            case 0xE0...0xEF: 3
            case 0xF0...0xF4: 4
            default: 1
            }
        let parts = bytes.prefix(length)
        guard length > 1, parts.dropFirst().allSatisfy({ $0 & 0xC0 == 0x80 }) else { return (.unknown, 1) }
        guard parts.count == length else { return isFinal ? (.unknown, parts.count) : nil }
        guard let text = String(validating: parts, as: UTF8.self), let scalar = text.unicodeScalars.first,
            scalar.value >= 0xA0
        else { return (.unknown, length) }
        return (.character(Character(scalar)), length)
    }

    /// Decodes an escape sequence. After the time limit, its first byte is the Esc key, and other keys follow.
    private static func sequence(_ bytes: ArraySlice<UInt8>, isFinal: Bool) -> (key: Key?, length: Int)? {
        let after = bytes.dropFirst()
        guard let kind = after.first else { return isFinal ? (.escape, 1) : nil }
        switch kind {
        // SS3: the arrows of a keypad in application mode, and F1 to F4.
        case UInt8(ascii: "O"):
            guard let last = after.dropFirst().first else { return isFinal ? (.escape, 1) : nil }
            return (named(last) ?? .unknown, 3)
        case UInt8(ascii: "["):
            let body = after.dropFirst().prefix(longestSequence)
            // F1 to F5 of the Linux console.
            if body.first == UInt8(ascii: "[") {
                guard let last = body.dropFirst().first else { return isFinal ? (.escape, 1) : nil }
                return (last >= 0x41 && last <= 0x45 ? .function(Int(last) - 0x40) : .unknown, 4)
            }
            let parameters = body.prefix { $0 >= 0x20 && $0 <= 0x3F }
            guard let last = body.dropFirst(parameters.count).first else {
                if body.count >= longestSequence { return (.unknown, 2 + body.count) }
                return isFinal ? (.escape, 1) : nil
            }
            // Sequences do not contain this byte: the sequence before it was cut off.
            guard last >= 0x40, last < 0x7F else { return (.unknown, 2 + parameters.count) }
            let length = 3 + parameters.count
            let number = Int(String(decoding: parameters.prefix { $0 >= 0x30 && $0 <= 0x39 }, as: UTF8.self))
            guard last == UInt8(ascii: "~") else { return (named(last) ?? .unknown, length) }
            return (number == 200 ? nil : numbered(number ?? 0), length)
        // Another key after Esc, such as a letter with Alt.
        default: return (.escape, 1)
        }
    }

    /// Returns the key of the last byte of a sequence.
    private static func named(_ last: UInt8) -> Key? {
        switch last {
        case UInt8(ascii: "A"): .up
        case UInt8(ascii: "B"): .down
        case UInt8(ascii: "C"): .right
        case UInt8(ascii: "D"): .left
        case UInt8(ascii: "H"): .home
        case UInt8(ascii: "F"): .end
        case UInt8(ascii: "M"): .enter
        case UInt8(ascii: "Z"): .backTab
        case UInt8(ascii: "P")...UInt8(ascii: "S"): .function(Int(last) - 0x4F)
        default: nil
        }
    }

    /// Returns the key of a sequence that ends with `~`.
    private static func numbered(_ number: Int) -> Key {
        switch number {
        case 1, 7: .home
        case 2: .insert
        case 3: .delete
        case 4, 8: .end
        case 5: .pageUp
        case 6: .pageDown
        case 11...15: .function(number - 10)
        case 17...21: .function(number - 11)
        case 23...24: .function(number - 12)
        default: .unknown
        }
    }
}
