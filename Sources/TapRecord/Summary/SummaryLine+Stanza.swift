import XMPPCore

// Stanzas: what their kind and type say, then what each child says.
extension SummaryLine {
    /// Whether the stanza that is told is an iq of that type.
    func isType(_ type: StaticString) -> Bool { stanza?.attribute("type", is: type) ?? false }

    /// Whether the stanza is a request, `get` or `set`.
    var isRequest: Bool { isType("get") || isType("set") }

    /// A verb for a request that sets, another for one that gets; nothing for an answer.
    mutating func verb(set: StaticString, get: StaticString) {
        if isType("set") { phrase(set) } else if isType("get") { phrase(get) } else { asymmetric() }
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
            // A nonza of the stream's own namespace, such as a component's handshake.
            appendName(element)
        }
    }

    /// `ok: enables carbons`, of an answer that holds nothing.
    mutating func done() {
        phrase("ok")
        guard let request = context.request else { return }
        append(": ")
        append(words: request.text)
    }

    private mutating func appendIQ(_ iq: Element) {
        let payload = iq.firstChild { !($0.isNamed("error") && $0.namespace == iq.namespace) }
        if iq.attribute("type", is: "error") {
            appendError(iq, "refused")
            if let request = context.request {
                append(": ")
                return append(words: request.text)
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
        // In a room, being available means more: the room's own words say it.
        let isOfRoom =
            (type.isEmpty || type == "unavailable")
            && presence.firstChild { $0.namespace == .mucUser || $0.namespace == .muc } != nil
        if presence.attribute("type", is: "error") {
            appendError(presence, "refused")
        } else if !isOfRoom {
            asymmetric()
            if let words = Summary.presence(Array(type.utf8).span) { append(words: words) } else { append(text: type) }
        }
        // What the room says comes before what the client added to it.
        appendChildren(presence, first: isOfRoom ? .mucUser : nil)
    }

    /// What each child of a message or presence says, those first that say what it is.
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
        // All its children are such as are passed over beside others: then they are what it is.
        if wasEmpty, isEmpty, let silent { appendName(silent) }
    }

    /// `refused (auth), by room.example.org`; the condition and the text of an error stand in the record.
    private mutating func appendError(_ stanza: Element, _ words: StaticString) {
        phrase(words)
        guard let error = stanza.child("error", stanza.namespace) else { return }
        if let type = error.attribute("type") {
            append(" (")
            append(text: type)
            append(")")
        }
        append(after: " by ", text: error.attribute("by"))
        if let own = error.firstChild(where: { $0.namespace != .stanzaErrors && $0.namespace != stanza.namespace }) {
            append(" ")
            append(text: own.name)
        }
    }
}
