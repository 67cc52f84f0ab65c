internal import XMPPCore

extension ReplayScript.Maker {
    /// Sorts the steps as the server handled them: by arrival, corrected by the stanzas that show another order.
    mutating func sort() {
        places.sort { ($0.run, $0.at, $0.sequence, $0.order) < ($1.run, $1.at, $1.sequence, $1.order) }
        moveEndings()
        restoreOrder()
    }

    /// Keeps the order in which the server handled stanzas of different clients, such as two clients that leave a room
    /// at the same moment: the later stanza waits until the server has handled the earlier one, unless a stanza
    /// received in between shows that it has.
    ///
    /// Call this function after the steps are sorted.
    mutating func keepOrder() {
        var sent = UnconfirmedStanzas(clients)
        /// Pairs of a place and a client: before this place, the server must have handled all stanzas of the client.
        var settled: [(place: Int, client: Int)] = []
        /// The ids of the stanzas that each client has sent since it last received something.
        var unanswered: [Int: Set<String>] = [:]
        func end(_ client: Int) {
            let answers = (unanswered[client] ?? []).map { ReplayScript.Echo.answer(id: $0) }
            echoes[client] = sent.echoes(of: client).union(answers)
            sent.forget(client)
        }
        for (number, place) in places.enumerated() {
            switch place.step {
            case .send(let client, let item):
                guard items[item].atServer() != nil else { break }
                let stanza = sent.stanza(items[item], of: client, at: number)
                for other in Set(sent.earlier(than: stanza).map(\.client)).sorted() {
                    settled.append((number, other))
                    sent.forget(other)
                }
                sent.add(stanza)
                if !items[item].isAnswer, let id = items[item].id { unanswered[client, default: []].insert(id) }
            case .close(let client):
                for other in sent.clients(beforeEndOf: client) {
                    settled.append((number, other))
                    sent.forget(other)
                }
                end(client)
            case .expect(let client, let item):
                sent.confirm(items[item], receivedBy: client)
                unanswered[client] = nil
            case .drop(let client): end(client)
            case .end(let client): sent.forget(client)
            case .connect(let client): sent.connect(client)
            case .prepare, .awaitHandling: break
            }
        }
        guard !settled.isEmpty else { return }
        var ordered: [Place] = []
        ordered.reserveCapacity(places.count + settled.count)
        var rest = settled[...]
        for (number, place) in places.enumerated() {
            while let next = rest.first, next.place == number {
                var step = place
                step.step = .awaitHandling(next.client)
                ordered.append(step)
                rest.removeFirst()
            }
            ordered.append(place)
        }
        places = ordered
    }

    /// Reorders stanzas that the server handled in another order than they were recorded, because their clients use
    /// different connections. If a third client received both stanzas, its recording shows the order.
    private mutating func restoreOrder() {
        var sent = UnconfirmedStanzas(clients)
        for number in places.indices {
            switch places[number].step {
            case .send(let client, let item):
                guard items[item].atServer() != nil else { break }
                var stanza = sent.stanza(items[item], of: client, at: number)
                for earlier in sent.earlier(than: stanza).sorted(by: { $0.place > $1.place })
                where !sent.isAmbiguous(earlier) && !sent.isAmbiguous(stanza) && isHandled(stanza, before: earlier) {
                    guard !places[earlier.place..<stanza.place].contains(where: { $0.step.client == client }) else {
                        break
                    }
                    var moved = places.remove(at: stanza.place)
                    moved.at = places[earlier.place].at
                    places.insert(moved, at: earlier.place)
                    sent.shift(earlier.place..<stanza.place)
                    stanza.place = earlier.place
                }
                if stanza.place == number { moveEarlier(than: &stanza, &sent) }
                sent.add(stanza)
            case .expect(let client, let item): sent.confirm(items[item], receivedBy: client)
            case .close(let client), .end(let client), .drop(let client): sent.forget(client)
            case .connect(let client): sent.connect(client)
            case .prepare, .awaitHandling: break
            }
        }
    }

    /// Moves an earlier message to a client after a request of this client, if the client received the answer before
    /// the message: the server handled the message later than it was sent.
    private mutating func moveEarlier(than request: inout UnconfirmedStanzas.Stanza, _ sent: inout UnconfirmedStanzas) {
        guard request.isChange else { return }
        for earlier in sent.earlier(than: request).sorted(by: { $0.place > $1.place })
        where isAnswered(request, before: earlier) {
            let last = request.place
            let between = places[earlier.place...request.place].dropFirst()
            guard !between.contains(where: { $0.step.client == earlier.client }) else { continue }
            var moved = places.remove(at: earlier.place)
            moved.at = places[last - 1].at
            places.insert(moved, at: last)
            sent.move(earlier, to: last)
            request.place = last - 1
            return
        }
    }

    /// Returns whether a client received the answer to its request before the earlier message.
    private func isAnswered(_ request: UnconfirmedStanzas.Stanza, before earlier: UnconfirmedStanzas.Stanza) -> Bool {
        guard earlier.isMessage, let id = earlier.id else { return false }
        var isAnswered = false
        let most = 1024
        for place in places[request.place...].dropFirst().prefix(most) {
            guard case .expect(request.client, let number) = place.step else { continue }
            let item = items[number]
            if item.isAnswer, item.id == request.id { isAnswered = true }
            if item.kind == .message, item.type != "error", item.id == id { return isAnswered }
        }
        return false
    }

    /// Returns whether a client received the later stanza before the earlier one.
    private func isHandled(_ later: UnconfirmedStanzas.Stanza, before earlier: UnconfirmedStanzas.Stanza) -> Bool {
        guard later.isSeenByOthers, earlier.isSeenByOthers else { return false }
        var receivers: Set<Int> = []
        let most = 1024
        for place in places[later.place...].dropFirst().prefix(most) {
            guard case .expect(let receiver, let item) = place.step else { continue }
            if later.isDelivered(by: items[item]) {
                receivers.insert(receiver)
            } else if earlier.isDelivered(by: items[item]) {
                // The first client that received both stanzas determines the order.
                if receivers.contains(receiver) { return true }
                if receiver != earlier.client, receiver != later.client { return false }
            }
        }
        return false
    }
}

/// The stanzas that clients have sent, and that the server is not yet known to have handled.
private struct UnconfirmedStanzas {
    struct Stanza {
        /// The index of its client.
        let client: Int
        /// The index of the stanza's place in the order of the steps.
        var place: Int
        let id: String?
        /// The recipient; nil for the account of the sender, or its server.
        let to: String?
        /// The recipient without its resource.
        let bare: String?
        /// Whether several clients can receive it: presence of the client or its occupant, and messages to a room.
        let isSeenByOthers: Bool
        /// Whether the stanza does not affect other clients: an iq `get`, an answer, or a nonza.
        let isQuery: Bool
        private let kind: RecordedItem.Kind
        private let type: String?
        /// The address that other clients see as its sender: an occupant JID in a room (XEP-0045), or the full JID.
        private let from: String

        /// - Parameter isOccupant: Whether it is presence in a room.
        fileprivate init(
            _ item: RecordedItem,
            of client: ReplayScript.Client,
            _ index: Int,
            at place: Int,
            isOccupant: Bool
        ) {
            (self.client, self.place) = (index, place)
            (id, kind, type) = (item.id, item.kind, item.type)
            let own = [client.account.description, client.account.domain]
            to = item.to.flatMap { own.contains($0) ? nil : $0 }
            bare = to.map { String($0.prefix { $0 != "/" }) }
            from = isOccupant ? to ?? "" : client.jid.description
            let isAvailability = kind == .presence && (type == nil || type == "unavailable")
            let isGroupChat = kind == .message && type == "groupchat" && id != nil
            isSeenByOthers = isAvailability && (isOccupant || to == nil) || isGroupChat
            isQuery = item.kind == .nonza || item.isAnswer || item.kind == .iq && item.type == "get"
        }

        var isPresence: Bool { kind == .presence }
        var isMessage: Bool { kind == .message }
        /// Whether the stanza is a request that may change something.
        var isChange: Bool { kind == .iq && !isQuery && id != nil }

        /// The copy of the stanza that its sender receives; nil unless it is broadcast presence or a message to a room.
        var echo: ReplayScript.Echo? {
            guard isSeenByOthers else { return nil }
            return isPresence ? .presence(from: from, type: type) : id.map { .message(id: $0) }
        }

        /// Returns whether a received item is a copy of this stanza that the server delivered.
        func isDelivered(by item: RecordedItem) -> Bool {
            guard isSeenByOthers, item.kind == kind, item.type == type else { return false }
            if isPresence { return item.from == from && (id == nil || item.id == nil || item.id == id) }
            return item.id == id && bare.map { item.from?.hasPrefix($0 + "/") == true } == true
        }

        /// Returns whether recipients cannot distinguish this presence stanza from another one of the same client.
        func resembles(_ other: Self) -> Bool {
            isPresence && other.isPresence && from == other.from && type == other.type && (id == nil || other.id == nil)
        }
    }

    private let clients: [ReplayScript.Client]
    private let accounts: [String]
    private let accountSet: Set<String>
    private var stanzas: [Int: [Stanza]] = [:]
    /// The clients by the addresses of their presence: full JIDs, and occupants of rooms (XEP-0045).
    private var addresses: [String: Int] = [:]
    /// Maximum number of stanzas kept for a client; older ones count as handled.
    private static let maximumCount = 16
    /// Maximum number of clients with stanzas. The stanzas of clients beyond it count as handled.
    private static let maximumClients = 128
    /// The clients with stanzas, in the order in which they were added.
    private var order: [Int] = []

    init(_ clients: [ReplayScript.Client]) {
        self.clients = clients
        accounts = clients.map(\.account.description)
        accountSet = Set(accounts)
    }

    mutating func connect(_ client: Int) {
        if clients[client].role != .preparation { addresses[clients[client].jid.description] = client }
    }

    func stanza(_ item: RecordedItem, of client: Int, at place: Int) -> Stanza {
        let slash = item.kind == .presence ? item.to?.firstIndex(of: "/") : nil
        let isOccupant =
            slash.map { slash in item.to.map { !accountSet.contains(String($0[..<slash])) } ?? false } ?? false
        return Stanza(item, of: clients[client], client, at: place, isOccupant: isOccupant)
    }

    /// Returns whether a delivery of the stanza can be mistaken for a delivery of another stanza of the same client.
    func isAmbiguous(_ stanza: Stanza) -> Bool {
        stanzas[stanza.client]?.contains { $0.place != stanza.place && $0.resembles(stanza) } == true
    }

    mutating func add(_ stanza: Stanza) {
        if case .presence(let from, _)? = stanza.echo { addresses[from] = stanza.client }
        if stanzas[stanza.client] == nil {
            if order.count == Self.maximumClients { stanzas[order.removeFirst()] = nil }
            order.append(stanza.client)
        }
        stanzas[stanza.client, default: []].append(stanza)
        if let count = stanzas[stanza.client]?.count, count > Self.maximumCount {
            stanzas[stanza.client]?.removeFirst()
        }
    }

    mutating func forget(_ client: Int) {
        guard stanzas.removeValue(forKey: client) != nil else { return }
        order.removeAll { $0 == client }
    }

    /// Returns the stanzas of a client of which it may still receive a copy.
    func echoes(of client: Int) -> Set<ReplayScript.Echo> { Set((stanzas[client] ?? []).compactMap(\.echo)) }

    /// Increments the places of stanzas within a range, after a stanza was inserted at the start of the range.
    mutating func shift(_ range: Range<Int>) {
        for (client, sent) in stanzas {
            for (index, stanza) in sent.enumerated() where range.contains(stanza.place) {
                stanzas[client]?[index].place += 1
            }
        }
    }

    /// Moves a stanza to a later place; the stanzas between both places are now one place earlier.
    mutating func move(_ moved: Stanza, to place: Int) {
        for (client, sent) in stanzas {
            for (index, stanza) in sent.enumerated() {
                if stanza.place == moved.place {
                    stanzas[client]?[index].place = place
                } else if stanza.place > moved.place, stanza.place <= place {
                    stanzas[client]?[index].place -= 1
                }
            }
        }
    }

    /// Returns the stanzas of other clients whose order with this one matters.
    func earlier(than stanza: Stanza) -> [Stanza] {
        stanzas.flatMap { client, sent in
            client == stanza.client ? [] : sent.filter { isOrdered($0, stanza) }
        }
    }

    /// Returns the other clients with a stanza whose order with the end of this client matters.
    func clients(beforeEndOf client: Int) -> [Int] {
        let account = accounts[client]
        return stanzas.filter { $0.key != client && $0.value.contains { !$0.isQuery && $0.reaches(account) } }.keys
            .sorted()
    }

    /// Returns whether the order of two stanzas matters: they have a recipient in common, or one of them affects the
    /// stanzas that the sender of the other one receives.
    private func isOrdered(_ earlier: Stanza, _ later: Stanza) -> Bool {
        guard !earlier.isQuery else { return false }
        let (other, own) = (accounts[earlier.client], accounts[later.client])
        let isOfAccount = other == own
        switch (earlier.bare, later.bare) {
        case (nil, _) where earlier.isPresence: return !later.isQuery
        case (_, nil) where later.isPresence: return true
        case (nil, nil): return isOfAccount
        case (let to?, nil): return to == own
        case (nil, let to?): return isOfAccount || to == other
        case (let one?, let two?): return one == two || one == own || two == other
        }
    }

    /// Removes the stanzas that the server has handled: an answer to a stanza, or its delivery, shows that the server
    /// has handled it and the earlier ones of the same client (RFC 6120 §10.1).
    mutating func confirm(_ item: RecordedItem, receivedBy client: Int) {
        if item.isAnswer {
            guard let id = item.id else { return }
            return confirm(client) { $0.id == id }
        }
        guard let from = item.from, let sender = addresses[from] else { return }
        switch item.kind {
        case .presence:
            let isOccupant = from != clients[sender].jid.description
            confirm(sender) { $0.isPresence && (isOccupant ? $0.to == from : $0.to == nil) }
        case .message:
            guard let id = item.id else { return }
            confirm(sender) { $0.id == id }
        case .iq, .nonza, .end: break
        }
    }

    private mutating func confirm(_ client: Int, _ isMeant: (Stanza) -> Bool) {
        guard let last = stanzas[client]?.lastIndex(where: isMeant) else { return }
        stanzas[client]?.removeFirst(last + 1)
        if stanzas[client]?.isEmpty == true { forget(client) }
    }
}

extension UnconfirmedStanzas.Stanza {
    /// Returns whether the stanza may reach an account: presence to all contacts, or a stanza to the account.
    fileprivate func reaches(_ account: String) -> Bool { bare.map { $0 == account } ?? isPresence }
}
