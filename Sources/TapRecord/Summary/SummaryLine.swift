import XMPPCore

/// A summary under construction: phrases joined by commas, of bounded length.
///
/// A formatter calls ``phrase(_:)`` to begin a phrase and appends to it. The line never exceeds its limit; each text
/// from the wire is clipped separately, so that one long name leaves space for the rest.
struct SummaryLine: ~Copyable {
    /// Maximum number of bytes of a line.
    static let limit = 160
    /// Maximum number of bytes of one text from the wire.
    private static let textLimit = 64
    /// Maximum depth of payloads within payloads.
    private static let depthLimit = 4

    let context: Summary.Context
    /// The summarised stanza; the innermost one if stanzas are nested.
    private(set) var stanza: Element?
    private var buffer = LineBuffer(capacity: limit + textLimit)
    private var depth = 0
    /// Whether something was appended after the last comma.
    private var hasPhrase = false

    init(_ context: Summary.Context) {
        self.context = context
    }

    var isEmpty: Bool { buffer.isEmpty }

    /// Number of bytes so far, to check whether something was appended.
    var byteCount: Int { buffer.count }

    /// Whether the line is full, so that further appends have no effect.
    var isFull: Bool { buffer.count > Self.limit }

    /// The line; if it was too long, it ends with an ellipsis.
    var text: String {
        guard isFull else { return buffer.text }
        let ellipsis: [UInt8] = [0xE2, 0x80, 0xA6]
        let bytes = buffer.bytes
        let end = bytes.span.cut(to: Self.limit - ellipsis.count).count
        return String(decoding: bytes[..<end] + ellipsis, as: UTF8.self)
    }

    // MARK: Phrases

    /// Begins a phrase, with a comma if another one precedes it.
    mutating func phrase(_ literal: StaticString) {
        separate()
        append(literal)
    }

    /// Begins a phrase that ends with the value of an attribute, if present.
    mutating func phrase(
        _ literal: StaticString,
        after separator: StaticString = " ",
        _ name: StaticString,
        of element: Element
    ) {
        phrase(literal)
        append(after: separator, name, of: element)
    }

    /// Begins a phrase that ends with a text from the wire, if present.
    mutating func phrase(_ literal: StaticString, after separator: StaticString = " ", text: String?) {
        phrase(literal)
        append(after: separator, text: text)
    }

    /// Ends the current phrase, so that later text begins another phrase.
    mutating func separate() {
        if hasPhrase { append(", ") }
        hasPhrase = true
    }

    mutating func append(_ literal: StaticString) {
        guard !isFull else { return }
        hasPhrase = true
        buffer.append(literal)
    }

    /// Appends text that does not come from the wire.
    mutating func append(trusted literal: String) {
        guard !isFull else { return }
        hasPhrase = true
        buffer.append(string: literal)
    }

    /// Appends a text from the wire, clipped.
    mutating func append(text: String) { append(text: text.utf8.span) }

    /// Appends a text from the wire, clipped.
    mutating func append(text bytes: Span<UInt8>) {
        guard !isFull else { return }
        hasPhrase = true
        guard bytes.count > Self.textLimit else { return buffer.append(bytes: bytes.bytes) }
        buffer.append(bytes: bytes.cut(to: Self.textLimit - 3).bytes)
        buffer.append("…")
    }

    /// Appends the text in an element, clipped.
    mutating func append(textOf element: Element) {
        let size = element.textSize
        // A text in one piece need not be joined.
        var isWhole = size == 0
        element.forEachText { if $0.count == size, !isWhole { isWhole = true; append(text: $0) } }
        if !isWhole { append(text: element.text) } else if size == 0 { append(text: "") }
    }

    /// Appends the local name of an element, clipped.
    mutating func append(nameOf element: Element) { element.withName { append(text: $0) } }

    /// Appends `literal` and the value of an attribute; nothing if the attribute is absent or empty.
    mutating func append(after literal: StaticString = " ", _ name: StaticString, of element: Element) {
        element.withAttribute(name) { value in
            guard !value.isEmpty else { return }
            append(literal)
            append(text: value)
        }
    }

    /// Appends `literal` and a text from the wire; nothing if the text is nil or empty.
    mutating func append(after literal: StaticString = " ", text: String?) {
        guard let text, !text.isEmpty else { return }
        append(literal)
        append(text: text)
    }

    /// Appends ` (auth)`, with a text from the wire.
    mutating func append(inBrackets text: String) {
        append(" (")
        append(text: text)
        append(")")
    }

    mutating func append(number: Int) {
        guard !isFull else { return }
        hasPhrase = true
        buffer.append(decimal: number)
    }

    /// Appends `no contacts`, `1 contact`, `2 contacts`.
    mutating func append(after literal: StaticString = "", count: Int, _ one: StaticString, _ many: StaticString) {
        append(literal)
        if count == 0 { append("no") } else { append(number: count) }
        append(" ")
        append(count == 1 ? one : many)
    }

    /// Appends a size: `2.1 kB`.
    mutating func append(size: Int) {
        guard !isFull else { return }
        hasPhrase = true
        buffer.append(size: UInt64(max(0, size)))
    }

    /// Appends the size in an attribute or element, formatted if it is a number, otherwise unchanged.
    mutating func append(after literal: StaticString = " ", size: String?) {
        guard let size, !size.isEmpty else { return }
        append(literal)
        if let number = Int(size), number >= 0 { append(size: number) } else { append(text: size) }
    }

    /// Appends a space and the size of the text in `element`. If the text is hidden, appends ` redacted`, and the size
    /// only if the placeholder contains one.
    mutating func append(sizeOf element: Element) {
        let count = element.textSize
        guard let hidden = Self.hiddenSize(element, count) else {
            append(" ")
            return append(size: count)
        }
        append(" redacted")
        if hidden >= 0 {
            append(" ")
            append(size: hidden)
        }
    }

    /// Returns the size in the placeholder of a hidden text, -1 if it contains none; nil for a text that is not hidden.
    private static func hiddenSize(_ element: Element, _ count: Int) -> Int? {
        guard count > 10, count < 96, element.beginsWithBracket else { return nil }
        let text = element.text
        guard Placeholder.isPlaceholder(text.utf8.span) else { return nil }
        let name = text.dropFirst(10).prefix { $0 != "#" }
        return name.lastIndex(of: "-").flatMap { Int(name[name.index(after: $0)...]) } ?? -1
    }

    // MARK: Lists

    /// Appends `: a, b, c …` with the first few texts; nothing for an empty list.
    mutating func append(some texts: [String], of count: Int, atMost shown: Int = 3) {
        guard !texts.isEmpty else { return }
        append(": ")
        for (index, text) in texts.prefix(shown).enumerated() {
            if index > 0 { append(", ") }
            append(text: text)
        }
        if count > min(shown, texts.count) { append(", …") }
    }

    /// Appends `3 contacts: a, b, c`, with the texts that `text` returns for the first three children.
    mutating func append(
        _ children: [Element],
        _ one: StaticString,
        _ many: StaticString,
        naming text: (Element) -> String?
    ) {
        append(count: children.count, one, many)
        append(some: children.prefix(3).compactMap(text), of: children.count)
    }

    // MARK: Elements

    /// Appends a payload by its formatter, or its name if it has none.
    mutating func append(payload: Element) {
        guard depth < Self.depthLimit, !isFull else { return }
        guard let appendBody = SummaryFormatter.body(payload.namespace) else { return appendName(payload) }
        depth += 1
        appendBody(payload, &self)
        depth -= 1
    }

    /// Appends a payload as part of the current phrase.
    mutating func append(within payload: Element) {
        hasPhrase = false
        append(payload: payload)
        hasPhrase = true
    }

    /// Appends the name of an element as part of the current phrase.
    mutating func append(name element: Element) {
        hasPhrase = false
        appendName(element)
    }

    /// Makes `element` the summarised stanza.
    mutating func enter(_ element: Element) { stanza = element }

    /// Appends a stanza within a payload: a copy, or an archive result.
    mutating func append(nested: Element) {
        guard depth < Self.depthLimit, !isFull else { return }
        let outer = stanza
        depth += 1
        append(nameOf: nested)
        append(after: " ", "type", of: nested)
        append(after: " ", "from", of: nested)
        append(after: " → ", "to", of: nested)
        append(": ")
        hasPhrase = false
        append(stanza: nested)
        depth -= 1
        stanza = outer
    }

    /// Appends the name of an element without a formatter.
    mutating func appendName(_ element: Element) {
        element.withName { appendName($0, element.namespace, element.namespaceURI) }
    }

    mutating func appendName(_ name: Span<UInt8>, _ namespace: Namespace, _ uri: @autoclosure () -> String) {
        separate()
        if !namespace.isContent, namespace != .none {
            append("{")
            if namespace == .other { append(text: uri()) } else { append(namespace.uri) }
            append("}")
        }
        append(text: name)
    }
}

extension Element {
    /// Whether the text of the element begins with a bracket, as placeholders do.
    fileprivate var beginsWithBracket: Bool {
        var first: UInt8?
        forEachText { if first == nil, !$0.isEmpty { first = $0[0] } }
        return first == 0x5B
    }
}

// Stanzas: their kind and type, then each child.
extension SummaryLine {
    /// Returns whether the stanza has that type.
    func isType(_ type: StaticString) -> Bool { stanza?.attribute("type", is: type) ?? false }

    /// Whether the stanza is a request, `get` or `set`.
    var isRequest: Bool { isType("get") || isType("set") }

    /// Begins a phrase with a verb for a `set` request, another one for `get`; no words for an answer.
    mutating func verb(set: StaticString, get: StaticString) {
        if isType("set") { phrase(set) } else if isType("get") { phrase(get) } else { separate() }
    }

    mutating func append(stanza element: Element) {
        enter(element)
        if element.isNamed("iq") {
            appendIQ(element)
        } else if element.isNamed("presence") {
            appendPresence(element)
        } else if element.isNamed("message") {
            if element.attribute("type", is: "error") { appendError(element, "undelivered") }
            appendChildren(element)
        } else {
            // A nonza in the stream's own namespace, such as a component's handshake.
            appendName(element)
        }
    }

    /// Appends `ok: enables carbons` for an empty answer.
    mutating func done() {
        phrase("ok")
        guard let request = context.request else { return }
        append(": ")
        append(trusted: request.text)
    }

    private mutating func appendIQ(_ iq: Element) {
        let payload = iq.firstChild { !($0.isNamed("error") && $0.namespace == iq.namespace) }
        if iq.attribute("type", is: "error") {
            appendError(iq, "refused")
            if let request = context.request {
                append(": ")
                return append(trusted: request.text)
            }
            guard let payload else { return }
            append(": ")
            return append(name: payload)
        }
        guard let payload else {
            if iq.attribute("type", is: "result") { done() }
            return
        }
        append(payload: payload)
        if isEmpty { appendName(payload) }
    }

    private mutating func appendPresence(_ presence: Element) {
        let type = presence.attribute("type") ?? ""
        // In a room, presence means that a user is in the room or leaves it: the room's payload describes this.
        let isOfRoom =
            (type.isEmpty || type == "unavailable")
            && presence.firstChild { $0.namespace == .mucUser || $0.namespace == .muc } != nil
        if presence.attribute("type", is: "error") {
            appendError(presence, "refused")
        } else if !isOfRoom {
            separate()
            if let literal = Summary.presence(Array(type.utf8).span) {
                append(trusted: literal)
            } else {
                append(text: type)
            }
        }
        // The room's information precedes the client's.
        appendChildren(presence, first: isOfRoom ? .mucUser : nil)
    }

    /// Appends the summaries of the children of a message or presence, beginning with a child in the namespace `first`.
    private mutating func appendChildren(_ element: Element, first: Namespace? = nil) {
        var silent: Element?
        let wasEmpty = isEmpty
        if let first, let child = element.firstChild(where: { $0.namespace == first }) { append(payload: child) }
        element.forEachElement { child in
            guard first == nil || child.namespace != first else { return !isFull }
            let before = byteCount
            append(payload: child)
            if byteCount == before, silent == nil { silent = child }
            return !isFull
        }
        // If all children are of kinds that are omitted beside others, shows the name of the first one.
        if wasEmpty, isEmpty, let silent { appendName(silent) }
    }

    /// Appends `refused by room.example.org`, or `refused (wait)` if the type of the error is unusual for its
    /// condition. The record contains the condition and the text of the error.
    private mutating func appendError(_ stanza: Element, _ literal: StaticString) {
        phrase(literal)
        guard let error = stanza.child("error", stanza.namespace) else { return }
        let condition = error.firstChild { $0.namespace == .stanzaErrors && !$0.isNamed("text") }
        if let type = error.attribute("type"), !Self.isUsual(type, for: condition?.name ?? "") {
            append(inBrackets: type)
        }
        append(after: " by ", text: error.attribute("by"))
        if let own = error.firstChild(where: { $0.namespace != .stanzaErrors && $0.namespace != stanza.namespace }) {
            append(" ")
            append(text: own.name)
        }
    }

    /// Returns whether an error has the usual type for its condition (RFC 6120 §8.3.3).
    private static func isUsual(_ type: String, for condition: String) -> Bool {
        switch condition {
        case "conflict", "gone", "internal-server-error", "item-not-found", "not-allowed", "remote-server-not-found",
            "service-unavailable":
            type == "cancel"
        case "forbidden", "not-authorized", "registration-required", "subscription-required": type == "auth"
        case "bad-request", "jid-malformed", "not-acceptable", "redirect": type == "modify"
        case "recipient-unavailable", "remote-server-timeout", "resource-constraint": type == "wait"
        case "feature-not-implemented": type == "cancel" || type == "modify"
        case "policy-violation", "unexpected-request": type == "modify" || type == "wait"
        default: false
        }
    }
}
