internal import XMPPCore

/// The data that a recorded server had stored before the recorded clients published anything.
struct EarlierData: Sendable {
    /// A group of PubSub nodes (XEP-0060) of one account or service. The server may copy an item from one node of the
    /// group to the others.
    private struct Nodes: Hashable {
        let owner: String
        let node: String
    }

    /// The first step in which a client publishes to each node. Nodes with a recorded event before that step are
    /// left out.
    private var firstPublications: [String: Int] = [:]
    /// The nodes with recorded events, each as the bare JID of the sender, a space and the node.
    private var recordedEvents: Set<String> = []
    /// The first step that publishes to each owner's group of nodes.
    private var publications: [Nodes: Int] = [:]
    /// For each client, the nodes of contacts and of the client's account whose items it received in events.
    private var received: [Int: Set<String>] = [:]
    /// The first step in which a client publishes an avatar; nil if no client does.
    private var firstAvatar: Int?
    /// The hashes of avatars that clients sent in their presence (XEP-0153 §4).
    private var sentHashes: Set<String> = []

    /// Groups of namespaces whose nodes share their content: vCard, avatar and nickname (XEP-0398, XEP-0292), and
    /// bookmarks (XEP-0411).
    private static let groups: [[Namespace]] = [
        [.vCard, .vCard4, .avatarMetadata, .avatarData, .nick], [.bookmarksStorage, .bookmarks],
    ]

    init(_ steps: [ReplayScript.Step], _ items: [RecordedItem], _ clients: [ReplayScript.Client]) {
        let parser = StanzaParser()
        func element(_ item: RecordedItem) -> Element? {
            (item.sent ?? item.seen).flatMap { try? parser.parse($0.span, root: item.root) }
        }
        let updates = Array(Namespace.vCardUpdate.uri.description.utf8)
        var withEarlierEvents: Set<String> = []
        for (index, step) in steps.enumerated() {
            switch step {
            case .send(let client, let number) where items[number].kind == .iq && items[number].type == "set":
                let item = items[number]
                guard Self.mayPublish(item.payloadNamespace), let stanza = element(item),
                    let node = Self.publishedNode(stanza)
                else { continue }
                for event in Self.eventNodes(of: node, item.payloadNamespace) {
                    firstPublications[event] = firstPublications[event] ?? index
                }
                let owner = item.to.map { Address($0).comparableBare } ?? clients[client].account.normalized.description
                let nodes = Nodes(owner: owner, node: Self.group(node))
                publications[nodes] = publications[nodes] ?? index
                if nodes.node == Self.group(Namespace.avatarMetadata.uri.description) {
                    firstAvatar = firstAvatar ?? index
                }
            case .send(_, let number) where items[number].kind == .presence:
                guard let bytes = items[number].sent ?? items[number].seen, bytes.span.contains(updates.span) else {
                    continue
                }
                let update = element(items[number])?.child("x", .vCardUpdate)
                if let hash = update?.child("photo", .vCardUpdate)?.text, !hash.isEmpty { sentHashes.insert(hash) }
            case .expect(let client, let number) where items[number].payloadNamespace == .pubsubEvent:
                guard let event = element(items[number]).map(StanzaForm.init), let items = event.eventItems,
                    items.isNamed("items"), let node = items.attribute("node")
                else { continue }
                recordedEvents.insert(Self.event(of: node, event.from))
                if firstPublications[node] == nil { withEarlierEvents.insert(node) }
                if event.publishedItems != nil { received[client, default: []].insert(node) }
            default: continue
            }
        }
        for node in withEarlierEvents { firstPublications[node] = nil }
    }

    private static func mayPublish(_ namespace: Namespace) -> Bool {
        switch namespace {
        case .pubsub, .vCard, .vCard4, .privateStorage: true
        default: false
        }
    }

    /// Returns the node to which a request publishes; for a vCard and for private XML storage, the namespace of the
    /// data.
    private static func publishedNode(_ stanza: Element) -> String? {
        guard let payload = stanza.firstChild else { return nil }
        switch payload.namespace {
        case .pubsub: return payload.child("publish", .pubsub)?.attribute("node")
        case .privateStorage: return payload.firstChild?.namespaceURI
        default: return payload.namespaceURI
        }
    }

    /// Returns the nodes whose events a server may send after a publication to `node`: the avatar nodes for a vCard
    /// (XEP-0398 §2), none for a vCard4, otherwise the node itself. For bookmarks in private storage, the node is their
    /// namespace (XEP-0411 §2).
    private static func eventNodes(of node: String, _ payload: Namespace) -> [String] {
        switch payload {
        case .vCard: [Namespace.avatarMetadata.uri.description, Namespace.avatarData.uri.description]
        case .vCard4: []
        default: [node]
        }
    }

    private static func event(of node: String, _ from: String?) -> String {
        "\((from ?? "").prefix { $0 != "/" }) \(node)"
    }

    /// Returns the name of the group that contains a node; the node itself if no group contains it.
    private static func group(_ node: String) -> String {
        let group = groups.first { $0.contains { $0.uri.description == node } }
        return group?.first?.uri.description ?? node
    }

    /// The message for an event of an item that may have been published before the replay.
    static let earlierEvent = "an event of an item that may have been published before the replay"

    /// Returns the node of an event, and the first step in which a client publishes to the node; the step is nil if it
    /// is unknown. Returns nil for other stanzas, and if the step is unknown but events of the node were recorded.
    ///
    /// - Parameter address: Converts an address of the event to the recorded address.
    func publication(
        of event: StanzaForm,
        _ address: (String) -> String = { $0 }
    ) -> (node: String, step: Int?)? {
        guard let node = event.eventItems?.attribute("node") else { return nil }
        let step = firstPublications[node]
        if step == nil, recordedEvents.contains(Self.event(of: node, event.from.map(address))) { return nil }
        return (node, step)
    }

    /// Returns whether a recorded event announces an item that was published before the recording: when the event
    /// arrived, no client had published to the node. A server sends the last item of a node when a client sends
    /// presence (XEP-0163 §4.3.2).
    func isEarlier(_ event: StanzaForm, at step: Int, receivedBy account: JID) -> Bool {
        guard let node = event.publishedItems else { return false }
        let owner = event.from.map { Address($0).comparableBare } ?? account.normalized.description
        return publications[Nodes(owner: owner, node: Self.group(node))].map { step < $0 } ?? true
    }

    /// Returns whether all differences between two presence stanzas are avatar hashes that the server adds (XEP-0398
    /// §3): no client published an avatar before the step, and no client sent the recorded hash.
    func isEarlierAvatar(_ differences: [ValueDifference], at step: Int) -> Bool {
        let isBefore = firstAvatar.map { step < $0 } ?? true
        return isBefore && !differences.isEmpty
            && differences.allSatisfy {
                $0.path.hasSuffix("{\(Namespace.vCardUpdate.uri)}x/photo/text()")
                    && !($0.recorded.map(sentHashes.contains) ?? false)
            }
    }

    /// Returns features (XEP-0030) for a client whose answer was not recorded, because the recorded server already knew
    /// its capabilities: a `+notify` feature for each node whose events the client received (XEP-0163 §4.3). Empty if
    /// the client received no events.
    func features(of client: Int) -> [String] {
        (received[client] ?? []).sorted().map { "\($0)+notify" }
    }
}

extension Divergence {
    /// Assigns a divergence of PubSub events to the class `state`. Used for a client without recorded capabilities: the
    /// capabilities determine which events the client receives (XEP-0163 §4.3).
    mutating func allowOtherEvents(_ stanza: StanzaForm?) {
        guard divergenceClass == .behaviour, stanza?.payload?.namespace == .pubsubEvent else { return }
        divergenceClass = .state
        message = "the recording lacks the capabilities of the client, which its server knew already"
    }
}

extension StanzaForm {
    /// The child element of a PubSub event, such as `<items/>` (XEP-0060 §7.1.2); nil for other stanzas.
    fileprivate var eventItems: Element? {
        guard kind == .message else { return nil }
        return element.child("event", .pubsubEvent)?.firstChild
    }

    /// The node of an event that publishes items (XEP-0060 §7.1.2.1); nil for other stanzas.
    fileprivate var publishedItems: String? {
        guard let items = eventItems, items.isNamed("items"), items.child("item", .pubsubEvent) != nil else {
            return nil
        }
        return items.attribute("node")
    }
}
