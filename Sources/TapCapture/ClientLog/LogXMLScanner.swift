/// Finds the ends of the items that a log prints, over any number of lines.
///
/// The scanner only counts tags: ``LogItemCheck`` checks whole items.
struct LogXMLScanner {
    /// The context of the next byte; `start` is the index of a tag in the item.
    private enum State {
        case between, text
        case tag(start: Int)
        case quote(UInt8, start: Int)
        case comment(start: Int)
        case characterData(start: Int)
    }

    private var state = State.between
    /// The number of open elements.
    private(set) var depth = 0
    /// The bytes of the item that has begun.
    private(set) var item: [UInt8] = []
    /// Whether an item has begun and not ended.
    var isWithinItem: Bool { !item.isEmpty }
    /// Whether the next byte is part of an attribute value.
    var isWithinValue: Bool { if case .quote = state { true } else { false } }
    /// Whether the next byte is part of a tag, outside of attribute values.
    var isWithinTag: Bool { if case .tag = state { true } else { false } }
    /// Whether the next byte is part of the text of an element.
    var isWithinText: Bool { if case .text = state { true } else { false } }
    /// Whether only the first tag of the item was read so far.
    var hasOnlyStartTag: Bool { depth == 1 && item.last == 0x3E && !item.dropLast().contains(0x3E) }

    /// Reads bytes after those read before, and appends each item that ends to `found`.
    ///
    /// - Returns: The index of the first byte after the items; the end index if there is none.
    mutating func read(_ bytes: ArraySlice<UInt8>, into found: inout [[UInt8]]) -> Int {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            switch state {
            case .between:
                let byte = bytes[index]
                if byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
                    index += 1
                    continue
                }
                guard byte == 0x3C, Self.opensMarkup(bytes[index...]) else {
                    // Blanks after the last item belong to the text that follows.
                    while index > bytes.startIndex, bytes[index - 1] == 0x20 { index -= 1 }
                    return index
                }
                item.append(byte)
                state = .tag(start: 0)
                index += 1
            case .text:
                let end = bytes[index...].firstIndex(of: 0x3C) ?? bytes.endIndex
                item += bytes[index..<end]
                index = end
                guard index < bytes.endIndex else { break }
                state = .tag(start: item.count)
                item.append(0x3C)
                index += 1
            case .quote(let quote, let start):
                index = copy(bytes, from: index, through: quote)
                if item.last == quote { state = .tag(start: start) }
            case .tag(let start): index = readTag(bytes, from: index, start)
            case .comment(let start): index = readMarkup(bytes, from: index, start, end: "-->")
            case .characterData(let start): index = readMarkup(bytes, from: index, start, end: "]]>")
            }
            if depth <= 0, case .text = state {
                found.append(item)
                item = []
                depth = 0
                state = .between
            }
        }
        return index
    }

    /// Returns the open item, whose rest the log does not show, and resets the scanner.
    mutating func takeRest() -> [UInt8] {
        defer { self = LogXMLScanner() }
        return item
    }

    /// Copies the bytes up to and including `byte`, and returns the index after it.
    private mutating func copy(_ bytes: ArraySlice<UInt8>, from index: Int, through byte: UInt8) -> Int {
        let end = bytes[index...].firstIndex(of: byte).map { $0 + 1 } ?? bytes.endIndex
        item += bytes[index..<end]
        return end
    }

    /// The length of `<![CDATA[`.
    private static let maximumOpeningLength = 9

    private mutating func readTag(_ bytes: ArraySlice<UInt8>, from start: Int, _ tag: Int) -> Int {
        var index = start
        while index < bytes.endIndex {
            if item.count - tag >= Self.maximumOpeningLength {
                let end = bytes[index...].firstIndex { $0 == 0x22 || $0 == 0x27 || $0 == 0x3E } ?? bytes.endIndex
                item += bytes[index..<end]
                index = end
                guard index < bytes.endIndex else { return index }
            }
            let byte = bytes[index]
            item.append(byte)
            index += 1
            switch byte {
            case 0x22, 0x27:
                state = .quote(byte, start: tag)
                return index
            case 0x3E:
                endTag(from: tag)
                return index
            case 0x2D where item.count - tag == 4 && item[tag...].elementsEqual("<!--".utf8):
                state = .comment(start: tag)
                return index
            case 0x5B where item.count - tag == 9 && item[tag...].elementsEqual("<![CDATA[".utf8):
                state = .characterData(start: tag)
                return index
            default: continue
            }
        }
        return index
    }

    /// Reads up to the end of a comment or CDATA section.
    private mutating func readMarkup(
        _ bytes: ArraySlice<UInt8>,
        from start: Int,
        _ tag: Int,
        end: StaticString
    ) -> Int {
        let index = copy(bytes, from: start, through: 0x3E)
        let isEnd = end.withUTF8Buffer { item.count - tag >= $0.count + 4 && item.suffix($0.count).elementsEqual($0) }
        if isEnd { state = .text }
        return index
    }

    private mutating func endTag(from start: Int) {
        state = .text
        let tag = item[start...]
        switch tag.dropFirst().first {
        case 0x3F, 0x21: break
        case 0x2F: depth -= 1
        default:
            let isHeader = depth == 0 && LogTag(tag).isStreamHeader
            if !isHeader, tag.dropLast().last != 0x2F { depth += 1 }
        }
    }

    /// Whether each end tag of an item names the element that it closes. A stream header has no end tag: its attributes
    /// are checked instead.
    static func isBalanced(_ item: [UInt8]) -> Bool {
        let first = LogTag(item[...])
        if first.isStreamHeader { return first.hasOnlyAttributes && first.content.isEmpty }
        var open: [ArraySlice<UInt8>] = []
        var rest = item[...]
        while let start = rest.firstIndex(of: 0x3C) {
            let tag = LogTag(rest[start...])
            if tag.name.first == 0x2F {
                guard let last = open.popLast(), last.elementsEqual(tag.name.dropFirst()) else { return false }
            } else if !tag.isEmpty, tag.name.first != 0x3F, tag.name.first != 0x21 {
                open.append(tag.name)
            }
            rest = tag.content
        }
        return open.isEmpty
    }

    private static func opensMarkup(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let next = bytes.dropFirst().first else { return false }
        return next == 0x2F || next == 0x3F || next == 0x5F || next | 0x20 >= 0x61 && next | 0x20 <= 0x7A
            || next >= 0x80
    }
}

/// The first tag of an item, read without a check whether its prefixes are declared.
struct LogTag {
    /// The name as written, with its prefix.
    let name: ArraySlice<UInt8>
    /// The name without its prefix.
    let local: ArraySlice<UInt8>
    /// The bytes between the name and the end of the tag.
    private let rest: ArraySlice<UInt8>
    /// The bytes after the tag.
    let content: ArraySlice<UInt8>
    /// Whether the tag closes itself, as in `<iq/>`.
    let isEmpty: Bool

    init(_ item: ArraySlice<UInt8>) {
        var start = item.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
        if start.first == 0x3C { start = start.dropFirst() }
        let isEnd = start.first == 0x2F
        let word = start.dropFirst(isEnd ? 1 : 0).prefix { !Self.endsName($0) }
        name = start[start.startIndex..<word.endIndex]
        if let colon = name.lastIndex(of: 0x3A) {
            local = name[(colon + 1)...]
        } else {
            local = name.drop { $0 == 0x2F }
        }
        var quote: UInt8 = 0
        var end = name.endIndex
        while end < item.endIndex {
            let byte = item[end]
            if quote != 0 {
                if byte == quote { quote = 0 }
            } else if byte == 0x22 || byte == 0x27 {
                quote = byte
            } else if byte == 0x3E {
                break
            }
            end += 1
        }
        rest = item[name.endIndex..<end]
        isEmpty = rest.last == 0x2F
        content = end < item.endIndex ? item[(end + 1)...] : []
    }

    private static func endsName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x20, 0x09, 0x0A, 0x0D, 0x3E, 0x22, 0x27, 0x3D, 0x2F: true
        default: false
        }
    }

    func isNamed(_ text: String) -> Bool { local.elementsEqual(text.utf8) }

    /// Whether the tag is `<stream:stream>`, with any prefix that the log prints.
    var isStreamHeader: Bool {
        guard isNamed("stream"), name.first != 0x2F else { return false }
        let streams = "http://etherx.jabber.org/streams".utf8
        // Dino's log leaves out prefixes, also the prefix of `xmlns:stream`.
        return name.count > local.count || self["xmlns"].map { $0.elementsEqual(streams) } ?? true
            || self["stream"]?.elementsEqual(streams) ?? false
    }

    /// Whether the tag is `</stream:stream>`.
    var isStreamEnd: Bool { name.first == 0x2F && isNamed("stream") }

    /// Whether the tag is `<iq>`, `<message>` or `<presence>`.
    var isStanza: Bool { isNamed("iq") || isNamed("message") || isNamed("presence") }

    /// Whether the tag is `<?xml …?>`.
    var isDeclaration: Bool { name.starts(with: "?xml".utf8) }

    /// The value of an attribute, not decoded, by the name as written; nil if there is none.
    subscript(_ attribute: String) -> ArraySlice<UInt8>? {
        var text = rest
        while let (name, value, _) = Self.parseAttribute(&text) {
            if name.elementsEqual(attribute.utf8) { return value }
        }
        return nil
    }

    /// Whether the tag has an attribute.
    func has(_ attribute: String) -> Bool { self[attribute] != nil }

    /// Whether the tag has at least one attribute, or text that looks like an attribute.
    var hasAttributes: Bool { rest.contains(0x3D) }

    /// Whether only attributes follow the name.
    var hasOnlyAttributes: Bool {
        var text = rest.last == 0x2F ? rest.dropLast() : rest
        while Self.parseAttribute(&text) != nil {}
        return text.allSatisfy(Self.isBlank)
    }

    /// Whether a text continues a start tag: with its end or with an attribute.
    static func continuesTag(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text.drop(while: isBlank)
        if rest.first == 0x3E || rest.starts(with: "/>".utf8) { return true }
        guard let first = rest.first, first | 0x20 >= 0x61 && first | 0x20 <= 0x7A else { return false }
        return parseAttribute(&rest) != nil
    }

    /// An attribute: the name as written, the value between its quotes, and the range of both.
    typealias Attribute = (name: ArraySlice<UInt8>, value: ArraySlice<UInt8>, range: Range<Int>)

    /// The attributes in order.
    var attributes: [Attribute] {
        var found: [Attribute] = []
        var text = rest
        while let attribute = Self.parseAttribute(&text) { found.append(attribute) }
        return found
    }

    private static func parseAttribute(_ text: inout ArraySlice<UInt8>) -> Attribute? {
        var start = text.startIndex
        let end = text.endIndex
        while start < end, isBlank(text[start]) { start += 1 }
        var index = start
        while index < end, !endsName(text[index]) { index += 1 }
        let name = start..<index
        while index < end, isBlank(text[index]) { index += 1 }
        guard !name.isEmpty, index < end, text[index] == 0x3D else { return nil }
        index += 1
        while index < end, isBlank(text[index]) { index += 1 }
        guard index < end, text[index] == 0x22 || text[index] == 0x27 else { return nil }
        let quote = text[index]
        let open = index + 1
        index = open
        while index < end, text[index] != quote { index += 1 }
        let attribute = (text[name], text[open..<index], start..<min(index + 1, end))
        text = text[min(index + 1, end)...]
        return attribute
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }
}
