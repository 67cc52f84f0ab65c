/// Finds the ends of the items that a log prints, over any number of lines.
///
/// It only counts tags: whether the XML is acceptable is checked on whole items, see ``LogItemCheck``.
struct LogXMLScanner {
    /// The context of the next byte.
    private enum State {
        case between, text
        case tag(start: Int)
        case quote(UInt8, start: Int)
        case markup(end: [UInt8], start: Int)
    }

    private var state = State.between
    /// Elements that are open.
    private(set) var depth = 0
    /// Bytes of the item that has begun.
    private(set) var item: [UInt8] = []
    /// An item has begun and not ended.
    var isWithinItem: Bool { !item.isEmpty }
    /// The next byte is part of an attribute's value.
    var isWithinValue: Bool { if case .quote = state { true } else { false } }
    /// Nothing of the item is there but its first tag.
    var hasOnlyStartTag: Bool { depth == 1 && item.last == 0x3E && !item.dropLast().contains(0x3E) }

    /// Reads on, and gives out each item that ends.
    ///
    /// - Returns: The index of the first byte outside of items; the end if there is none.
    mutating func read(_ bytes: ArraySlice<UInt8>, _ found: ([UInt8]) -> Void) -> Int {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            if case .between = state {
                if byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
                    index += 1
                    continue
                }
                guard byte == 0x3C, Self.opensMarkup(bytes[index...]) else { break }
                state = .tag(start: 0)
            }
            item.append(byte)
            index += 1
            if step(byte) {
                found(item)
                item = []
                depth = 0
                state = .between
            }
        }
        // Blanks behind the last item belong to the text behind it.
        if case .between = state, index < bytes.endIndex {
            while index > bytes.startIndex, bytes[index - 1] == 0x20 { index -= 1 }
        }
        return index
    }

    /// Ends what is open: the log does not show the rest of it.
    mutating func takeRest() -> [UInt8] {
        defer { self = LogXMLScanner() }
        return item
    }

    /// Takes the byte that was appended; whether the item ends with it.
    private mutating func step(_ byte: UInt8) -> Bool {
        switch state {
        case .between: return false
        case .text:
            if byte == 0x3C { state = .tag(start: item.count - 1) }
            return false
        case .tag(let start):
            if byte == 0x22 || byte == 0x27 {
                state = .quote(byte, start: start)
                return false
            }
            if item.count - start == 4, item[start...].elementsEqual("<!--".utf8) {
                state = .markup(end: Array("-->".utf8), start: start)
                return false
            }
            if item.count - start == 9, item[start...].elementsEqual("<![CDATA[".utf8) {
                state = .markup(end: Array("]]>".utf8), start: start)
                return false
            }
            return byte == 0x3E && endTag(from: start)
        case .quote(let quote, let start):
            if byte == quote { state = .tag(start: start) }
            return false
        case .markup(let end, let start):
            if byte == 0x3E, item.count - start >= end.count, item.suffix(end.count).elementsEqual(end) {
                state = .text
                return depth == 0
            }
            return false
        }
    }

    private mutating func endTag(from start: Int) -> Bool {
        state = .text
        let tag = item[start...]
        switch tag.dropFirst().first {
        case 0x3F, 0x21: return depth == 0
        case 0x2F:
            depth -= 1
            return depth <= 0
        default:
            if depth == 0, LogTag(tag).isStreamHeader { return true }
            if tag.dropLast().last == 0x2F { return depth == 0 }
            depth += 1
            return false
        }
    }

    private static func opensMarkup(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let next = bytes.dropFirst().first else { return false }
        return next == 0x2F || next == 0x3F || next == 0x5F || next | 0x20 >= 0x61 && next | 0x20 <= 0x7A
            || next >= 0x80
    }
}

/// The first tag of an item, read without regard to whether its prefixes are declared.
struct LogTag {
    /// The name as written, with its prefix.
    let name: ArraySlice<UInt8>
    /// The name without its prefix.
    let local: ArraySlice<UInt8>
    /// The bytes between the name and the end of the tag.
    private let rest: ArraySlice<UInt8>
    /// The bytes behind the tag.
    let content: ArraySlice<UInt8>
    /// The tag closes itself.
    let isEmpty: Bool

    init(_ item: ArraySlice<UInt8>) {
        var start = item.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
        if start.first == 0x3C { start = start.dropFirst() }
        let isEnd = start.first == 0x2F
        let word = start.dropFirst(isEnd ? 1 : 0).prefix {
            ![0x20, 0x09, 0x0A, 0x0D, 0x3E, 0x22, 0x27, 0x3D, 0x2F].contains($0)
        }
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

    func isNamed(_ text: String) -> Bool { local.elementsEqual(text.utf8) }

    /// `<stream:stream>`, with whatever prefix the log printed.
    var isStreamHeader: Bool {
        guard isNamed("stream"), name.first != 0x2F else { return false }
        return name.count > local.count
            || self["xmlns"].map { $0.elementsEqual("http://etherx.jabber.org/streams".utf8) } ?? true
    }

    /// `</stream:stream>`.
    var isStreamEnd: Bool { name.first == 0x2F && isNamed("stream") }

    /// `<?xml …?>`.
    var isDeclaration: Bool { name.starts(with: "?xml".utf8) }

    /// The value of an attribute by its name as written, without decoding.
    subscript(_ attribute: String) -> ArraySlice<UInt8>? {
        attributes.first { $0.name.elementsEqual(attribute.utf8) }?.value
    }

    /// Whether an attribute is there.
    func has(_ attribute: String) -> Bool { self[attribute] != nil }

    /// The attributes in order: the name as written, the value between its quotes, and the range of both.
    var attributes: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>, range: Range<Int>)] {
        var found: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>, range: Range<Int>)] = []
        var text = rest
        while true {
            text = text.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
            let name = text.prefix { ![0x20, 0x3D, 0x0A, 0x0D, 0x09, 0x2F].contains($0) }
            let behind = text[name.endIndex...].drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
            guard !name.isEmpty, behind.first == 0x3D else { return found }
            let open = behind.dropFirst().drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
            guard let quote = open.first, quote == 0x22 || quote == 0x27 else { return found }
            let value = open.dropFirst().prefix { $0 != quote }
            let end = min(value.endIndex + 1, rest.endIndex)
            found.append((name, value, name.startIndex..<end))
            text = rest[end...]
        }
    }
}
