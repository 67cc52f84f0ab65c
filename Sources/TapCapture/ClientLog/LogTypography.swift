/// Undoes the changes that forums and word processors make to pasted XML: typographic quotes, dashes and no-break
/// spaces.
///
/// Only bytes within tags and directly before tags are changed, because XML allows no other meaning there. Texts stay
/// unchanged. A value whose quotes do not match also stays unchanged; its item cannot be read.
struct LogTypography {
    private let line: [UInt8]
    private var index = 0
    private var plain: [UInt8] = []

    private static let space = Array("\u{A0}".utf8)
    private static let spaceEntity = Array("&nbsp;".utf8)
    private static let quoteEntity = Array("&quot;".utf8)
    /// The first two bytes, in UTF-8, of typographic quotes and dashes: U+2010 to U+201F, U+2032 and U+2033.
    private static let punctuation: [UInt8] = [0xE2, 0x80]
    /// The minus sign, U+2212.
    private static let minus = Array("\u{2212}".utf8)

    /// Returns a line with straight quotes, hyphens and ordinary spaces in its tags.
    static func plain(_ line: [UInt8]) -> [UInt8] {
        guard isPossible(line) else { return line }
        var typography = LogTypography(line)
        typography.read()
        return typography.plain
    }

    /// Whether a line may contain one of these characters; most lines contain none.
    private static func isPossible(_ line: [UInt8]) -> Bool {
        let bytes = line.span
        for index in bytes.indices.dropLast() {
            let byte = bytes[index]
            guard byte == 0x26 || byte >= 0xC2 else { continue }
            switch (byte, bytes[index + 1]) {
            case (0xC2, 0xA0), (0xE2, 0x80), (0xE2, 0x88), (0x26, 0x6E): return true
            case (0x26, 0x71) where index > 0 && bytes[index - 1] == 0x3D: return true
            default: continue
            }
        }
        return false
    }

    private init(_ line: [UInt8]) {
        self.line = line
        plain.reserveCapacity(line.count)
    }

    private mutating func read() {
        readBlanks(isIndentation: true)
        var isWithinMechanism = false
        while index < line.count {
            if line[index] == 0x3C, opensTag(index + 1) {
                isWithinMechanism = isNamedMechanism(index + 1)
                readTag()
            } else if readBlanks(isIndentation: false) || isWithinMechanism && readDash() {
                continue
            } else {
                copy { $0 == 0x3C || $0 == 0x20 || $0 == 0xC2 || $0 == 0x26 || $0 == 0xE2 }
            }
        }
    }

    /// Copies a byte and the bytes after it, up to the first byte for which `isEnd` is true.
    private mutating func copy(until isEnd: (UInt8) -> Bool) {
        let end = line[(index + 1)...].firstIndex(where: isEnd) ?? line.count
        plain += line[index..<end]
        index = end
    }

    private func opensTag(_ index: Int) -> Bool {
        guard index < line.count else { return false }
        let byte = line[index]
        return byte == 0x2F || byte == 0x3F || byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A
    }

    /// Whether a tag is `<mechanism>`. Names of mechanisms are in ASCII (RFC 4422 §3.1), so that a typographic dash in
    /// a name has replaced a hyphen.
    private func isNamedMechanism(_ index: Int) -> Bool { line[index...].starts(with: "mechanism>".utf8) }

    /// Reads blanks, and replaces unusual ones with spaces before a tag and at the beginning of a line. Returns whether
    /// there are any blanks.
    @discardableResult
    private mutating func readBlanks(isIndentation: Bool) -> Bool {
        var (end, count, isUnusual) = (index, 0, false)
        while end < line.count {
            if line[end] == 0x20 || line[end] == 0x09 {
                end += 1
            } else if let length = spaceLength(end) {
                end += length
                isUnusual = true
            } else {
                break
            }
            count += 1
        }
        guard count > 0 else { return false }
        let isBeforeTag = end < line.count && line[end] == 0x3C && opensTag(end + 1)
        if isUnusual, isIndentation || isBeforeTag {
            plain += Array(repeating: 0x20, count: count)
        } else {
            plain += line[index..<end]
        }
        index = end
        return true
    }

    private func spaceLength(_ index: Int) -> Int? {
        if line[index...].starts(with: Self.space) { return Self.space.count }
        return line[index...].starts(with: Self.spaceEntity) ? Self.spaceEntity.count : nil
    }

    /// Reads a tag, or the part of the tag that is on the line.
    private mutating func readTag() {
        var isName = false
        while index < line.count {
            let byte = line[index]
            if byte == 0x3D {
                plain.append(byte)
                index += 1
                readValue(isNamespace: isName)
            } else if let length = spaceLength(index) {
                plain.append(0x20)
                index += length
            } else if !readDash() {
                if byte == 0x20 || byte == 0x09 { isName = isASCIIName(index + 1) }
                if byte == 0x3E {
                    plain.append(byte)
                    index += 1
                    return
                }
                copy { !LogLead.isAlphanumeric($0) }
            }
        }
    }

    /// Whether an attribute is `xmlns` or `mechanism`, whose values consist of ASCII characters only.
    private func isASCIIName(_ index: Int) -> Bool {
        guard index < line.count else { return false }
        return line[index...].starts(with: "xmlns".utf8) || line[index...].starts(with: "mechanism".utf8)
    }

    private mutating func readValue(isNamespace: Bool) {
        while index < line.count {
            if line[index] == 0x20 {
                plain.append(0x20)
                index += 1
            } else if let length = spaceLength(index) {
                plain.append(0x20)
                index += length
            } else {
                break
            }
        }
        guard index < line.count else { return }
        let start: Int
        let end: Int
        let behind: Int
        let quote: UInt8
        if line[index] == 0x22 || line[index] == 0x27 {
            quote = line[index]
            start = index + 1
            end = line[start...].firstIndex(of: quote) ?? line.count
            behind = min(end + 1, line.count)
        } else if let (isDouble, length) = mark(index), let close = closing(isDouble, from: index + length) {
            start = index + length
            (end, behind) = (close.lowerBound, close.upperBound)
            guard let free = [0x22, 0x27].first(where: { !line[start..<end].contains($0) }) else { return }
            quote = free
        } else {
            return
        }
        plain.append(quote)
        index = start
        while isNamespace, index < end {
            if readDash() { continue }
            plain.append(line[index])
            index += 1
        }
        plain += line[index..<end]
        if behind > end { plain.append(quote) }
        index = behind
    }

    /// Reads a typographic or escaped quote. Returns whether it is a double quote, and its length in bytes; nil if no
    /// quote begins at the index.
    private func mark(_ index: Int) -> (isDouble: Bool, length: Int)? {
        let rest = line[index...]
        if rest.starts(with: Self.quoteEntity) { return (true, Self.quoteEntity.count) }
        guard rest.starts(with: Self.punctuation), let last = rest.dropFirst(2).first else { return nil }
        switch last {
        case 0x98...0x9B, 0xB2: return (false, 3)
        case 0x9C...0x9F, 0xB3: return (true, 3)
        default: return nil
        }
    }

    /// Returns the first quote of a kind that is followed by a blank, the end of the tag or the end of the line.
    private func closing(_ isDouble: Bool, from start: Int) -> Range<Int>? {
        var position = start
        while position < line.count, line[position] != 0x3C {
            guard let (kind, length) = mark(position) else {
                position += 1
                continue
            }
            let end = position + length
            if kind == isDouble,
                end == line.count || [0x20, 0x09, 0x2F, 0x3E, 0x3F].contains(line[end]) || spaceLength(end) != nil
            {
                return position..<end
            }
            position = end
        }
        return nil
    }

    /// Reads a typographic dash as the hyphen that it replaces; returns whether there is a dash.
    private mutating func readDash() -> Bool {
        let rest = line[index...]
        guard
            rest.starts(with: Self.minus)
                || rest.starts(with: Self.punctuation) && rest.dropFirst(2).first.map({ 0x90...0x95 ~= $0 }) == true
        else { return false }
        plain.append(0x2D)
        index += 3
        return true
    }
}
