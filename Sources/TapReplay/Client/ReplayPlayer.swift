internal import XMPPCore

/// A client that is played, with the stanzas that it expects.
struct ReplayPlayer<Stanza: Expectable> {
    enum State { case idle, connecting, open, closing, over }

    /// The meaning of an element of stream management (XEP-0198).
    enum Management {
        /// The server asks for an acknowledgement; send these bytes.
        case answer([UInt8])
        /// The server enabled stream management.
        case enabled
        /// Another element that is not compared.
        case ignored
    }

    var state = State.idle
    var expectations = ExpectationSet<Stanza>(mostUnexpected: ReplayFindings.maximumUnexpected)
    var options: OptionalStanzas
    /// For each node, hashes of the contents of the events that the client received.
    private var events: [String: Set<UInt64>] = [:]
    /// For each node, the number of received events that were not recorded.
    private var additionalEvents: [String: Int] = [:]
    /// Number of presence stanzas sent.
    var presences = 0
    /// The id with which the session can be resumed (XEP-0198); nil until the server has sent it.
    var resumptionID: String?
    var isManaged = false
    /// Number of stanzas received since stream management was enabled.
    var handled: UInt32 = 0
    /// The latest step with an item that has arrived; -1 if there is none.
    var lastArrival = -1
    /// Time at which the client last received something, in nanoseconds.
    var lastReceived: Int64 = .min
    /// Whether the server left a request unanswered, and has sent nothing since.
    var isSilent = false
    /// Whether the server asked for capabilities that the recording does not have.
    var lacksCapabilities = false
    /// Number of received bytes of the client's next, incomplete item; nil if no bytes have arrived.
    var incompleteCount: Int?
    /// Whether another client resumes its session.
    var isSuperseded = false
    /// The divergence that explains missing items, and the first step whose item it explains.
    var cause: (divergence: Int, step: Int)?

    init(options: OptionalStanzas) { self.options = options }

    /// Updates the state after the client received an item.
    mutating func recordReceived(at now: Int64) { (lastReceived, isSilent, incompleteCount) = (now, false, nil) }

    /// Stores an event of a node.
    ///
    /// - Returns: Whether an event with the same content was received before.
    mutating func hasReceived(_ event: Element, of node: String) -> Bool {
        var content: [UInt8] = []
        event.firstChild { $0.namespace == .pubsubEvent }?.firstChild?.children.forEach { item in
            for payload in item.children { content += StanzaForm(payload).canonical }
        }
        return !events[node, default: []].insert(Hash.of(content.span, seed: 1)).inserted
    }

    /// Counts an event that was not recorded.
    ///
    /// - Returns: Whether the event may announce an item that was published before the replay. A server sends the last
    ///   item of a node when a client sends presence (XEP-0163 §4.3.2).
    mutating func isEarlier(_ node: String) -> Bool {
        additionalEvents[node, default: 0] += 1
        return additionalEvents[node, default: 0] <= max(presences, 1)
    }

    /// Handles an element of stream management; returns nil for other elements, which are compared.
    mutating func manage(_ element: Element) -> Management? {
        guard element.namespace == .streamManagement || element.namespace == .streamManagement2 else { return nil }
        switch element.name {
        case "r":
            return .answer(XMLWriter.bytes { $0.element("a", element.namespace, ["h": String(handled)]) })
        case "a": return .ignored
        case "enabled":
            isManaged = true
            resumptionID = element.attribute("id")
            return .enabled
        default: return nil
        }
    }
}

/// Ping requests whose answers show that the server has handled everything that the client sent before (RFC 6120
/// §10.1).
struct OrderPings {
    /// For each id of a request, the client that sent the request.
    private var clients: [String: Int] = [:]

    var isEmpty: Bool { clients.isEmpty }

    /// The divergence that is reported if a request of a recorded client was not answered.
    static var unanswered: Divergence {
        var note = Divergence(.optional, .missing, message: "another client's next stanza may have been handled first")
        note.subject = DivergenceSubject("the server did not answer a ping that keeps the order of clients")
        return note
    }

    /// Returns a ping request to send. A server that does not support pings answers with an error, which serves the
    /// same purpose.
    mutating func request(_ client: Int, id: String) -> [UInt8] {
        clients[id] = client
        return XMLWriter.bytes { $0.element("iq", ["type": "get", "id": id]) { $0.element("ping", .ping) } }
    }

    /// Returns whether a received stanza answers one of the requests.
    mutating func receive(_ stanza: StanzaForm) -> Bool {
        guard !clients.isEmpty, stanza.kind == .iq, let id = stanza.id else { return false }
        return clients.removeValue(forKey: id) != nil
    }

    /// Removes the requests of a client.
    mutating func forget(_ client: Int) { clients = clients.filter { $0.value != client } }

    /// Removes all requests.
    ///
    /// - Returns: The clients of the requests, in ascending order.
    mutating func removeAll() -> [Int] {
        defer { clients = [:] }
        return Set(clients.values).sorted()
    }
}

/// The origin of a compared stanza: a step of the script, or a received item.
enum ReplayTag {
    case step(Int)
    /// A received item. The case is indirect to keep the enumeration small: a long script has many steps.
    indirect case live([UInt8], number: UInt64, at: Int64, after: Int64)
}

/// The times at which stanzas were sent, in nanoseconds.
struct SentTimes {
    /// A request that was sent and not answered yet.
    struct Request {
        let at: Int64
        let step: Int
    }

    /// Unanswered requests, by the indices in ``ReplayScript/Sendings/requests``.
    private var requests: [Request?]
    /// Times at which messages and presence were sent to other clients, by the numbers of their ids.
    private var deliveries: [Int64?]

    init(_ sendings: ReplayScript.Sendings) {
        requests = [Request?](repeating: nil, count: sendings.requests.count)
        deliveries = [Int64?](repeating: nil, count: sendings.templates.ids.count)
    }

    /// Stores the time at which the item of a step was sent.
    mutating func record(_ sending: ReplayScript.Sendings.Sending, _ step: Int, at now: Int64) {
        if let request = sending.request { requests[Int(request)] = Request(at: now, step: step) }
        if sending.isDelivery, let id = sending.id { deliveries[Int(id)] = now }
    }

    /// Removes and returns the request that a received stanza answers; nil if it answers none.
    mutating func request(
        answeredBy live: StanzaForm,
        _ client: Int,
        _ sendings: ReplayScript.Sendings,
        _ bindings: ValueBindings
    ) -> Request? {
        guard live.type == "result" || live.type == "error", let id = live.id.flatMap({ bindings.number(ofLive: $0) }),
            let number = sendings.requests[.init(client: client, id: id)]
        else { return nil }
        defer { requests[number] = nil }
        return requests[number]
    }

    /// Returns when another client sent a received message or presence; nil if none did.
    func time(of live: StanzaForm, _ bindings: ValueBindings) -> Int64? {
        guard live.kind == .message || live.kind == .presence, live.type != "error" else { return nil }
        return live.id.flatMap { bindings.number(ofLive: $0) }.flatMap { deliveries[$0] }
    }
}
