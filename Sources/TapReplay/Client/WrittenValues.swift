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
            add(payload, payload.namespace, at: index, depth: 0)
        }
    }

    private static func isStored(_ namespace: Namespace) -> Bool {
        switch namespace {
        case .roster, .vCard, .vCard4, .privateStorage, .blocking, .privacy, .pubsub: true
        // The archive itself is not compared, but a query has an id that its results repeat (XEP-0313 §4.2).
        case .archive, .archive1, .archive0: true
        default: false
        }
    }

    private mutating func add(_ element: Element, _ namespace: Namespace, at step: Int, depth: Int) {
        guard depth < StanzaForm.maximumDepth else { return }
        let isQuery = namespace == .archive || namespace == .archive1 || namespace == .archive0
        element.forEachAttribute { name, _, value in
            guard !isQuery || name.equals("queryid") else { return }
            add(value.string(), namespace, at: step)
        }
        guard !isQuery else { return }
        guard element.firstChild != nil else { return add(element.text, namespace, at: step) }
        for child in element.children { add(child, namespace, at: step, depth: depth + 1) }
    }

    private mutating func add(_ value: String, _ namespace: Namespace, at step: Int) {
        // Many elements contain a flag.
        guard !value.isEmpty, !["0", "1", "true", "false"].contains(value) else { return }
        let key = Key(namespace: namespace, value: value)
        steps[key] = steps[key] ?? step
    }

    /// Returns whether one of the differing values of the recorded stanza was stored by a client before the step in which
    /// the stanza was received.
    func explain(_ differences: [ValueDifference], in recorded: StanzaForm?, before step: Int) -> Bool {
        guard !steps.isEmpty, let namespace = recorded?.payload?.namespace else { return false }
        return differences.contains { difference in
            guard let text = difference.recorded else { return false }
            // A missing element is described by its XML; any other difference by its value.
            guard difference.reason == .missing, text.hasPrefix("<") else {
                return steps[Key(namespace: namespace, value: text)].map { $0 < step } ?? false
            }
            return steps.contains { key, written in
                key.namespace == namespace && written < step
                    && (text.contains("\"\(key.value)\"") || text.contains(">\(key.value)<"))
            }
        }
    }
}
