/// Undoes rsyslog's escapes of control characters in the text of a program: `#012` is a line break.
enum SyslogEscapes {
    private static let characters: [(code: [UInt8], byte: UInt8)] = [
        (Array("#011".utf8), 0x09), (Array("#012".utf8), 0x0A), (Array("#015".utf8), 0x0D),
    ]
    private static let start = Array("#01".utf8)
    /// The length of a code.
    private static let length = 4

    /// Whether a line may have an escape; most lines have none.
    static func isPossible(_ line: [UInt8]) -> Bool { line.contains(0x23) && line.firstRange(of: start) != nil }

    /// Returns a line of syslog without escapes; unchanged if the host and the program do not follow the time. Line
    /// breaks are restored only within XML, and outside of tags.
    static func decoded(_ line: [UInt8], after stamp: ClientLogStamp) -> [UInt8] {
        let zone = line[(stamp.outer ?? stamp.range).upperBound...].prefix { $0 != 0x20 && $0 != 0x3C }
        guard zone.count <= 7, let text = ClientLogStamp.endOfTag(line, from: zone.endIndex) else { return line }
        var plain = Array(line[..<text])
        var rest = line[text...]
        var (isWithinXML, isWithinTag) = (false, false)
        while let byte = rest.first {
            if byte == 0x3C {
                (isWithinXML, isWithinTag) = (true, true)
            } else if byte == 0x3E {
                isWithinTag = false
            }
            if byte == 0x23, let (code, character) = characters.first(where: { rest.starts(with: $0.code) }),
                character == 0x09 || isWithinXML && !isWithinTag, !isColour(rest)
            {
                plain.append(character)
                rest = rest.dropFirst(code.count)
            } else {
                plain.append(byte)
                rest = rest.dropFirst()
            }
        }
        return plain
    }

    /// Whether a text begins with a colour of six digits, such as `#012345`, which a program may have written itself.
    private static func isColour(_ text: ArraySlice<UInt8>) -> Bool {
        let digits = text.dropFirst().prefix { byte in
            byte >= 0x30 && byte <= 0x39 || byte | 0x20 >= 0x61 && byte | 0x20 <= 0x66
        }
        return digits.count == 6 && text[digits.endIndex...].first.map(LogLead.isAlphanumeric) != true
    }
}
