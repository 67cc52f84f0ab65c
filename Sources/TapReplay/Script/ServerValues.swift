internal import TapRecord
internal import XMPPCore

/// The values of recorded stanzas that a server made, so that they differ in each run: ids of archived messages and of
/// published items, upload URLs, tokens. A script cannot send them back, because its language has no variables for them.
struct ServerValues {
    /// The place of an item in the recording.
    struct Place: Comparable {
        let run: Int
        let sequence: UInt64

        init(_ conversation: RecordedConversation, _ item: RecordedItem) {
            (run, sequence) = (conversation.run, item.sequence)
        }

        static func < (left: Place, right: Place) -> Bool {
            (left.run, left.sequence) < (right.run, right.sequence)
        }
    }

    private let rules: NoiseRules
    /// The full JIDs of the clients.
    private let clients: Set<String>
    /// The place of the first stanza in which a client received each value.
    private var values: [String: Place] = [:]
    /// Ids of archived messages, of any length. They are recognised only in places that contain archive ids.
    private var archiveIDs: Set<String> = []
    /// For each value, the place of the first unsendable `set` request that contains it.
    private var changes: [String: Place] = [:]

    /// Collects the values of conversations. A value that a client sent before the server did is not server-generated.
    init(_ conversations: [RecordedConversation], rules: NoiseRules) {
        self.rules = rules
        clients = Set(conversations.compactMap { $0.jid?.description })
        let parser = StanzaParser()
        func forEachStanza(_ direction: Direction, _ body: (Element, Place) -> Void) {
            for conversation in conversations {
                for item in conversation.items where item.direction == direction && item.origin == .peer {
                    guard let stanza = item.stanza(parser) else { continue }
                    body(stanza, Place(conversation, item))
                }
            }
        }
        forEachStanza(.recv) { stanza, place in collect(stanza, at: place) }
        guard !values.isEmpty || !archiveIDs.isEmpty else { return }
        forEachStanza(.send) { stanza, place in
            Self.visit(stanza, rules) { value, _ in
                if let received = values[value], place < received { values[value] = nil }
            }
        }
        forEachStanza(.send) { stanza, place in
            guard stanza.attribute("type", is: "set"), isUnsendable(stanza) else { return }
            Self.visit(stanza, rules) { value, _ in
                if values[value] != nil { changes[value] = min(changes[value] ?? place, place) }
            }
        }
    }

    private mutating func collect(_ stanza: Element, at place: Place) {
        Self.visit(stanza, rules) { value, action in
            guard case .bind(let valueClass)? = action, !value.isEmpty else { return }
            switch valueClass {
            case .archiveID: archiveIDs.insert(value)
            case .token, .url, .exchangeID: break
            // An item with an address as its id is about that address.
            case .itemID where !value.contains("@"): break
            default: return
            }
            guard value.utf8.count >= ValueClass.serverValueSize, !Self.isHash(value) else { return }
            values[value] = min(values[value] ?? place, place)
        }
    }

    /// Returns whether a value is the SHA-1 of an avatar (XEP-0084 §4.2.1, XEP-0153 §4.1), which is the same in each run.
    private static func isHash(_ value: String) -> Bool {
        value.utf8.count == 40 && value.utf8.allSatisfy { $0 < 0x80 && Character(Unicode.Scalar($0)).isHexDigit }
    }

    /// Returns whether a stanza contains one of the values.
    func occur(in stanza: Element) -> Bool {
        guard !values.isEmpty || !archiveIDs.isEmpty else { return false }
        var isFound = false
        Self.visit(stanza, rules) { value, action in
            if values[value] != nil {
                isFound = true
            } else if case .bind(.archiveID)? = action, archiveIDs.contains(value) {
                isFound = true
            }
        }
        return isFound
    }

    /// Returns whether a stanza is a request to a server that contains one of the values. Requests to played clients do
    /// not count, because clients accept the recorded values.
    func isUnsendable(_ stanza: Element) -> Bool {
        stanza.stanzaKind == .iq && (stanza.attribute("type", is: "get") || stanza.attribute("type", is: "set"))
            && stanza.attribute("to").map(clients.contains) != true && occur(in: stanza)
    }

    /// Returns whether a received stanza follows from an unsendable `set` request: it contains a value of the request.
    func isEffect(_ stanza: Element, at place: Place) -> Bool {
        guard !changes.isEmpty else { return false }
        var isFound = false
        Self.visit(stanza, rules) { value, _ in
            if let change = changes[value], change < place { isFound = true }
        }
        return isFound
    }

    /// Calls `body` with each attribute value and its rule, and with the text of each element without children and the
    /// rule for this text.
    private static func visit(
        _ element: Element,
        path: [Element] = [],
        _ rules: NoiseRules,
        _ body: (String, NoiseRules.Action?) -> Void
    ) {
        let path = path + [element]
        let found = rules.found(path)
        for attribute in element.attributes { body(attribute.value, rules.action(for: attribute, found)) }
        guard element.firstChild != nil else { return body(element.text, rules.action(.text, found)) }
        for child in element.children { visit(child, path: path, rules, body) }
    }
}

/// The requests of a client that a script leaves out, with which their answers can be found.
struct OmittedRequests {
    private var ids: Set<String> = []
    /// The ids of archive queries (XEP-0313 §4.1); an empty text for a query without an id.
    private var queries: Set<String> = []

    /// Updates the state for a stanza that the client sends. A later request may reuse the id of one that was left out.
    mutating func follow(_ stanza: Element, isOmitted: Bool) {
        guard isOmitted || !ids.isEmpty, stanza.stanzaKind == .iq, let id = stanza.attribute("id") else { return }
        let query = Self.archiveQuery(stanza)
        if isOmitted {
            ids.insert(id)
            if let query { queries.insert(query) }
        } else {
            ids.remove(id)
            if let query { queries.remove(query) }
        }
    }

    /// Returns whether a received stanza answers one of the requests.
    func isAnswer(_ stanza: Element) -> Bool {
        switch stanza.stanzaKind {
        case .iq:
            (stanza.attribute("type", is: "result") || stanza.attribute("type", is: "error"))
                && stanza.attribute("id").map(ids.contains) == true
        case .message: Self.archiveQuery(stanza).map(queries.contains) == true
        default: false
        }
    }

    /// Returns the id of the archive query to which a stanza belongs; nil for other stanzas.
    private static func archiveQuery(_ stanza: Element) -> String? {
        let payload = stanza.firstChild { [.archive, .archive1, .archive0].contains($0.namespace) }
        return payload.map { $0.attribute("queryid") ?? "" }
    }
}

extension RecordedItem {
    /// Returns the stanza as the server knows it; nil if the item is not a stanza, or did not reach the server.
    func stanza(_ parser: StanzaParser) -> Element? {
        guard kind != .nonza, kind != .end else { return nil }
        return atServer().flatMap { try? parser.parse($0.span, root: root) }
    }
}
