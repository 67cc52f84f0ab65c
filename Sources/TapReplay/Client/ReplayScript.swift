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
        /// The number of the session within its run.
        public let session: UInt64
        /// The client whose session it resumes (XEP-0198).
        public let resumes: Int?
        /// In the recording the server ended it.
        public let isEndedByServer: Bool
        /// Nobody recorded its side: it sends what others have got from it.
        public let isPuppet: Bool
    }

    enum Step: Sendable {
        case connect(Int)
        /// A client sends an item.
        case send(Int, RecordedItem)
        /// A client gets an item.
        case expect(Int, RecordedItem)
        /// A client closes its stream.
        case close(Int)
        /// A client's connection is lost.
        case drop(Int)

        var client: Int {
            switch self {
            case .connect(let client), .send(let client, _), .expect(let client, _), .close(let client),
                .drop(let client):
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
    public init(_ conversations: [RecordedConversation], puppets: [JID] = []) {
        var clients: [Client] = []
        var order: [(run: Int, sequence: UInt64, at: Int64, step: Step)] = []
        for conversation in conversations {
            guard let jid = conversation.jid else { continue }
            let index = clients.count
            let earlier = clients.lastIndex { $0.session == conversation.resumes && $0.jid == jid }
            clients.append(
                Client(
                    account: jid.bare,
                    jid: jid,
                    resource: conversation.resource,
                    session: conversation.number,
                    resumes: conversation.resumes == nil ? nil : earlier,
                    isEndedByServer: conversation.ending == .server,
                    isPuppet: false
                )
            )
            func add(_ sequence: UInt64, _ at: Int64, _ step: Step) {
                order.append((conversation.run, sequence, at, step))
            }
            add(conversation.readySequence, conversation.ready, .connect(index))
            for item in conversation.items {
                guard let step = Self.step(item, index) else { continue }
                add(item.sequence, item.at, step)
            }
            if conversation.ending != .client {
                add(
                    conversation.ended.sequence,
                    conversation.ended.at,
                    conversation.ending == .lost ? .drop(index) : .close(index)
                )
            }
        }
        order.sort { ($0.run, $0.sequence) < ($1.run, $1.sequence) }
        rooms = Set(conversations.flatMap { Self.rooms($0) })
        played = Set(clients.map(\.account.normalized.description) + puppets.map(\.bare.normalized.description))
        self.clients = clients
        steps = order.map(\.step)
        let first = order.first?.at ?? 0
        times = order.map { $0.at - first }
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
