internal import TapRecord
public import XMPPCore

/// What is done to play conversations, in the order of the recording.
///
/// The order is that of the whole recording, over all its clients: a stanza is sent when all has arrived that had arrived before
/// it in the recording. So the steps can wait for each other, but never in a circle.
public struct ReplayScript: Sendable {
    /// A connection to play.
    public struct Client: Sendable {
        /// The recorded bare JID.
        public let account: JID
        /// The recorded full JID.
        public let jid: JID
        /// The resource to ask for; nil leaves it to the server.
        public let resource: String?
        /// The language of its stream; nil if it names none.
        public let language: String?
        /// The number of the run within the files, from 1; 0 of what no run recorded.
        public let run: Int
        /// The number of the session within its run; 0 of what no run recorded.
        public let session: UInt64
        /// The client whose session it resumes (XEP-0198).
        public let resumes: Int?
        /// It enabled stream management along with its login (XEP-0386); it does so behind it now.
        let enablesManagement: Bool
        /// What it is there for.
        public let role: Role
    }

    /// What a client is there for.
    public enum Role: Sendable, Hashable {
        /// Plays a recorded session.
        case recorded
        /// Sends what others have got from somebody whose side was not recorded; what it gets is not compared.
        case puppet
        /// Builds rosters and subscriptions before anything is played.
        case preparation
    }

    /// Items and stanzas by their numbers, so that what goes through the steps touches no more than it needs.
    enum Step: Sendable {
        case connect(Int)
        /// A client sends an item.
        case send(Int, item: Int)
        /// A client sends what was not recorded.
        case prepare(Int, stanza: Int)
        /// What a client has sent has been handled by the server.
        case settle(Int)
        /// A client gets an item.
        case expect(Int, item: Int)
        /// A client closes its stream.
        case close(Int)
        /// The server closes a client's stream.
        case end(Int)
        /// A client's connection is lost.
        case drop(Int)

        var client: Int {
            switch self {
            case .connect(let client), .send(let client, _), .prepare(let client, _), .settle(let client),
                .expect(let client, _), .close(let client), .end(let client), .drop(let client):
                client
            }
        }
    }

    /// The connections, in the order in which they begin.
    public let clients: [Client]
    let steps: [Step]
    let items: [RecordedItem]
    /// What is sent though it was not recorded.
    let stanzas: [[UInt8]]
    /// When each step was recorded: nanoseconds since the first.
    let times: [Int64]
    /// Bare JIDs of the recording that are rooms, and those that are played.
    private let rooms: Set<String>
    private let played: Set<String>
    /// Rooms that the recorded clients created, as bare JIDs.
    private(set) var createdRooms: [JID] = []

    /// - Parameters:
    ///   - conversations: Those to play; each is complete.
    ///   - puppets: Recorded bare JIDs that are played although nobody recorded them.
    ///   - prepares: Build the rosters and subscriptions that the recording began with.
    public init(_ conversations: [RecordedConversation], puppets: [JID] = [], prepares: Bool = false) {
        var maker = Maker()
        if prepares {
            maker.prepare(Preparation(conversations, played: conversations.compactMap(\.account) + puppets.map(\.bare)))
        }
        for puppet in puppets { maker.add(PuppetScript(puppet, in: conversations), of: puppet) }
        for conversation in conversations { maker.add(conversation) }
        maker.places.sort { ($0.run, $0.at, $0.sequence, $0.order) < ($1.run, $1.at, $1.sequence, $1.order) }
        rooms = Set(conversations.flatMap { Self.rooms($0) })
        createdRooms = Self.createdRooms(conversations)
        played = Set(maker.clients.map(\.account.normalized.description))
        clients = maker.clients
        steps = maker.places.map(\.step)
        items = maker.items
        stanzas = maker.stanzas
        let first = maker.places.first { $0.run > 0 }?.at ?? 0
        times = maker.places.map { $0.run > 0 ? $0.at - first : 0 }
    }

    /// Puts steps in their places.
    private struct Maker {
        /// Where a step stands: within its run by its time, which is that of its arrival; sessions on two threads may be
        /// recorded in another order. Then by the number of its record; several of one record in their order.
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
                    enablesManagement: false,
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
                for client in numbers.values.sorted() { add(.settle(client), run: 0, 0) }
            }
            for client in numbers.values.sorted() { add(.close(client), run: 0, 0) }
        }

        mutating func add(_ puppet: PuppetScript, of account: JID) {
            let numbers = puppet.jids.map { add($0, .puppet) }
            for (place, client) in numbers.enumerated() {
                add(.connect(client), run: 0, 1)
                guard !puppet.hasPresence(place) else { continue }
                prepare(client, XMLWriter.bytes { $0.element("presence") }, 1)
                add(.settle(client), run: 0, 1)
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
                    enablesManagement: conversation.inlineFeatures.contains(.streamManagement),
                    role: .recorded
                )
            )
            var last = conversation.ready
            add(.connect(index), run: conversation.run, conversation.readySequence, at: last)
            for feature in conversation.inlineFeatures where conversation.resumes == nil {
                add(
                    .prepare(index, stanza: stanzas.count),
                    run: conversation.run,
                    conversation.readySequence,
                    at: last
                )
                stanzas.append(ReplayScript.enabling(feature))
            }
            for item in conversation.items {
                guard let step = ReplayScript.step(item, items.count, index) else { continue }
                // The client's end answers the server's.
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

    /// The id of requests that a client made along with its login, and makes behind it now.
    static let inlineID = "xmpptap-inline"

    /// What enables carbons or stream management.
    private static func enabling(_ feature: Namespace) -> [UInt8] {
        XMLWriter.bytes {
            guard feature == .carbons else { return $0.element("enable", feature, ["resume": "true"]) }
            $0.element("iq", ["type": "set", "id": inlineID]) { $0.element("enable", feature) }
        }
    }

    /// What is done of an item; nil if each session does it in its own way: acknowledgements, and the server's pings.
    private static func step(_ item: RecordedItem, _ number: Int, _ client: Int) -> Step? {
        switch (item.kind, item.direction) {
        case (.end, .send): return .close(client)
        case (.end, .recv): return nil
        case (.nonza, _) where ["a", "r", "resumed"].contains(item.name): return nil
        // A stream error ends the session; the end is reported.
        case (.nonza, .recv) where item.name == "error": return nil
        case (.iq, .recv) where item.payloadNamespace == .ping && item.type == "get": return nil
        case (_, .send): return .send(client, item: number)
        case (_, .recv): return item.sent == nil ? nil : .expect(client, item: number)
        }
    }

    /// The rooms (XEP-0045) that a conversation shows.
    private static func rooms(_ conversation: RecordedConversation) -> [String] {
        conversation.items.compactMap { item in
            let isOfRoom =
                item.type == "groupchat" || item.payloadNamespace == .mucUser || item.payloadNamespace == .muc
            guard isOfRoom, let other = item.direction == .recv ? item.from : item.to else { return nil }
            return Address(other).comparableBare
        }
    }

    /// The rooms that were created by who entered them (XEP-0045 §10.1.1), each once.
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

    /// What is sent, but for the values of the session that sends it.
    public struct Sendings: Sendable {
        /// What is sent of an item.
        struct Sending: Sendable {
            /// Its number among the templates.
            let template: UInt32
            /// The number of its id, which the session replaces by a new id; nil for answers and for items without an id.
            let id: UInt32?
            /// Its number among the requests; nil of what is none.
            let request: UInt32?
            /// Its number among the messages and presence that a client of the script gets; nil of what is none.
            let delivery: UInt32?
        }

        /// What a request is known by: who made it, and the number of its id.
        struct RequestKey: Hashable, Sendable {
            let client: Int
            let id: Int
        }

        let templates: ItemTemplates
        /// By the numbers of items; nil of what is not sent, or lacks a value.
        let sendings: [Sending?]
        /// The numbers of the requests.
        let requests: [RequestKey: Int]
        /// The numbers of what clients of the script get, by the numbers of the ids.
        let deliveries: [Int: Int]
    }

    /// What is sent, for all sessions that play the script with these rules and options.
    public func sendings(_ options: ReplayOptions, rules: NoiseRules) -> Sendings {
        var ids: [String: Int] = [:]
        for item in items where item.direction == .send && !item.isAnswer {
            if let id = item.id, ids[id] == nil { ids[id] = ids.count }
        }
        var delivered: Set<String> = []
        for item in items where item.direction == .recv && (item.kind == .message || item.kind == .presence) {
            if let id = item.id { delivered.insert(id) }
        }
        let words = clients.flatMap { [$0.jid.description, $0.account.description, $0.account.domain] }
        var templates = ItemTemplates(ids: ids, words: words)
        var sendings = [Sendings.Sending?](repeating: nil, count: items.count)
        var requests: [Sendings.RequestKey: Int] = [:]
        var deliveries: [Int: Int] = [:]
        for step in steps {
            guard case .send(let client, let number) = step, let bytes = items[number].bytesToSend(options) else {
                continue
            }
            let item = items[number]
            let id = item.isAnswer ? nil : item.id.flatMap { ids[$0] }
            var (request, delivery): (Int?, Int?)
            if let id, item.kind == .iq {
                request = requests.number(for: .init(client: client, id: id))
            } else if let id, item.id.map(delivered.contains) == true {
                delivery = deliveries.number(for: id)
            }
            sendings[number] = Sendings.Sending(
                template: UInt32(clamping: templates.add(bytes, rules: rules)),
                id: id.map { UInt32(clamping: $0) },
                request: request.map { UInt32(clamping: $0) },
                delivery: delivery.map { UInt32(clamping: $0) }
            )
        }
        return Sendings(templates: templates, sendings: sendings, requests: requests, deliveries: deliveries)
    }

    /// Whether a client sends an item with this id; so it may be where there is none.
    func sends(_ id: String?) -> Bool {
        guard let id else { return true }
        return items.contains { $0.direction == .send && $0.id == id }
    }

    /// Whether who sent a recorded item, or was to answer it, is a user that is not played.
    func isOfAbsentPeer(_ item: RecordedItem) -> Bool {
        guard let from = item.from.map({ Address($0) }), from.local != nil else { return false }
        let bare = from.comparableBare
        return !played.contains(bare) && !rooms.contains(bare)
    }
}

extension Dictionary where Value == Int {
    /// The number of a key; a new one gets the next.
    fileprivate mutating func number(for key: Key) -> Int {
        if let number = self[key] { return number }
        self[key] = count
        return count - 1
    }
}

extension RecordedItem {
    /// Whether it answers a request.
    var isAnswer: Bool { kind == .iq && (type == "result" || type == "error") }

    /// The item with the values that were given for its placeholders; nil if it did not get to the server, or a value is lacking.
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
