internal import TapRecord
package import XMPPCore

/// Data of the server on which a recording depends, or which it changes. If the data is not restored, a replay differs.
package enum RecordingDependence: Sendable, Hashable {
    /// The account received this number of messages that the server had stored before the recording (XEP-0160).
    case storedMessages(JID, Int)
    /// The account changed its roster.
    case rosterChange(JID)
    /// The account stored data in this namespace: a node, a card, a block list, private data.
    case storedData(JID, String)
    /// The account queried an archive (XEP-0313), to which each replay adds messages.
    case archive(JID)

    /// Returns the dependences of conversations, without duplicates.
    package static func all(in conversations: [RecordedConversation]) -> [RecordingDependence] {
        let parser = StanzaParser()
        var sent: Set<String> = []
        for item in conversations.lazy.flatMap(\.items) where item.direction == .send {
            if let id = item.id { sent.insert(id) }
        }
        var found: [RecordingDependence] = []
        for conversation in conversations {
            guard let account = conversation.account else { continue }
            let stored = conversation.items.count { item in
                guard item.direction == .recv, item.kind == .message, item.id.map(sent.contains) != true,
                    let form = item.sent.flatMap({ StanzaForm($0, parser: parser, root: item.root) })
                else { return false }
                return form.isDelayed && form.type != "groupchat"
            }
            if stored > 0 { found.append(.storedMessages(account, stored)) }
            for item in conversation.items
            where item.direction == .send && item.kind == .iq && item.type == "set" {
                let dependence: RecordingDependence
                switch item.payloadNamespace {
                case .roster: dependence = .rosterChange(account)
                case .archive, .archive1, .archive0: dependence = .archive(account)
                case .vCard, .vCard4, .privateStorage, .blocking, .pubsub:
                    dependence = .storedData(account, item.payloadNamespace.uri.description)
                default: continue
                }
                if !found.contains(dependence) { found.append(dependence) }
            }
        }
        return found
    }
}
