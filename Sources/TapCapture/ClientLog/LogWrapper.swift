/// An element that a logger, or the parser of its program, puts around the data of one read:
/// `<xmpp_stone>…</xmpp_stone>`.
struct LogWrapper {
    /// The index of the element's start tag in the line, and the index after its end tag.
    let start: Int
    let end: Int
    /// The items, without the end tags that the wrapper has directly after stream headers.
    let content: [UInt8]

    /// Creates a wrapper from the element directly around the item that begins at `start` of a line; nil if there is
    /// none.
    init?(_ line: [UInt8], around start: Int) {
        guard start > 0, line[start - 1] == 0x3E, let open = line[..<start].lastIndex(of: 0x3C) else { return nil }
        let name = line[(open + 1)..<(start - 1)]
        guard name.count <= 40, Self.isName(name) else { return nil }
        let tag = Array("</".utf8) + name + [0x3E]
        guard let close = line.index(of: tag, from: start) else { return nil }
        var items: [[UInt8]] = []
        var scanner = LogXMLScanner()
        _ = scanner.read(line[start..<close], into: &items)
        guard !scanner.isWithinItem else { return nil }
        var content: [UInt8] = []
        var isBehindHeader = false
        for item in items {
            let tag = LogTag(item[...])
            if !isBehindHeader || !tag.isStreamEnd { content += item }
            isBehindHeader = tag.isStreamHeader
        }
        self.start = open
        end = close + tag.count
        self.content = content
    }
}

extension LogWrapper {
    /// Returns the items within a wrapper that may span several lines; nil if `item` is not a wrapper.
    static func items(in item: [UInt8]) -> [[UInt8]]? {
        guard item.first == 0x3C, let end = item.firstIndex(of: 0x3E) else { return nil }
        let name = item[1..<end]
        guard isName(name), !LogStart.mayOpen(name) else { return nil }
        let content = item[(end + 1)...].drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        guard LogStart.first(in: content) == content.startIndex else { return nil }
        var items: [[UInt8]] = []
        var scanner = LogXMLScanner()
        _ = scanner.read(content, into: &items)
        // The last item is the end tag of the wrapper.
        return items.dropLast()
    }

    private static func isName(_ name: ArraySlice<UInt8>) -> Bool {
        !name.isEmpty && name.allSatisfy { LogLead.isAlphanumeric($0) || $0 == 0x5F || $0 == 0x2D }
    }
}

extension Array<UInt8> {
    /// Returns the index of the first occurrence of `bytes` from the index `start` on; nil if there is none.
    fileprivate func index(of bytes: [UInt8], from start: Int) -> Int? {
        guard let first = bytes.first else { return nil }
        var rest = self[start...]
        while let index = rest.firstIndex(of: first) {
            if rest[index...].starts(with: bytes) { return index }
            rest = rest[(index + 1)...]
        }
        return nil
    }
}
