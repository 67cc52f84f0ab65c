internal import XMPPCore

/// The stanzas that set up a server before a replay: the rosters and subscriptions that the recording began with.
struct Preparation {
    /// A stanza that an account sends.
    struct Sending {
        let account: JID
        let stanza: [UInt8]
    }

    /// The accounts that send stanzas, as recorded bare JIDs.
    private(set) var accounts: [JID] = []
    /// The stanzas, in phases: the server must have handled one phase before the next is sent.
    private(set) var phases: [[Sending]] = []

    /// The id of requests that remove a contact, which may fail with `item-not-found`.
    private static let removingID = "prepare-remove"

    /// Creates the stanzas that set up the recorded rosters.
    ///
    /// Played accounts are first removed from all rosters: contacts that an earlier replay added would change the
    /// result of this one. Other contacts are not removed.
    ///
    /// - Parameters:
    ///   - conversations: The sessions with rosters to set up.
    ///   - played: All accounts that can log in, as recorded bare JIDs.
    init(_ conversations: [RecordedConversation], played: [JID]) {
        var removals: [Sending] = []
        var contacts: [Sending] = []
        /// Accounts whose recorded roster is known.
        var known: Set<JID> = []
        /// Presence subscriptions to set up.
        var subscriptions: [(watcher: JID, watched: JID)] = []
        for conversation in conversations {
            guard let account = conversation.account, let roster = conversation.roster, known.insert(account).inserted
            else { continue }
            for (index, other) in played.enumerated() where other != account && !played[..<index].contains(other) {
                removals.append(Sending(account: account, stanza: Self.removing(other)))
            }
            for contact in roster {
                contacts.append(Sending(account: account, stanza: Self.setting(contact)))
                guard let jid = JID(contact.jid)?.bare, played.contains(jid) else { continue }
                func add(_ watcher: JID, _ watched: JID) {
                    guard !subscriptions.contains(where: { $0.watcher == watcher && $0.watched == watched }) else {
                        return
                    }
                    subscriptions.append((watcher, watched))
                }
                if contact.subscription == "to" || contact.subscription == "both" { add(account, jid) }
                if contact.subscription == "from" || contact.subscription == "both" { add(jid, account) }
            }
        }
        phases = [
            removals, contacts,
            subscriptions.map { Sending(account: $0.watcher, stanza: Self.presence("subscribe", to: $0.watched)) },
            subscriptions.map { Sending(account: $0.watched, stanza: Self.presence("subscribed", to: $0.watcher)) },
        ].filter { !$0.isEmpty }
        for sending in phases.joined() where !accounts.contains(sending.account) { accounts.append(sending.account) }
    }

    /// Returns the reason, as a clause of a message, if a stanza is an error for one of the preparation's stanzas.
    /// Returns nil for other stanzas, and if the contact to remove was not in the roster.
    static func refusal(_ answer: StanzaForm) -> String? {
        guard answer.type == "error" else { return nil }
        let condition = answer.element.child("error", .client)?.firstChild?.name ?? "no condition"
        guard answer.id != removingID || condition != "item-not-found" else { return nil }
        guard answer.kind == .presence else { return "the server refused a roster item (\(condition))" }
        return "the server refused a subscription\(answer.from.map { " to \($0)" } ?? "") (\(condition))"
    }

    private static func setting(_ contact: RecordedConversation.Contact) -> [UInt8] {
        XMLWriter.bytes {
            $0.element("iq", ["type": "set", "id": "prepare"]) {
                $0.element("query", .roster) {
                    $0.element("item", ["jid": contact.jid, "name": contact.name]) {
                        for group in contact.groups { $0.element("group", text: group) }
                    }
                }
            }
        }
    }

    private static func removing(_ contact: JID) -> [UInt8] {
        XMLWriter.bytes {
            $0.element("iq", ["type": "set", "id": removingID]) {
                $0.element("query", .roster) {
                    $0.element("item", ["jid": contact.description, "subscription": "remove"])
                }
            }
        }
    }

    private static func presence(_ type: String, to jid: JID) -> [UInt8] {
        XMLWriter.bytes { $0.element("presence", ["type": type, "to": jid.description]) }
    }
}
