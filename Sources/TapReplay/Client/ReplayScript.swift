internal import TapRecord
public import XMPPCore

/// What is done to play conversations, in the order of the recording.
///
/// The order is that of the whole recording, over all its clients: a stanza is sent when all has arrived that had arrived before
/// it in the recording. So the steps can wait for each other, but never in a circle.
public struct ReplayScript: Sendable {
    /// One connection that is to be played.
    public struct Client: Sendable {
        /// The recorded bare JID.
        public let account: JID
        /// The recorded full JID.
        public let jid: JID
        /// The resource to ask for; nil leaves it to the server.
        public let resource: String?
        /// The language of its stream; nil if it names none.
        public let language: String?
        /// The number of the session within its run.
        public let session: UInt64
        /// The client whose session it resumes (XEP-0198).
        public let resumes: Int?
        /// In the recording the server ended it.
        public let isEndedByServer: Bool
        /// Nobody recorded its side: it prepares, or sends what others have got from it, and what it gets is not compared.
        public let isPuppet: Bool
    }

    enum Step: Sendable {
        case connect(Int)
        /// A client sends an item.
        case send(Int, RecordedItem)
        /// A client sends what was not recorded.
        case prepare(Int, [UInt8])
        /// What a client has sent has been handled by the server.
        case settle(Int)
        /// A client gets an item.
        case expect(Int, RecordedItem)
        /// A client closes its stream.
        case close(Int)
        /// A client's connection is lost.
        case drop(Int)

        var client: Int {
            switch self {
            case .connect(let client), .send(let client, _), .prepare(let client, _), .settle(let client),
                .expect(let client, _), .close(let client), .drop(let client):
                client
            }
        }
    }

    /// The connections, in the order in which they begin.
    public let clients: [Client]
    let steps: [Step]
    /// When each step was recorded: nanoseconds since the first.
    let times: [Int64]
    /// Bare JIDs of the recording that are rooms, and those that are played.
    private let rooms: Set<String>
    private let played: Set<String>

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
        played = Set(maker.clients.map(\.account.normalized.description))
        clients = maker.clients
        steps = maker.places.map(\.step)
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

        private mutating func add(_ step: Step, run: Int, _ sequence: UInt64, at: Int64 = 0) {
            places.append(Place(run: run, sequence: sequence, order: places.count, at: at, step: step))
        }

        private mutating func addPuppet(_ jid: JID) -> Int {
            clients.append(
                Client(
                    account: jid.bare,
                    jid: jid,
                    resource: jid.resource,
                    language: nil,
                    session: 0,
                    resumes: nil,
                    isEndedByServer: false,
                    isPuppet: true
                )
            )
            return clients.count - 1
        }

        mutating func prepare(_ preparation: Preparation) {
            var numbers: [JID: Int] = [:]
            for account in preparation.accounts {
                let client = addPuppet(account)
                numbers[account] = client
                add(.connect(client), run: 0, 0)
            }
            for phase in preparation.phases {
                for sending in phase {
                    if let client = numbers[sending.account] { add(.prepare(client, sending.stanza), run: 0, 0) }
                }
                for client in numbers.values.sorted() { add(.settle(client), run: 0, 0) }
            }
            for client in numbers.values.sorted() { add(.close(client), run: 0, 0) }
        }

        mutating func add(_ puppet: PuppetScript, of account: JID) {
            let numbers = puppet.jids.map { addPuppet($0) }
            for (place, client) in numbers.enumerated() {
                add(.connect(client), run: 0, 1)
                guard !puppet.hasPresence(place) else { continue }
                add(.prepare(client, XMLWriter.bytes { $0.element("presence") }), run: 0, 1)
                add(.settle(client), run: 0, 1)
            }
            for send in puppet.sends {
                add(.send(numbers[send.jid], send.item), run: send.run, send.item.sequence, at: send.item.at)
            }
        }

        mutating func add(_ conversation: RecordedConversation) {
            guard let jid = conversation.jid else { return }
            let index = clients.count
            let earlier = clients.lastIndex { $0.session == conversation.resumes && $0.jid == jid }
            clients.append(
                Client(
                    account: jid.bare,
                    jid: jid,
                    resource: conversation.resource,
                    language: conversation.language,
                    session: conversation.number,
                    resumes: conversation.resumes == nil ? nil : earlier,
                    isEndedByServer: conversation.ending == .server,
                    isPuppet: false
                )
            )
            var last = conversation.ready
            add(.connect(index), run: conversation.run, conversation.readySequence, at: last)
            for item in conversation.items {
                guard let step = ReplayScript.step(item, index) else { continue }
                last = max(last, item.at)
                add(step, run: conversation.run, item.sequence, at: last)
            }
            guard conversation.ending != .client else { return }
            add(
                conversation.ending == .lost ? .drop(index) : .close(index),
                run: conversation.run,
                conversation.ended.sequence,
                at: max(last, conversation.ended.at)
            )
        }
    }

    /// What is done of an item; nil if each session does it in its own way: acknowledgements, and the server's pings.
    private static func step(_ item: RecordedItem, _ client: Int) -> Step? {
        switch (item.kind, item.direction) {
        case (.end, .send): return .close(client)
        case (.end, .recv): return nil
        case (.nonza, _) where ["a", "r", "resumed"].contains(item.name): return nil
        // A stream error ends the session, which is told as such.
        case (.nonza, .recv) where item.name == "error": return nil
        case (.iq, .recv) where item.payloadNamespace == .ping && item.type == "get": return nil
        case (_, .send): return .send(client, item)
        case (_, .recv): return item.sent == nil ? nil : .expect(client, item)
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

    /// Whether who sent a recorded item, or was to answer it, is a user that is not played.
    func isOfAbsentPeer(_ item: RecordedItem) -> Bool {
        guard let from = item.from.map({ Address($0) }), from.local != nil else { return false }
        let bare = from.comparableBare
        return !played.contains(bare) && !rooms.contains(bare)
    }
}
