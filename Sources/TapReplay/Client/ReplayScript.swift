internal import TapRecord
package import XMPPCore

/// The steps that replay conversations, in the order of the recording.
///
/// The order covers all clients of the recording: a stanza is sent after all items that precede it in the recording
/// have arrived. Because there is only one order, steps cannot wait for each other in a cycle.
package struct ReplayScript: Sendable {
    /// A connection to play.
    package struct Client: Sendable {
        /// The recorded bare JID.
        package let account: JID
        /// The recorded full JID.
        package let jid: JID
        /// The resource to request; nil if the server chooses it.
        package let resource: String?
        /// The language of its stream (`xml:lang`); nil if it names none.
        package let language: String?
        /// The number of the run within the files, from 1; 0 for puppets and preparation.
        package let run: Int
        /// The number of the session within its run; 0 for puppets and preparation.
        package let session: UInt64
        /// The client whose session it resumes (XEP-0198).
        package let resumes: Int?
        /// The capabilities of the server (XEP-0115 §6.3) in its stream features; nil if it sent none.
        let capabilities: Capabilities?
        /// The offer of the server before the login was complete; nil for puppets and preparation.
        let offer: ServerOffer?
        /// Whether the recorded client enabled stream management during login (XEP-0386); the replay enables it after
        /// login.
        let enablesManagement: Bool
        /// The SASL condition with which the server must refuse the login, such as `not-authorized`; nil if the login
        /// must succeed.
        package let refusal: String?
        /// The role of the client.
        package let role: Role
    }

    /// The role of a client in the replay.
    package enum Role: Sendable, Hashable {
        /// Plays a recorded session.
        case recorded
        /// Replaces a peer without a recorded session: sends the stanzas that the recorded clients received from it.
        /// The stanzas that it receives are not compared.
        case puppet
        /// Sets up rosters and subscriptions before the replay.
        case preparation
    }

    /// A step. Items and stanzas are referred to by index, which keeps steps small.
    enum Step: Sendable {
        case connect(Int)
        /// A client sends an item.
        case send(Int, item: Int)
        /// A client sends a stanza that is not part of the recording.
        case prepare(Int, stanza: Int)
        /// Wait until the server has handled everything that the client sent.
        case awaitHandling(Int)
        /// A client receives an item.
        case expect(Int, item: Int)
        /// A client closes its stream.
        case close(Int)
        /// The server closes a client's stream.
        case end(Int)
        /// A client's connection is lost.
        case drop(Int)

        var client: Int {
            switch self {
            case .connect(let client), .send(let client, _), .prepare(let client, _), .awaitHandling(let client),
                .expect(let client, _), .close(let client), .end(let client), .drop(let client):
                client
            }
        }
    }

    /// The connections, in the order in which they are opened.
    package let clients: [Client]
    let steps: [Step]
    let items: [RecordedItem]
    /// The stanzas to send that are not part of the recording.
    let stanzas: [[UInt8]]
    /// When each step was recorded, in nanoseconds since the first step.
    let times: [Int64]
    /// Bare JIDs of the chat rooms (`rooms`) and of the played accounts (`played`) in the recording.
    private let rooms: Set<String>
    private let played: Set<String>
    /// Bare JIDs of the users that were present, or had an account, when the recording was made.
    private let users: Set<String>
    /// The requests that the clients received, with the answers that the clients sent.
    let answers: RecordedAnswers
    /// The full JIDs of the clients, without those that only prepare the accounts.
    private let resources: Set<String>
    /// The data that the server had before the recording.
    let earlierData: EarlierData
    /// The values that the clients stored on the server.
    let writtenValues: WrittenValues
    /// Rooms that the recorded clients created, as bare JIDs.
    private(set) var createdRooms: [JID] = []
    /// For each client, the stanzas that it had not received when it left: copies of its presence and of its messages
    /// to rooms, and answers to its last stanzas.
    private let echoes: [Int: Set<Echo>]
    /// For each client with ``echoes``, the last step in which the client sends something.
    private let lastSends: [Int: Int]

    /// A stanza that the server returns to the client that caused it: a copy (XEP-0045 §7.2.2, §7.4, RFC 6121 §4.2.2)
    /// or an answer.
    enum Echo: Sendable, Hashable {
        /// Presence of the client, or of its occupant in a room.
        case presence(from: String, type: String?)
        /// A message to a room.
        case message(id: String)
        /// The answer to a stanza that the client sent after the last one that it received.
        case answer(id: String)
    }

    /// - Parameters:
    ///   - conversations: The sessions to play; each must be complete.
    ///   - puppets: Recorded bare JIDs of peers to play although their sessions were not recorded.
    ///   - prepares: Whether to set up the rosters and subscriptions that the recording began with.
    package init(_ conversations: [RecordedConversation], puppets: [JID] = [], prepares: Bool = false) {
        var maker = Maker()
        if prepares {
            maker.prepare(Preparation(conversations, played: conversations.compactMap(\.account) + puppets.map(\.bare)))
        }
        maker.reserve(conversations.reduce(0) { $0 + $1.items.count })
        for puppet in puppets { maker.add(PuppetScript(puppet, in: conversations), of: puppet) }
        for conversation in conversations { maker.add(conversation) }
        maker.sort()
        rooms = Set(conversations.flatMap { Self.rooms($0) })
        createdRooms = Self.createdRooms(conversations)
        played = Set(maker.clients.map(\.account.normalized.description))
        clients = maker.clients
        maker.keepOrder()
        echoes = maker.echoes
        steps = maker.places.map(\.step)
        var lastSends: [Int: Int] = [:]
        for (index, step) in steps.enumerated() {
            if case .send(let client, _) = step, maker.echoes[client] != nil { lastSends[client] = index }
        }
        self.lastSends = lastSends
        items = maker.items
        answers = RecordedAnswers(steps, items)
        resources = Set(clients.lazy.filter { $0.role != .preparation }.map(\.jid.description))
        users = Set(items.lazy.filter(\.isOfUser).compactMap { $0.from.map { Address($0).comparableBare } })
        earlierData = EarlierData(steps, items, clients)
        writtenValues = WrittenValues(steps, items)
        stanzas = maker.stanzas
        let first = maker.places.first { $0.run > 0 }?.at ?? 0
        times = maker.places.map { $0.run > 0 ? $0.at - first : 0 }
    }

    /// Collects the steps before they are sorted.
    struct Maker {
        /// The position of a step. The steps of a run are sorted by arrival time, because sessions on different threads
        /// may be recorded in another order. Steps with equal times are sorted by record number, and the steps of one
        /// record by insertion.
        struct Place {
            var run: Int
            var sequence: UInt64
            var order: Int
            var at: Int64
            var step: Step
        }

        var clients: [Client] = []
        var places: [Place] = []
        var items: [RecordedItem] = []
        var stanzas: [[UInt8]] = []
        var echoes: [Int: Set<Echo>] = [:]

        /// Reserves memory: arrays that grow by doubling would occupy up to twice the memory during the lifetime of the
        /// script.
        mutating func reserve(_ count: Int) {
            items.reserveCapacity(count)
            places.reserveCapacity(count + 16)
        }

        private mutating func add(_ step: Step, run: Int, _ sequence: UInt64, at: Int64 = 0) {
            places.append(Place(run: run, sequence: sequence, order: places.count, at: at, step: step))
        }

        private mutating func add(_ jid: JID, _ role: Role) -> Int {
            clients.append(
                Client(
                    account: jid.bare,
                    jid: jid,
                    resource: jid.resource,
                    language: nil,
                    run: 0,
                    session: 0,
                    resumes: nil,
                    capabilities: nil,
                    offer: nil,
                    enablesManagement: false,
                    refusal: nil,
                    role: role
                )
            )
            return clients.count - 1
        }

        private mutating func prepare(_ client: Int, _ stanza: [UInt8], _ sequence: UInt64) {
            add(.prepare(client, stanza: stanzas.count), run: 0, sequence)
            stanzas.append(stanza)
        }

        mutating func prepare(_ preparation: Preparation) {
            var numbers: [JID: Int] = [:]
            for account in preparation.accounts {
                let client = add(account, .preparation)
                numbers[account] = client
                add(.connect(client), run: 0, 0)
            }
            for phase in preparation.phases {
                for sending in phase {
                    if let client = numbers[sending.account] { prepare(client, sending.stanza, 0) }
                }
                for client in numbers.values.sorted() { add(.awaitHandling(client), run: 0, 0) }
            }
            for client in numbers.values.sorted() { add(.close(client), run: 0, 0) }
        }

        mutating func add(_ puppet: PuppetScript, of account: JID) {
            let numbers = puppet.jids.map { add($0, .puppet) }
            for (place, client) in numbers.enumerated() {
                add(.connect(client), run: 0, 1)
                guard !puppet.hasPresence(place) else { continue }
                prepare(client, XMLWriter.bytes { $0.element("presence") }, 1)
                add(.awaitHandling(client), run: 0, 1)
            }
            for send in puppet.sends {
                add(.send(numbers[send.jid], item: items.count), run: send.run, send.item.sequence, at: send.item.at)
                items.append(send.item)
            }
        }

        mutating func add(_ conversation: RecordedConversation) {
            guard let jid = conversation.jid else { return }
            let index = clients.count
            let earlier = clients.lastIndex {
                $0.run == conversation.run && $0.session == conversation.resumes && $0.jid == jid
            }
            clients.append(
                Client(
                    account: jid.bare,
                    jid: jid,
                    resource: conversation.resource,
                    language: conversation.language,
                    run: conversation.run,
                    session: conversation.number,
                    resumes: conversation.resumes == nil ? nil : earlier,
                    capabilities: conversation.features.flatMap { Capabilities(features: $0) },
                    offer: conversation.offer,
                    enablesManagement: conversation.inlineFeatures.contains(.streamManagement),
                    refusal: conversation.refusal,
                    role: .recorded
                )
            )
            var last = conversation.ready
            add(.connect(index), run: conversation.run, conversation.readySequence, at: last)
            guard conversation.refusal == nil else { return }
            for feature in conversation.inlineFeatures where conversation.resumes == nil {
                add(
                    .prepare(index, stanza: stanzas.count),
                    run: conversation.run,
                    conversation.readySequence,
                    at: last
                )
                stanzas.append(ReplayScript.enabling(feature))
            }
            var pings: Set<String> = []
            for item in conversation.items {
                // The replay answers pings of the live server itself, so the recorded answers to pings are not steps.
                if item.kind == .iq, item.direction == .recv, item.type == "get", item.payloadNamespace == .ping {
                    if let id = item.id { pings.insert(id) }
                } else if item.direction == .send, item.isAnswer, let id = item.id, pings.remove(id) != nil {
                    continue
                }
                guard let step = ReplayScript.step(item, items.count, index) else { continue }
                // If the server ended the session, the client's closing tag is only a reply to the server's and not a
                // step.
                if conversation.ending == .server, case .close = step { continue }
                last = max(last, item.at)
                add(step, run: conversation.run, item.sequence, at: last)
                items.append(item)
            }
            let ending: Step
            switch conversation.ending {
            case .client: return
            case .server: ending = .end(index)
            case .lost: ending = .drop(index)
            case .open: ending = .close(index)
            }
            add(
                ending,
                run: conversation.run,
                conversation.ended.sequence,
                at: max(last, conversation.ended.at)
            )
        }
    }

    /// The id of the request that enables carbons after login, if the recorded client enabled them during login.
    static let inlineID = "xmpptap-inline"

    /// Returns the stanza that enables carbons or stream management.
    private static func enabling(_ feature: Namespace) -> [UInt8] {
        XMLWriter.bytes {
            guard feature == .carbons else { return $0.element("enable", feature, ["resume": "true"]) }
            $0.element("iq", ["type": "set", "id": inlineID]) { $0.element("enable", feature) }
        }
    }

    /// Returns the step for an item; nil for items that each session handles itself: acknowledgements, and answers to
    /// the server's pings.
    private static func step(_ item: RecordedItem, _ number: Int, _ client: Int) -> Step? {
        switch (item.kind, item.direction) {
        case (.end, .send): return .close(client)
        case (.end, .recv): return nil
        case (.nonza, _) where ["a", "r", "resumed"].contains(item.name): return nil
        // A stream error ends the session; the end is reported instead.
        case (.nonza, .recv) where item.name == "error": return nil
        case (.iq, .recv) where item.payloadNamespace == .ping && item.type == "get": return nil
        case (_, .send): return .send(client, item: number)
        case (_, .recv): return item.sent == nil ? nil : .expect(client, item: number)
        }
    }

    /// Returns the rooms (XEP-0045) of a conversation as bare JIDs.
    private static func rooms(_ conversation: RecordedConversation) -> [String] {
        conversation.items.compactMap { item in
            let isOfRoom =
                item.type == "groupchat" || item.payloadNamespace == .mucUser || item.payloadNamespace == .muc
            guard isOfRoom, let other = item.direction == .recv ? item.from : item.to else { return nil }
            return Address(other).comparableBare
        }
    }

    /// Returns the rooms that recorded clients created by entering them (XEP-0045 §10.1.1), without duplicates.
    private static func createdRooms(_ conversations: [RecordedConversation]) -> [JID] {
        let parser = StanzaParser()
        var rooms: [JID] = []
        for item in conversations.lazy.flatMap(\.items)
        where item.kind == .presence && item.direction == .recv && item.type == nil {
            guard let bytes = item.sent, let room = item.from.flatMap({ JID($0) })?.bare, !rooms.contains(room),
                let presence = try? parser.parse(bytes.span, root: item.root),
                let user = presence.child("x", .mucUser),
                user.children("status", .mucUser).contains(where: { $0.attribute("code") == "201" })
            else { continue }
            rooms.append(room)
        }
        return rooms
    }

    /// The items to send, prepared once for all sessions: without the values that differ between sessions.
    package struct Sendings: Sendable {
        /// An item to send.
        struct Sending: Sendable {
            /// Index of the item's template; nil if each session builds the item when it sends it.
            let template: UInt32?
            /// Number of its id, which each session replaces by a new one; nil for answers and items without an id.
            let id: UInt32?
            /// Index among the requests; nil if the item is not a request.
            let request: UInt32?
            /// Whether the item is a message or presence that a played client receives.
            let isDelivery: Bool
        }

        /// Identifies a request: its client, and the number of its id.
        struct RequestKey: Hashable, Sendable {
            let client: Int
            let id: Int
        }

        /// The templates that sessions share.
        let templates: ItemTemplates
        /// The items to send by item index; nil if an item is not sent or lacks a value.
        let sendings: [Sending?]
        /// The index of each request.
        let requests: [RequestKey: Int]
    }

    /// Returns the items to send, shared by all sessions that play the script with these rules and options.
    ///
    /// - Parameter sharesTemplates: Whether to parse each item once for all sessions, which needs more memory.
    package func sendings(_ options: ReplayOptions, rules: NoiseRules, sharesTemplates: Bool = false) -> Sendings {
        var ids: [String: Int] = [:]
        for item in items where item.direction == .send && !item.isAnswer {
            if let id = item.id, ids[id] == nil { ids[id] = ids.count }
        }
        var delivered: Set<String> = []
        for item in items where item.direction == .recv && (item.kind == .message || item.kind == .presence) {
            if let id = item.id { delivered.insert(id) }
        }
        let addressTexts = clients.flatMap { [$0.jid.description, $0.account.description, $0.account.domain] }
        var templates = ItemTemplates(ids: ids, addressTexts: addressTexts)
        if sharesTemplates {
            let sent = items.lazy.filter { $0.direction == .send }
            templates.reserve(sent.count { _ in true }, bytes: sent.reduce(0) { $0 + ($1.seen?.count ?? 0) })
        }
        var sendings = [Sendings.Sending?](repeating: nil, count: items.count)
        var requests: [Sendings.RequestKey: Int] = [:]
        for step in steps {
            guard case .send(let client, let number) = step, items[number].canBeSent(options) else { continue }
            let item = items[number]
            let id = item.isAnswer ? nil : item.id.flatMap { ids[$0] }
            var (request, template): (Int?, Int?)
            if let id, item.kind == .iq { request = requests.number(for: .init(client: client, id: id)) }
            if sharesTemplates, let bytes = item.bytesToSend(options) { template = templates.add(bytes, rules: rules) }
            sendings[number] = Sendings.Sending(
                template: template.map { UInt32(clamping: $0) },
                id: id.map { UInt32(clamping: $0) },
                request: request.map { UInt32(clamping: $0) },
                isDelivery: id != nil && request == nil && item.id.map(delivered.contains) == true
            )
        }
        return Sendings(templates: templates, sendings: sendings, requests: requests)
    }

    /// Returns whether a step sends an item of a client.
    func sends(_ step: Int, _ client: Int) -> Bool {
        if case .send(client, _) = steps[step] { true } else { false }
    }

    /// Returns whether a step waits until the server has handled the stanzas of a client.
    func isAwaitHandling(_ step: Int) -> Bool {
        if case .awaitHandling = steps[step] { true } else { false }
    }

    /// Returns the range of a step and up to 255 steps after it.
    func next(from step: Int) -> Range<Int> { step..<min(step + 256, steps.count) }

    /// Returns whether a client sends an item with this id; true if the id is nil.
    func sends(_ id: String?) -> Bool {
        guard let id else { return true }
        return items.contains { $0.direction == .send && $0.id == id }
    }

    /// Returns the number of the sender with a recorded full JID; -1 if no client has this JID. A client that resumes a
    /// session has the number of the client that it replaces.
    func number(of jid: JID) -> Int { clients.firstIndex { $0.jid == jid } ?? -1 }

    /// Returns whether a played client has this recorded full JID.
    func plays(_ jid: String) -> Bool { resources.contains(jid) }

    /// Returns why the server may send a live stanza that the recorded client did not receive because it had closed its
    /// stream; nil for other stanzas.
    ///
    /// - Parameter cursor: The next step. The result is nil if the client has not sent all its stanzas yet.
    func lateEcho(_ live: StanzaForm, _ client: Int, _ bindings: ValueBindings, at cursor: Int) -> StanzaOption? {
        guard let echoes = echoes[client], lastSends[client].map({ $0 < cursor }) == true else { return nil }
        let echo: Echo?
        let id = live.id.flatMap { bindings.recorded(for: $0, .stanzaID) }
        switch live.kind {
        case .iq: echo = live.type == "result" || live.type == "error" ? id.map { .answer(id: $0) } : nil
        case .presence where live.type == "error": echo = id.map { .answer(id: $0) }
        case .presence: echo = live.from.map { .presence(from: bindings.jid($0, .toRecorded), type: live.type) }
        case .message: echo = id.map { live.type == "error" ? .answer(id: $0) : .message(id: $0) }
        case .nonza: echo = nil
        }
        return echo.map(echoes.contains) == true
            ? StanzaOption("RFC 6120 §4.4: the client closed its stream before") : nil
    }

    /// The roles of recorded addresses.
    var roles: OptionalStanzas.Roles {
        OptionalStanzas.Roles(
            isPlayed: plays,
            isRoom: { !$0.contains("/") && rooms.contains(Address($0).comparableBare) }
        )
    }

    /// Returns the roles of live addresses.
    func roles(_ bindings: ValueBindings) -> OptionalStanzas.Roles {
        let roles = roles
        return OptionalStanzas.Roles(
            isPlayed: { bindings.recorded(for: $0, .resource).map(roles.isPlayed) ?? false },
            isRoom: { roles.isRoom(bindings.jid($0, .toRecorded)) }
        )
    }

    /// Returns whether the recorded item is from a user that is not played.
    ///
    /// Answers from a bare JID are the server's own (RFC 6121 §8.5.2), and so are all errors from an address of which
    /// the recording has nothing else: no user was there.
    func isOfAbsentPeer(_ item: RecordedItem) -> Bool {
        guard let from = item.from.map({ Address($0) }), from.local != nil else { return false }
        let bare = from.comparableBare
        return users.contains(bare) && !played.contains(bare) && !rooms.contains(bare)
            && (item.kind != .iq || from.resource != nil)
    }
}

extension Dictionary where Value == Int {
    /// Returns the number of a key; a new key gets the next number.
    fileprivate mutating func number(for key: Key) -> Int {
        if let number = self[key] { return number }
        self[key] = count
        return count - 1
    }
}

extension RecordedItem {
    /// Whether the item was received, and a user sent it: neither an error, nor an answer from a bare JID, which the
    /// user's server sends.
    fileprivate var isOfUser: Bool {
        guard direction == .recv, type != "error", let from = from.map({ Address($0) }), from.local != nil else {
            return false
        }
        return kind != .iq || from.resource != nil
    }

    /// Returns whether the item reached the server, and the options contain a value for each of its placeholders.
    fileprivate func canBeSent(_ options: ReplayOptions) -> Bool {
        atServer(withoutEdits: options.withoutEdits) != nil && placeholders.allSatisfy { options.values[$0] != nil }
    }

    /// Returns the item with the given values for its placeholders; nil if the item did not reach the server or a value
    /// is missing.
    fileprivate func bytesToSend(_ options: ReplayOptions) -> [UInt8]? {
        guard var bytes = atServer(withoutEdits: options.withoutEdits) else { return nil }
        for placeholder in placeholders {
            guard let value = options.values[placeholder] else { return nil }
            var xml = XMLWriter()
            xml.start("value")
            xml.text(value)
            let written = xml.take().dropFirst("<value>".utf8.count)
            bytes = bytes.replacing(Array(placeholder.utf8), with: written)
        }
        return bytes
    }
}

extension ValueSubstitution {
    /// Appends an item of a script with all bound values translated.
    mutating func fill(
        _ item: RecordedItem,
        _ sending: ReplayScript.Sendings.Sending,
        _ options: ReplayOptions,
        from bindings: ValueBindings,
        rules: NoiseRules,
        into output: inout [UInt8]
    ) {
        if let template = sending.template {
            fill(Int(template), from: bindings, into: &output)
        } else if let bytes = item.bytesToSend(options) {
            fill(bytes, rules: rules, from: bindings, into: &output)
        }
    }
}

/// The expectation number of each step that expects an item. An array, because most steps of a long script expect one.
struct StepNumbers: Sendable {
    private var numbers: [Int32]

    init(count: Int) { numbers = [Int32](repeating: -1, count: count) }

    subscript(step: Int) -> Int? {
        get { numbers.indices.contains(step) && numbers[step] >= 0 ? Int(numbers[step]) : nil }
        set { numbers[step] = newValue.map { Int32(clamping: $0) } ?? -1 }
    }
}

extension ReplayScript {
    /// The number of items that each client expects.
    var expectedCounts: [Int] {
        var counts = [Int](repeating: 0, count: clients.count)
        for case .expect(let client, _) in steps { counts[client] += 1 }
        return counts
    }

    /// Binds the recorded accounts to the live ones, and for a copy of the script the created rooms to rooms of the copy.
    func bind(_ accounts: [(recorded: JID, live: JID)], copy: Int?, in bindings: inout ValueBindings) {
        for account in accounts {
            try? bindings.bind(account.recorded.bare.description, to: account.live.bare.description, .account)
        }
        guard let copy else { return }
        for room in createdRooms {
            let live = bindings.jid(room.description, .toLive)
            let at = live.firstIndex(of: "@") ?? live.endIndex
            try? bindings.bind(room.description, to: "\(live[..<at])-\(copy)\(live[at...])", .account)
        }
    }
}

extension WrittenValues {
    /// Collects the values that the clients of a script store. Moments are the numbers of steps.
    fileprivate init(_ steps: [ReplayScript.Step], _ items: [RecordedItem]) {
        self.init()
        let parser = StanzaParser()
        for (index, step) in steps.enumerated() {
            guard case .send(_, let number) = step, items[number].kind == .iq, items[number].type == "set",
                Self.isStored(items[number].payloadNamespace), let bytes = items[number].seen,
                let stanza = try? parser.parse(bytes.span, root: items[number].root)
            else { continue }
            add(stanza, at: moment(UInt64(index)))
        }
    }
}
