package import TapRecord

/// A stanza as an audit store keeps it.
///
/// For a carbon copy (XEP-0280) and a result of an archive (XEP-0313), the fields describe the message inside.
package struct AuditRow: Sendable, Hashable {
    /// The kind of stanza. The raw value is stored.
    package enum Kind: Int, Sendable, Hashable, CaseIterable {
        case message = 0
        case presence, iq

        package var name: String {
            switch self {
            case .message: "message"
            case .presence: "presence"
            case .iq: "iq"
            }
        }
    }

    /// How the message came to be in the session. The raw value is stored.
    package enum Source: Int, Sendable, Hashable {
        /// It was sent or received.
        case live = 0
        /// It was in a carbon copy (XEP-0280).
        case carbon
        /// It was in a result of an archive (XEP-0313).
        case archive
    }

    /// The run and the record's number in it, which identify the row.
    package var run: String
    package var sequence: UInt64
    /// The name of the xmpptap that recorded the run, the same for all of it; nil if it is not known.
    package var tap: String?
    /// The number of the session in the run.
    package var session: UInt64
    /// The time of the stanza: that of the delay (XEP-0203) with which it was received, if there is one, otherwise ``seen``.
    /// A sender can forge a delay.
    package var time: Timestamp
    /// The time at which xmpptap saw the stanza.
    package var seen: Timestamp
    /// The bare address of the session's user.
    package var account: String
    /// The resource of the account; nil if it is not known.
    package var resource: String?
    /// The bare address of the other end: a contact, a room or a server. Nil if the stanza does not name it: it is for the
    /// account itself, or from it (RFC 6120 §8.1).
    package var peer: String?
    /// The resource of the peer, in a room the nickname.
    package var peerResource: String?
    /// `send` if the account sent the stanza, also from another of its clients.
    package var direction: Direction
    package var kind: Kind
    package var source = Source.live
    package var type: String?
    package var id: String?
    /// The name and namespace of the first child, as `{namespace}name`.
    package var payload: String?
    package var body: String?
    package var subject: String?
    package var thread: String?
    /// The id that an archive gave the message (XEP-0359), and the archive's address.
    package var stanzaID: String?
    package var stanzaBy: String?
    /// The sender's id of the message (XEP-0359); nil if it is ``id``.
    package var originID: String?
    /// Identifies the message among its copies; see ``MessageKey``. Nil if the other fields do so: if the row has the body, or the stanza
    /// has none.
    package var copyKey: [UInt8]?
    /// Number of bytes on the wire.
    package var size: Int
    /// The action of a rule or of xmpptap on the stanza, and the rule; nil if there was none.
    package var action: String?
    package var rule: String?
    /// The condition of an error.
    package var condition: String?
    /// Time between the request and this answer, in nanoseconds.
    package var roundTrip: Int64?
    /// The stanza as recorded; nil if the store keeps no XML.
    package var xml: String?
    /// The avatars and vCards in the stanza, which other tables contain: a stored row has none.
    package var profiles: [AuditProfile] = []

    /// Creates a row with the fields that every row has.
    package init(
        run: String,
        sequence: UInt64,
        session: UInt64,
        time: Timestamp,
        account: String,
        direction: Direction,
        kind: Kind,
        size: Int
    ) {
        self.run = run
        self.sequence = sequence
        self.session = session
        self.time = time
        seen = time
        self.account = account
        self.direction = direction
        self.kind = kind
        self.size = size
    }

    /// Whether the message is one of a room (XEP-0045).
    package var isOfRoom: Bool { kind == .message && type == "groupchat" }

    /// The sender: in a room, with the nickname.
    package var sender: String {
        switch (direction, isOfRoom) {
        case (.send, _): account
        case (.recv, true): peerResource.map { "\(peer ?? "")/\($0)" } ?? peer ?? account
        case (.recv, false): peer ?? account
        }
    }

    /// The receiver.
    package var receiver: String {
        switch (direction, isOfRoom) {
        case (.send, _), (.recv, true): peer ?? account
        case (.recv, false): account
        }
    }
}
