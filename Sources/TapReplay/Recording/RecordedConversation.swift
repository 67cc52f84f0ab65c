internal import TapRecord
package import XMPPCore

/// The part of a recorded session after its login, for a replay.
package struct RecordedConversation: Sendable {
    /// How the session ended.
    package enum Ending: Sendable, Hashable {
        /// The client closed its stream.
        case client
        /// The server closed its stream.
        case server
        /// The connection was lost, or cut by the proxy.
        case lost
        /// The recording ends before the session.
        case open
    }

    /// A reason why a conversation cannot be replayed exactly.
    package enum Fault: Sendable, Hashable {
        /// The session has neither a completed login nor one that the server refused: it began before the recording, or
        /// was encrypted.
        case withoutLogin
        /// The session is encrypted, and TLS was not intercepted.
        case encrypted
        /// The recording lacks the content of this number of items: the log level was too low, a filter excluded them,
        /// or they were too long.
        case lacksItems(Int)
        /// Records were dropped, or lines of the file are missing or damaged.
        case incomplete
        /// A record comes after one with a higher number.
        case disordered(record: UInt64, after: UInt64)
        /// An answer comes before the request that it answers. Both are given by their record numbers.
        case answeredEarly(answer: UInt64, request: UInt64)
    }

    /// A contact of the recorded roster.
    package struct Contact: Sendable, Hashable {
        /// The address as written.
        package var jid: String
        /// The name; nil if it has none.
        package var name: String?
        /// `none`, `to`, `from` or `both`.
        package var subscription: String
        /// The contact's groups.
        package var groups: [String]
    }

    /// The number of the run within the files, from 1: each run counts its sessions from 1.
    package let run: Int
    /// The number of the session within the run.
    package let number: UInt64
    /// The bound full JID; the account if the server refused the login; nil if neither is known.
    package internal(set) var jid: JID?
    /// The SASL condition with which the server refused the login (RFC 6120 §6.5), such as `not-authorized`; nil if the
    /// login was completed.
    package internal(set) var refusal: String?
    /// The resource that the client requested; nil if the server chose it.
    package internal(set) var resource: String?
    /// The stream features that the server offered last before the login was complete; nil if they were not recorded.
    package internal(set) var features: [UInt8]?
    /// The offer of the server before the login was complete.
    package internal(set) var offer = ServerOffer()
    /// The namespaces that the client enabled inline with its login (XEP-0386): carbons, stream management.
    package internal(set) var inlineFeatures: [Namespace] = []
    /// The `xml:lang` of the client's last stream header; nil if it had none.
    package internal(set) var language: String?
    /// The items after the login, in the order of the recording.
    package internal(set) var items: [RecordedItem] = []
    /// Time of the completed login, in nanoseconds since the run began.
    package internal(set) var ready: Int64 = 0
    /// The number of the record of the completed login.
    package internal(set) var readySequence: UInt64 = 0
    /// Time and record number of the end; those of the last record if the session is open.
    package internal(set) var ended: (at: Int64, sequence: UInt64) = (0, 0)
    /// How the session ended.
    package internal(set) var ending = Ending.open
    /// The number of the session of the same run that this one resumed (XEP-0198).
    package internal(set) var resumes: UInt64?
    /// The roster as the server first sent it, without contacts that the client had changed before; nil if it was not
    /// requested.
    package internal(set) var roster: [Contact]?
    /// The reasons why the conversation cannot be replayed exactly; empty if it can.
    package internal(set) var faults: [Fault] = []

    /// Whether the conversation can be replayed.
    package var isComplete: Bool { faults.isEmpty }
    /// The bare JID of its account.
    package var account: JID? { jid?.bare }
    /// The domain of its account.
    package var domain: String? { jid?.domain }

    init(run: Int, number: UInt64) {
        self.run = run
        self.number = number
    }
}

extension RecordedConversation {
    /// Joins each conversation that resumed an earlier one (XEP-0198) to the earlier one: for the peers, both form one
    /// stream.
    ///
    /// Items that were sent again after the resumption are included once.
    package static func joined(_ conversations: [RecordedConversation]) -> [RecordedConversation] {
        struct Key: Hashable {
            let run: Int
            let number: UInt64
        }
        var joined: [RecordedConversation] = []
        var places: [Key: Int] = [:]
        for conversation in conversations {
            let earlier = conversation.resumes.flatMap { places[Key(run: conversation.run, number: $0)] }
            guard let earlier, joined[earlier].jid == conversation.jid else {
                places[Key(run: conversation.run, number: conversation.number)] = joined.count
                joined.append(conversation)
                continue
            }
            places[Key(run: conversation.run, number: conversation.number)] = earlier
            joined[earlier].append(conversation)
        }
        return joined
    }

    /// Appends the conversation that resumed this one.
    private mutating func append(_ later: RecordedConversation) {
        struct Sent: Hashable {
            let direction: Direction
            let kind: RecordedItem.Kind
            let addresses: [String?]

            init(_ item: RecordedItem) {
                (direction, kind) = (item.direction, item.kind)
                addresses = [item.id, item.type, item.from, item.to]
            }
        }
        // Only the connection ended, not the stream.
        items.removeAll { $0.kind == .end || $0.kind == .nonza && $0.name == "error" }
        let sent = Set(items.lazy.filter { $0.id != nil }.map { Sent($0) })
        items += later.items.filter { !sent.contains(Sent($0)) }
        (ended, ending) = (later.ended, later.ending)
        roster = roster ?? later.roster
        faults += later.faults
    }
}
