internal import TapRecord
internal import XMPPCore

/// Restores the XML that was sent from the XML that a log shows, as far as the log's format has changed it.
enum LogItemRepair {
    /// Bytes for a session; `inferred` says why a stream header among them is inferred, and is nil if the header is in
    /// the log.
    struct Piece {
        var bytes: [UInt8]
        var inferred: String?
    }

    private static let streams = "http://etherx.jabber.org/streams"
    private static let framing = "urn:ietf:params:xml:ns:xmpp-framing"
    private static let bosh = "http://jabber.org/protocol/httpbind"
    private static let end = Array("</stream:stream>".utf8)

    /// Translates an item to its form in a stream over TCP. WebSocket (RFC 7395 §3.4) and BOSH (XEP-0206) use other
    /// elements for the stream header, stanzas and the stream end; some logs change the stream header.
    static func pieces(_ item: [UInt8], _ direction: Direction) -> [Piece] {
        let tag = LogTag(item[...])
        if tag.isStreamHeader { return [header(tag, item)] }
        switch tag["xmlns"].map({ String(decoding: $0, as: UTF8.self) }) {
        case framing where tag.isNamed("open"):
            return [Piece(bytes: rebuilt(tag), inferred: "the log shows the <open/> of WebSocket")]
        case framing where tag.isNamed("close"): return [Piece(bytes: end)]
        case bosh where tag.isNamed("body"): return unwrapped(tag, direction)
        default: return [Piece(bytes: withStreamPrefix(withoutIndentation(item, tag), tag))]
        }
    }

    /// Returns stream features and stream errors with the prefix that some logs leave out; other items unchanged.
    private static func withStreamPrefix(_ item: [UInt8], _ tag: LogTag) -> [UInt8] {
        guard tag.name.elementsEqual("features".utf8) || tag.name.elementsEqual("error".utf8), !tag.has("xmlns"),
            let start = item.firstIndex(of: 0x3C)
        else { return item }
        let prefix = Array("stream:".utf8)
        let text = Array(item[...start]) + prefix + item[(start + 1)...]
        let end = Array("</".utf8) + tag.name
        guard let last = text.lastIndex(of: 0x3C), text[last...].starts(with: end) else { return text }
        return Array(text[...(last + 1)]) + prefix + text[(last + 2)...]
    }

    /// Returns an item without the line breaks that a printer has put around its texts. In a message, line breaks count
    /// as part of the text, unless there are line breaks between the tags as well.
    private static func withoutIndentation(_ item: [UInt8], _ tag: LogTag) -> [UInt8] {
        guard item.contains(0x0A) else { return item }
        let inside = tag.content.drop { $0 == 0x0D }
        let isIndented = inside.first == 0x0A && inside.first { !isBlank($0) } == 0x3C
        guard isIndented || !tag.isNamed("message") else { return item }
        var text: [UInt8] = []
        text.reserveCapacity(item.count)
        var rest = item[...]
        while let start = rest.firstIndex(of: 0x3E) {
            text += rest[...start]
            rest = rest[(start + 1)...]
            let content = rest.prefix { $0 != 0x3C }
            let end = content.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? content.startIndex
            let trimmed = content[..<end].drop(while: isBlank)
            let isWrapped = content[..<trimmed.startIndex].contains(0x0A) && content[trimmed.endIndex...].contains(0x0A)
            text += isWrapped && !trimmed.isEmpty ? trimmed : content
            rest = rest[content.endIndex...]
        }
        return text + rest
    }

    /// Returns an item without the tab with which each line after the first one begins; unchanged if a line begins
    /// differently.
    static func withoutTabs(_ item: [UInt8]) -> [UInt8] {
        let lines = item.split(separator: 0x0A, omittingEmptySubsequences: false)
        guard lines.count > 1, lines.dropFirst().allSatisfy({ $0.first == 0x09 }), let first = lines.first else {
            return item
        }
        return lines.dropFirst().reduce(into: Array(first)) { $0 += [0x0A] + $1.dropFirst() }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    /// Returns a stream header as it was sent: some logs close the tag, and show the attributes as a parser has changed
    /// them.
    private static func header(_ tag: LogTag, _ item: [UInt8]) -> Piece {
        let hasStreams = tag.has("xmlns:stream")
        let isAsSent =
            tag.name.elementsEqual("stream:stream".utf8) && hasStreams && tag.has("xmlns") && !tag.isEmpty
            && tag.attributes.allSatisfy { isDeclared($0.name, tag) }
        if isAsSent { return Piece(bytes: item) }
        let isComplete = hasStreams && tag.has("xmlns")
        return Piece(bytes: rebuilt(tag), inferred: isComplete ? nil : "its namespaces are not in the log")
    }

    private static func isDeclared(_ name: ArraySlice<UInt8>, _ tag: LogTag) -> Bool {
        guard let colon = name.firstIndex(of: 0x3A) else { return true }
        let prefix = String(decoding: name[..<colon], as: UTF8.self)
        return prefix == "xml" || prefix == "xmlns" || tag.has("xmlns:\(prefix)")
    }

    /// Returns a stream header with the attributes of a tag.
    private static func rebuilt(_ tag: LogTag) -> [UInt8] {
        var text = Array("<stream:stream".utf8)
        var declared = false
        for attribute in tag.attributes {
            var name = Array(attribute.name)
            let value = String(decoding: attribute.value, as: UTF8.self)
            if name.elementsEqual("xmlns".utf8), value == streams || value == framing { continue }
            if name.elementsEqual("stream".utf8), value == streams { continue }
            if name.elementsEqual("xmlns:stream".utf8) { declared = true }
            if !isDeclared(attribute.name, tag) {
                // `stream1:lang`: the printer has replaced the prefix `xml` with an invented prefix.
                guard name.suffix(5).elementsEqual(":lang".utf8) else { continue }
                name = Array("xml:lang".utf8)
            }
            let quote: UInt8 = attribute.value.contains(0x22) ? 0x27 : 0x22
            text += [0x20] + name + [0x3D, quote] + attribute.value + [quote]
        }
        if !declared { text += Array(" xmlns:stream=\"\(streams)\"".utf8) }
        if tag["xmlns"].map({ String(decoding: $0, as: UTF8.self) }).map({ $0 == streams || $0 == framing }) ?? true {
            text += Array(" xmlns=\"jabber:client\"".utf8)
        }
        return text + [0x3E]
    }

    /// Unwraps a `<body/>` of BOSH, whose attributes replace stream headers and stream ends.
    private static func unwrapped(_ tag: LogTag, _ direction: Direction) -> [Piece] {
        var pieces: [Piece] = []
        let restarts = tag.attributes.contains { $0.name.suffix(8).elementsEqual(":restart".utf8) }
        let opens = direction == .send ? !tag.has("sid") && tag.has("to") : tag.has("sid") && tag.has("wait")
        if opens || restarts {
            var header = "<stream:stream xmlns=\"jabber:client\" xmlns:stream=\"\(streams)\" version=\"1.0\""
            for (name, attribute) in [("to", "to"), ("from", "from"), ("id", "authid")] {
                guard let value = tag[attribute], !value.contains(0x22) else { continue }
                header += " \(name)=\"\(String(decoding: value, as: UTF8.self))\""
            }
            pieces.append(Piece(bytes: Array("\(header)>".utf8), inferred: "the log shows the <body/> of BOSH"))
        }
        if !tag.isEmpty {
            var scanner = LogXMLScanner()
            var items: [[UInt8]] = []
            _ = scanner.read(tag.content, into: &items)
            for item in items where !LogTag(item[...]).name.elementsEqual("/body".utf8) {
                pieces.append(Piece(bytes: withoutIndentation(item, LogTag(item[...]))))
            }
        }
        if tag["type"]?.elementsEqual("terminate".utf8) == true { pieces.append(Piece(bytes: end)) }
        return pieces
    }

    // MARK: Prefixes

    private static let known = [
        "stream": streams, "db": "jabber:server:dialback", "xmpp": "urn:xmpp:xbosh",
    ]

    /// The largest number of prefixes that an item may use without declaring them.
    private static let maximumUndeclared = 64

    /// Returns an item with declarations for the prefixes that the log's printer left undeclared; unchanged if there
    /// are too many.
    static func declaringPrefixes(_ item: [UInt8]) -> [UInt8] {
        var used: [String] = []
        var declared: Set<String> = ["xml", "xmlns"]
        var index = 0
        while index < item.count {
            guard item[index] == 0x3C else {
                index += 1
                continue
            }
            let tag = LogTag(item[index...])
            for name in [tag.name] + tag.attributes.map(\.name) {
                guard let colon = name.firstIndex(of: 0x3A) else { continue }
                let prefix = String(decoding: name[..<colon].drop { $0 == 0x2F }, as: UTF8.self)
                if prefix == "xmlns" {
                    declared.insert(String(decoding: name[(colon + 1)...], as: UTF8.self))
                } else if !used.contains(prefix), !declared.contains(prefix) {
                    guard used.count < maximumUndeclared else { return item }
                    used.append(prefix)
                }
            }
            index = max(index + 1, tag.name.endIndex)
        }
        let name = LogTag(item[...]).name
        var text = Array(item[..<name.endIndex])
        for prefix in used where !declared.contains(prefix) {
            text += Array(" xmlns:\(prefix)=\"\(known[prefix] ?? "urn:xmpptap:undeclared:\(prefix)")\"".utf8)
        }
        return text + item[name.endIndex...]
    }
}
