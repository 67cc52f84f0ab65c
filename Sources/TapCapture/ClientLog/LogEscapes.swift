/// How a log writes characters that its format reserves, around and within the XML.
enum LogEscapes: Hashable {
    case none
    /// HTML: `&lt;iq type=&quot;get&quot;/&gt;`, as a page or a bug tracker shows it.
    case entities
    /// A string literal of JSON, Python, Erlang or C; `quote` is the quotation mark that ends it, nil if the literal
    /// has none.
    case string(quote: UInt8?)
    /// A binary of Erlang, `<<"…">>`: each character is a byte.
    case binary(quote: UInt8)
    /// Python's `repr` of a text: `'<message …>\\n…'`. Each escape is a character.
    case pythonText(quote: UInt8)

    /// Returns a line without colour sequences (ECMA-48), byte order mark and carriage return.
    static func plain(_ line: [UInt8]) -> [UInt8] {
        var line = line.last == 0x0D ? Array(line.dropLast()) : line
        if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        guard line.contains(0x1B) else { return line }
        var plain: [UInt8] = []
        var rest = line[...]
        while let byte = rest.popFirst() {
            guard byte == 0x1B, rest.first == 0x5B else {
                plain.append(byte)
                continue
            }
            let final = rest.dropFirst().drop { $0 < 0x40 || $0 > 0x7E }
            guard !final.isEmpty else { break }
            rest = final.dropFirst()
        }
        return plain
    }

    /// Finds the notation of the XML that begins at `start` of a line.
    ///
    /// - Returns: The notation, and the index at which the text before the XML ends, without the opening quote.
    static func found(_ line: [UInt8], at start: Int) -> (escapes: LogEscapes, frontEnd: Int) {
        if line[start] == 0x26 { return (.entities, start) }
        // Some JSON encoders write `<` as `\u003c`.
        let isCoded = line[start] == 0x5C
        let quote = start > 0 ? line[start - 1] : 0
        let isQuoted = quote == 0x22 || quote == 0x27
        if isQuoted, start >= 3, line[start - 3] == 0x3C, line[start - 2] == 0x3C {
            return (.binary(quote: quote), start - 3)
        }
        if isQuoted, start >= 2, line[start - 2] == 0x62, start < 3 || !LogLead.isAlphanumeric(line[start - 3]) {
            return (.string(quote: quote), start - 2)
        }
        let isJSON = line.first { $0 != 0x20 } == 0x7B && line.last { $0 != 0x20 } == 0x7D
        if isCoded || isJSON || escapesQuotes(line[start...]) {
            return (.string(quote: isQuoted ? quote : isJSON ? 0x22 : nil), isQuoted ? start - 1 : start)
        }
        if isQuoted, isPythonText(line[start...], quote),
            LogLevelColumn.hasPythonLevel(line[..<start].prefix(Self.levelBytes))
        {
            return (.pythonText(quote: quote), start - 1)
        }
        return (.none, isQuoted ? start - 1 : start)
    }

    /// The number of bytes at the beginning of a line in which the level is looked for.
    private static let levelBytes = 400

    /// Whether a text that follows a quote is Python's `repr` with at least one escape: the next quote of this kind ends
    /// it, and each backslash begins an escape.
    private static func isPythonText(_ bytes: ArraySlice<UInt8>, _ quote: UInt8) -> Bool {
        var hasEscape = false
        var rest = bytes
        while let byte = rest.popFirst() {
            if byte == quote { return hasEscape && endsString(rest) }
            guard byte == 0x5C else { continue }
            guard let kind = rest.popFirst(), [0x5C, 0x27, 0x22, 0x6E, 0x72, 0x74, 0x78, 0x75, 0x55].contains(kind)
            else {
                return false
            }
            hasEscape = true
        }
        return false
    }

    /// Whether a backslash precedes the quotes of the first attribute's value.
    static func escapesQuotes(_ bytes: ArraySlice<UInt8>) -> Bool {
        let sign = bytes.prefix(200).drop { $0 != 0x3D && $0 != 0x3E }
        guard sign.first == 0x3D else { return false }
        let value = sign.dropFirst().prefix(2)
        return value.first == 0x5C && (value.last == 0x22 || value.last == 0x27)
    }

    /// Decodes the XML of a line.
    ///
    /// - Returns: The decoded bytes, and the index at which the XML ends: at the closing quote, or at the end of the
    ///   line.
    func decoded(_ bytes: ArraySlice<UInt8>) -> (bytes: [UInt8], end: Int) {
        switch self {
        case .none: (Array(bytes), bytes.endIndex)
        case .entities: (Self.withoutEntities(bytes), bytes.endIndex)
        case .string(let quote): Self.string(bytes, quote: quote)
        case .binary(let quote): Self.binary(bytes, quote: quote)
        case .pythonText(let quote): Self.string(bytes, quote: quote, isText: true)
        }
    }

    private static let characters: [([UInt8], UInt8)] = [
        (Array("&lt;".utf8), 0x3C), (Array("&gt;".utf8), 0x3E), (Array("&quot;".utf8), 0x22),
        (Array("&#34;".utf8), 0x22), (Array("&apos;".utf8), 0x27), (Array("&#39;".utf8), 0x27),
        (Array("&#x27;".utf8), 0x27), (Array("&nbsp;".utf8), 0x20), (Array("&amp;".utf8), 0x26),
    ]

    /// Resolves one level of entities: the log has escaped the entities of the XML itself a second time.
    private static func withoutEntities(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var decoded: [UInt8] = []
        var rest = bytes
        while let byte = rest.first {
            if byte == 0x26, let (name, meaning) = characters.first(where: { rest.starts(with: $0.0) }) {
                decoded.append(meaning)
                rest = rest.dropFirst(name.count)
            } else {
                decoded.append(byte)
                rest = rest.dropFirst()
            }
        }
        return decoded
    }

    /// Decodes a binary of Erlang. Erlang prints each byte as a character of Latin-1, unless `/utf8` follows.
    private static func binary(_ bytes: ArraySlice<UInt8>, quote: UInt8) -> (bytes: [UInt8], end: Int) {
        let found = string(bytes, quote: quote)
        let isUTF8 = bytes[found.end...].dropFirst().starts(with: utf8Suffix)
        guard !isUTF8, let text = latin1(bytes[..<found.end]) else { return found }
        return (string(text[...], quote: nil).bytes, found.end)
    }

    private static let utf8Suffix = Array("/utf8".utf8)

    /// Returns the bytes of a text, one for each character; nil if the text has only ASCII, if a character is not
    /// part of Latin-1, or if the bytes are not UTF-8: then the log shows the characters themselves.
    private static func latin1(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.contains(where: { $0 >= 0x80 }) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else { return nil }
            bytes.append(byte)
        }
        return String(validating: bytes, as: UTF8.self) == nil ? nil : bytes
    }

    private static func string(
        _ bytes: ArraySlice<UInt8>,
        quote: UInt8?,
        isText: Bool = false
    ) -> (bytes: [UInt8], end: Int) {
        var decoded: [UInt8] = []
        var rest = bytes
        // People paste strings that contain unescaped quotes: a quote closes the string only if the next byte can
        // follow a string.
        while let byte = rest.first {
            if byte == quote, Self.endsString(rest.dropFirst()) { break }
            rest = rest.dropFirst()
            guard byte == 0x5C, let kind = rest.popFirst() else {
                decoded.append(byte)
                continue
            }
            switch kind {
            case 0x6E: decoded.append(0x0A)
            case 0x72: decoded.append(0x0D)
            case 0x74: decoded.append(0x09)
            case 0x78: appendNumber(&rest, digits: 2, isByte: !isText, &decoded)
            case 0x75: appendNumber(&rest, digits: 4, isByte: false, &decoded)
            case 0x55 where isText: appendNumber(&rest, digits: 8, isByte: false, &decoded)
            default: decoded.append(kind)
            }
        }
        return (decoded, rest.startIndex)
    }

    private static func endsString(_ behind: ArraySlice<UInt8>) -> Bool {
        guard let next = behind.first else { return true }
        return [0x20, 0x2C, 0x29, 0x5D, 0x7D, 0x3B].contains(next) || behind.starts(with: ">>".utf8)
            || behind.starts(with: "/utf8>>".utf8)
    }

    private static func appendNumber(
        _ rest: inout ArraySlice<UInt8>,
        digits: Int,
        isByte: Bool,
        _ decoded: inout [UInt8]
    ) {
        let text = rest.prefix(digits)
        guard text.count == digits, let number = UInt32(String(decoding: text, as: UTF8.self), radix: 16) else {
            return decoded += [0x5C, digits == 2 ? 0x78 : digits == 4 ? 0x75 : 0x55]
        }
        rest = rest.dropFirst(digits)
        if isByte { return decoded.append(UInt8(number)) }
        var scalar = Unicode.Scalar(number)
        // The second half of a surrogate pair follows as another escape.
        if (0xD800..<0xDC00).contains(number), rest.starts(with: "\\u".utf8),
            let low = UInt32(String(decoding: rest.dropFirst(2).prefix(4), as: UTF8.self), radix: 16),
            (0xDC00..<0xE000).contains(low)
        {
            rest = rest.dropFirst(6)
            scalar = Unicode.Scalar(0x10000 + (number - 0xD800) << 10 + (low - 0xDC00))
        }
        decoded += Array(String(Character(scalar ?? "\u{FFFD}")).utf8)
    }
}
