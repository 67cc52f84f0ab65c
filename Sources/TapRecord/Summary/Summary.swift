package import XMPPCore

/// A one-line summary of an item for people: `roster: 2 contacts`, `joins the room`, `publishes avatar metadata:
/// image/png 2.1 kB`.
///
/// Made from the redacted item, so that it cannot contain redacted content. Only the size of bodies, subjects and other
/// texts written by people is shown. A summary has at most ``maximumLength`` bytes. Texts from the wire (addresses, names,
/// nodes) are not escaped, because a sink escapes all texts.
package enum Summary {
    /// The maximum size of a summary in bytes of UTF-8.
    package static let maximumLength = SummaryLine.limit

    /// Information that the item does not contain.
    package struct Context: Sendable {
        /// The direction of the item; nil if unknown.
        package var direction: Direction?
        /// The summary of the request that the item answers; nil if unknown.
        package var request: Prose?

        /// Creates a context; all parts may be unknown.
        package init(direction: Direction? = nil, request: Prose? = nil) {
            self.direction = direction
            self.request = request
        }
    }

    /// Returns the summary of a stanza or another element of a stream; nil if its name is sufficient.
    package static func text(of element: Element, _ context: Context = Context()) -> String? {
        var line = SummaryLine(context)
        if element.namespace.isContent {
            line.append(stanza: element)
        } else {
            line.append(payload: element)
            if line.isEmpty { line.appendName(element) }
        }
        return line.isEmpty ? nil : line.text
    }

    /// Returns the summary of an item of which only the head is known: the kind of its payload.
    package static func text(name: Span<UInt8>, namespace: Namespace, uri: Span<UInt8>) -> String? {
        guard !name.isEmpty else { return nil }
        var line = SummaryLine(Context())
        line.appendName(name, namespace, uri.string())
        return line.text
    }

    /// Returns the summary of a presence with that type (RFC 6121 §4.7.1); nil for an unknown type.
    static func presence(_ type: Span<UInt8>) -> String? {
        switch type.count {
        case 0: "available"
        case 11 where type.equals("unavailable"): "no longer available"
        case 9 where type.equals("subscribe"): "asks to subscribe"
        case 10 where type.equals("subscribed"): "approves the subscription"
        case 11 where type.equals("unsubscribe"): "unsubscribes"
        case 12 where type.equals("unsubscribed"): "denies or cancels the subscription"
        case 5 where type.equals("probe"): "asks for presence"
        default: nil
        }
    }

    // MARK: From the head

    /// Returns the summary of a stanza from its head alone, equal to that of the parsed stanza; nil if the stanza must
    /// be parsed.
    ///
    /// The supported stanzas are pings, answers without content, presence without content, and messages with only a
    /// body, a chat state or a request for a receipt.
    /// - Parameters:
    ///   - item: the bytes that `head` refers to.
    ///   - context: information that the item does not contain.
    package static func text(of head: StanzaHead, _ item: Span<UInt8>, _ context: Context) -> String? {
        let type = item.slice(head.type?.range ?? .empty)
        switch head.kind {
        case .presence where head.isEmptyElement && !type.equals("error"): return presence(type)
        case .iq where head.payloadNamespace.namespace == .ping && !type.equals("error"): return "ping"
        case .iq where head.payloadName == nil && type.equals("result"):
            return context.request.map { "ok: \($0.text)" } ?? "ok"
        case .message where !type.equals("error"):
            guard let name = head.payloadName else { return nil }
            return message(head.payloadNamespace.namespace, name, item)
        default: return nil
        }
    }

    /// Returns the summary of a message with one child, which is empty or a body of plain text.
    private static func message(_ namespace: Namespace, _ name: ByteRange, _ item: Span<UInt8>) -> String? {
        let word = item.slice(name)
        if namespace.isContent {
            guard word.equals("body"), let size = bodySize(item, after: Int(name.end)), size < 1_000_000 else {
                return nil
            }
            var line = LineBuffer(capacity: 32)
            line.append("body ")
            line.append(size: UInt64(size))
            return line.text
        }
        return plain(namespace, word).flatMap { isLast(item, after: Int(name.end)) ? $0 : nil }
    }

    /// Returns the summary of an element by its name alone; nil if it must be parsed.
    private static func plain(_ namespace: Namespace, _ name: Span<UInt8>) -> String? {
        switch namespace {
        case .chatStates where name.equals("composing"): "is typing"
        case .chatStates where name.equals("paused"): "paused typing"
        case .chatStates where name.equals("active"): "active"
        case .receipts where name.equals("request"): "receipt requested"
        case .markers where name.equals("markable"): "markable"
        default: nil
        }
    }

    /// Returns whether only the end of the message follows the empty tag whose name ends at `end`.
    private static func isLast(_ item: Span<UInt8>, after end: Int) -> Bool {
        let rest: StaticString = "/></message>"
        let start = item.count - rest.utf8CodeUnitCount
        guard start >= end, item.extracting(start..<item.count).equals(rest) else { return false }
        // A tag cannot contain `<`, so no other element begins before the end.
        for index in end..<start where item[index] == 0x3C { return false }
        return true
    }

    /// Returns the bytes of the text in a body whose name ends at `end`; nil if the message contains more, or the text
    /// must be decoded.
    private static func bodySize(_ item: Span<UInt8>, after end: Int) -> Int? {
        let rest: StaticString = "</body></message>"
        let start = item.count - rest.utf8CodeUnitCount
        // A bracket could begin a placeholder.
        guard end + 1 < start, item[end] == 0x3E, item[end + 1] != 0x5B,
            item.extracting(start..<item.count).equals(rest)
        else { return nil }
        for index in (end + 1)..<start {
            switch item[index] {
            case 0x3C, 0x26, 0x0D: return nil
            default: continue
            }
        }
        return start - end - 1
    }

    // MARK: From the outline

    // Nearly every message and presence is summarised from the kinds of its children, without parsing them.

    /// Returns the summary of a message or presence from the names of its children and the size of their text, equal to
    /// that of the parsed stanza; nil if the stanza must be parsed.
    ///
    /// - Parameters:
    ///   - decoder: The decoder, with an outline of the item, which is its last event.
    ///   - line: A buffer that is reused for many summaries.
    package static func text(
        of head: StanzaHead,
        _ decoder: borrowing StreamDecoder,
        by line: inout LineBuffer
    ) -> String? {
        guard head.kind == .message || head.kind == .presence else { return nil }
        let item = decoder.bytes
        let type = item.slice(head.type?.range ?? .empty)
        guard !type.equals("error"), !(head.type?.needsDecoding ?? false) else { return nil }
        line.removeAll()
        if head.kind == .presence {
            guard let text = presence(type) else { return nil }
            line.append(string: text)
        }
        let isComplete = decoder.forEachChild { child in
            append(child, item, to: &line) && line.count < SummaryLine.limit / 2
        }
        // If no child adds information, the stanza is parsed, and the names of the children are shown.
        guard isComplete, !line.isEmpty else { return nil }
        return line.text
    }

    /// - Returns: false if the child must be parsed.
    private static func append(_ child: OutlinedChild, _ item: Span<UInt8>, to line: inout LineBuffer) -> Bool {
        let name = item.slice(child.name)
        guard case .text(let range) = child.content else {
            guard case .element(let inner, let photo) = child.content, child.namespace == .vCardUpdate,
                item.slice(inner).equals("photo")
            else { return false }
            return append(photo: item.slice(photo), to: &line)
        }
        switch child.namespace {
        case .client, .server, .componentAccept, .componentConnect:
            if name.equals("thread") { return true }
            let text = item.slice(range)
            guard let size = size(of: text) else { return false }
            if name.equals("body") {
                phrase("body ", to: &line)
                line.append(size: UInt64(size))
            } else if name.equals("status") {
                guard !text.isEmpty else { return true }
                phrase("status ", to: &line)
                line.append(size: UInt64(size))
            } else if name.equals("show") || name.equals("priority") {
                guard !text.isEmpty else { return true }
                guard text.count <= 16, text.count == size else { return false }
                phrase(name.equals("show") ? "" : "priority ", to: &line)
                line.append(bytes: text.bytes)
            } else {
                return false
            }
        case .chatStates, .receipts, .markers:
            guard let text = plain(child.namespace, name) else { return false }
            beginPhrase(in: &line)
            line.append(string: text)
        // Omitted here and by their formatters, because they add no information to other payloads.
        case .stanzaID, .occupantID, .hints, .capabilities: break
        default: return false
        }
        return true
    }

    @inline(__always)
    private static func phrase(_ text: StaticString, to line: inout LineBuffer) {
        beginPhrase(in: &line)
        line.append(text)
    }

    @inline(__always)
    private static func beginPhrase(in line: inout LineBuffer) { if !line.isEmpty { line.append(", ") } }

    /// Appends the hash of an avatar (XEP-0153 §3.1): its beginning is enough to distinguish avatars.
    private static func append(photo text: Span<UInt8>, to line: inout LineBuffer) -> Bool {
        guard !text.isEmpty else {
            phrase("no avatar", to: &line)
            return true
        }
        guard text.count >= 8, size(of: text) == text.count else { return false }
        for index in 0..<8 where text[index] <= 0x20 || text[index] >= 0x7F { return false }
        phrase("avatar ", to: &line)
        line.append(bytes: text.extracting(0..<8).bytes)
        return true
    }

    /// Returns the bytes of a text after decoding its entities; nil if it has other references, or may be a
    /// placeholder.
    private static func size(of text: Span<UInt8>) -> Int? {
        guard !text.isEmpty else { return 0 }
        guard text[0] != 0x5B else { return nil }
        var size = 0
        var index = 0
        let raw = text.bytes
        while index < text.count {
            // Counts plain bytes in blocks, because nearly all bytes of a long text are plain.
            if index &+ 16 <= text.count {
                let block = raw.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
                let plain = (block.marks(0x0D) .| block.marks(0x26)).first
                index += plain
                size += plain
                if plain == 16 { continue }
            }
            switch text[index] {
            case 0x0D: return nil
            case 0x26:
                // An entity is one of the five predefined ones, which are one byte each.
                guard index + 1 < text.count, text[index + 1] != 0x23 else { return nil }
                while index < text.count, text[index] != 0x3B { index += 1 }
            default: break
            }
            index += 1
            size += 1
        }
        return size
    }
}

/// Formats one kind of payload, recognised by its namespaces.
struct SummaryFormatter: Sendable {
    /// A function that appends the summary of a payload to a line.
    typealias Body = @Sendable (_ payload: Element, _ line: inout SummaryLine) -> Void

    let namespaces: [Namespace]
    let body: Body

    /// - Parameter source: The defining document, `XEP-0045` or `RFC 6121`.
    init(_ source: StaticString, _ namespaces: Namespace..., body: @escaping Body) {
        self.namespaces = namespaces
        self.body = body
    }

    /// Returns the formatter of payloads in a namespace; nil if there is none.
    static func body(_ namespace: Namespace) -> Body? { bodies[Int(namespace.rawValue)] }

    /// All formatters. A payload without a formatter is shown as `{namespace}name`.
    static let all: [SummaryFormatter] =
        core + messages + copies + people + queries + rooms + pubsub + media

    /// The formatters by the raw value of the namespace.
    private static let bodies: [Body?] = {
        var bodies = [Body?](repeating: nil, count: 256)
        for family in all {
            for namespace in family.namespaces { bodies[Int(namespace.rawValue)] = family.body }
        }
        return bodies
    }()
}
