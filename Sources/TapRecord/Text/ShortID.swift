extension LineBuffer {
    /// Minimum number of bytes of an id that is shortened.
    static let longID = 20
    private static let shownID = 8

    /// Appends the beginning of a word if it is a long random id, with the punctuation around it: `3f4c69dd…,`.
    ///
    /// - Returns: Whether the word is such an id; otherwise nothing was appended.
    mutating func appendShortID(_ word: Span<UInt8>) -> Bool {
        guard word.count >= Self.longID else { return false }
        var (start, end) = (0, word.count)
        while start < end, !word[start].isOfID { start += 1 }
        while end > start, !word[end - 1].isOfID { end -= 1 }
        guard end - start >= Self.longID else { return false }
        // Excludes names: those of mechanisms and cipher suites are in upper case, and other names have no digits.
        var (digits, letters) = (false, false)
        for index in start..<end {
            guard word[index].isOfID else { return false }
            digits = digits || (0x30...0x39).contains(word[index])
            letters = letters || (0x61...0x7A).contains(word[index])
        }
        guard digits, letters || word.extracting(start..<end).isUpperCaseUUID else { return false }
        appendEscaped(word.extracting(0..<(start + Self.shownID)).bytes)
        append("…")
        appendEscaped(word.extracting(end...).bytes)
        return true
    }
}

extension UInt8 {
    /// Whether the byte is a letter, a digit, `-` or `_`.
    fileprivate var isOfID: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
        default: false
        }
    }
}

extension Span<UInt8> {
    /// Whether the bytes have the form `3F4C69DD-607C-4EC5-9216-60F8C44C0BDC`.
    fileprivate var isUpperCaseUUID: Bool {
        guard count == 36 else { return false }
        for index in indices {
            let isHyphen = index == 8 || index == 13 || index == 18 || index == 23
            guard isHyphen ? self[index] == 0x2D : self[index] <= 0x46 && self[index] != 0x2D else { return false }
        }
        return true
    }
}
