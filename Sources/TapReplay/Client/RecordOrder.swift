internal import XMPPCore

/// The order of the recorded actions in a replay, which is the order in which the server handled them.
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
            case .prepare, .awaitHandling: continue
            }
            ranks[Key(run: place.run, sequence: place.sequence, action: action)] = rank
        }
    }

    /// Returns the position of the action that a record describes; nil if a replay skips the action.
    func rank(_ action: Action, _ sequence: UInt64, of conversation: RecordedConversation) -> Int? {
        ranks[Key(run: conversation.run, sequence: sequence, action: action)]
    }
}
