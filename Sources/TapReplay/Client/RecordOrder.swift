internal import XMPPCore

/// The order in which a server handled what clients did in a recording, as a replay plays it.
struct RecordOrder {
    /// An action of a client, or of the server.
    enum Action: Hashable {
        case login, item, end
    }

    private struct Key: Hashable {
        let run: Int
        let sequence: UInt64
        let action: Action
    }

    private var ranks: [Key: Int] = [:]

    init(_ conversations: [RecordedConversation]) {
        var maker = ReplayScript.Maker()
        for conversation in conversations { maker.add(conversation) }
        maker.sort()
        for (rank, place) in maker.places.enumerated() {
            let action: Action
            switch place.step {
            case .connect: action = .login
            case .send, .expect: action = .item
            case .close, .end, .drop: action = .end
            case .prepare, .settle: continue
            }
            ranks[Key(run: place.run, sequence: place.sequence, action: action)] = rank
        }
    }

    /// Returns the place of an action by its record; nil if a replay leaves it out.
    func rank(_ action: Action, _ sequence: UInt64, of conversation: RecordedConversation) -> Int? {
        ranks[Key(run: conversation.run, sequence: sequence, action: action)]
    }
}
