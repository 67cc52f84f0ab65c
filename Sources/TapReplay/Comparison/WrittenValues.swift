internal import XMPPCore

/// The values that recorded clients stored on the server: in cards, rosters, block lists, private storage and nodes.
///
/// If a server later returns another value instead of one of these, the cause is not the data that it had before the
/// recording. Values are kept as hashes, because a recording may have millions of stanzas.
package struct WrittenValues: Sendable {
    /// A position in a recording that may have several runs.
    struct Moment: Comparable {
        let run: Int
        let number: UInt64

        static func < (left: Moment, right: Moment) -> Bool { (left.run, left.number) < (right.run, right.number) }
    }

    private let names: AddressNames
    /// For each value, the first time that it was stored.
    private var moments: [UInt64: Moment] = [:]
    /// The runs of the recording in their order.
    private var runs = ["": 0]

    /// Creates an empty set.
    ///
    /// - Parameter names: The names that the compared recordings share: equal values in both get equal hashes.
    init(names: AddressNames) { self.names = names }

    /// Creates an empty set for recordings with the same accounts.
    package init() { names = AddressNames() }

    /// Begins a part of a recording.
    mutating func begin(run: String) {
        if runs[run] == nil { runs[run] = runs.count }
    }

    /// Returns a position in a run: the number of a step or of a record.
    func moment(_ number: UInt64, run: String = "") -> Moment { Moment(run: runs[run] ?? .max, number: number) }

    /// Adds the values of a request that a client sent; other stanzas add nothing.
    mutating func add(_ stanza: Element, at moment: Moment) {
        guard stanza.stanzaKind == .iq, stanza.attribute("type") == "set", let payload = stanza.firstChild,
            Self.isStored(payload.namespace)
        else { return }
        Self.forEachValue(in: payload, isQuery: Self.isArchive(payload.namespace)) { value in
            let key = key(value, payload.namespace)
            moments[key] = min(moments[key] ?? moment, moment)
        }
    }

    private func key(_ value: String, _ namespace: Namespace) -> UInt64 {
        let seed = UInt64(namespace.rawValue)
        let bytes = value.utf8Span.span
        return names.shared(bytes).map { Hash.of($0.span, seed: seed) } ?? Hash.of(bytes, seed: seed)
    }

    static func isStored(_ namespace: Namespace) -> Bool {
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

    /// Returns whether one of the differing values of the recorded stanza was stored by a client before the stanza was
    /// received.
    ///
    /// - Parameter live: The values that the clients of another recording stored, and when its stanza was received. They
    ///   must have stored the value too. Nil if the recorded clients are played.
    func explain(
        _ differences: [ValueDifference],
        in recorded: StanzaForm?,
        before moment: Moment,
        live: (values: WrittenValues, moment: Moment)? = nil
    ) -> Bool {
        guard !moments.isEmpty, let namespace = recorded?.payload?.namespace else { return false }
        let parser = StanzaParser()
        return differences.contains { difference in
            guard let text = difference.recorded else { return false }
            func isWritten(_ value: String) -> Bool {
                let key = key(value, namespace)
                guard let first = moments[key], first < moment else { return false }
                return live.map { live in live.values.moments[key].map { $0 < live.moment } ?? false } ?? true
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
