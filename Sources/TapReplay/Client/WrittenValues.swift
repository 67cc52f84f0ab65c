internal import XMPPCore

/// The values that recorded clients stored on the server: in cards, rosters, block lists, private storage and nodes.
///
/// If a server later returns another value instead of one of these, the cause is not the data that it had before the
/// recording.
struct WrittenValues: Sendable {
    private struct Key: Hashable {
        let namespace: Namespace
        let value: String
    }

    /// For each value, the first step that stores it.
    private var steps: [Key: Int] = [:]

    init(_ steps: [ReplayScript.Step], _ items: [RecordedItem]) {
        let parser = StanzaParser()
        for (index, step) in steps.enumerated() {
            guard case .send(_, let number) = step, items[number].kind == .iq, items[number].type == "set",
                Self.isStored(items[number].payloadNamespace), let bytes = items[number].seen,
                let payload = (try? parser.parse(bytes.span, root: items[number].root))?.firstChild
            else { continue }
            Self.forEachValue(in: payload, isQuery: Self.isArchive(payload.namespace)) { value in
                let key = Key(namespace: payload.namespace, value: value)
                self.steps[key] = self.steps[key] ?? index
            }
        }
    }

    private static func isStored(_ namespace: Namespace) -> Bool {
        switch namespace {
        case .roster, .vCard, .vCard4, .privateStorage, .blocking, .privacy, .pubsub: true
        default: isArchive(namespace)
        }
    }

    private static func isList(_ namespace: Namespace) -> Bool {
        namespace == .roster || namespace == .blocking || namespace == .privacy
    }

    /// Whether requests query an archive. Archives are not compared, but a query has an id that its results repeat
    /// (XEP-0313 §4.2).
    private static func isArchive(_ namespace: Namespace) -> Bool {
        namespace == .archive || namespace == .archive1 || namespace == .archive0
    }

    /// Calls `body` with the values of the attributes and the texts of an element and its descendants; if `isQuery`, only
    /// with the id of a query.
    private static func forEachValue(in element: Element, isQuery: Bool, depth: Int = 0, _ body: (String) -> Void) {
        guard depth < StanzaForm.maximumDepth else { return }
        func use(_ value: String) {
            // Many elements contain a flag.
            if !value.isEmpty, !["0", "1", "true", "false"].contains(value) { body(value) }
        }
        element.forEachAttribute { name, _, value in
            if !isQuery || name.equals("queryid") { use(value.string()) }
        }
        guard !isQuery else { return }
        guard element.firstChild != nil else { return use(element.text) }
        for child in element.children { forEachValue(in: child, isQuery: false, depth: depth + 1, body) }
    }

    /// Returns whether one of the differing values of the recorded stanza was stored by a client before the step in which
    /// the stanza was received.
    func explain(_ differences: [ValueDifference], in recorded: StanzaForm?, before step: Int) -> Bool {
        guard !steps.isEmpty, let namespace = recorded?.payload?.namespace else { return false }
        let parser = StanzaParser()
        return differences.contains { difference in
            guard let text = difference.recorded else { return false }
            func isWritten(_ value: String) -> Bool {
                steps[Key(namespace: namespace, value: value)].map { $0 < step } ?? false
            }
            // A missing element is described by its XML; any other difference by its value.
            guard difference.reason == .missing, let element = StanzaForm(Array(text.utf8), parser: parser)?.element
            else {
                return isWritten(text)
            }
            // Entries of a list have groups and names in common; the address shows which one it is.
            if Self.isList(namespace) {
                return (element.attribute("jid") ?? element.attribute("value")).map(isWritten) ?? false
            }
            var isFound = false
            Self.forEachValue(in: element, isQuery: false) { isFound = isFound || isWritten($0) }
            return isFound
        }
    }
}
