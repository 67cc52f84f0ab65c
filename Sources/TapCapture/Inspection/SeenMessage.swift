internal import TapRecord
internal import XMPPCore

/// A message in the stream of one session.
struct MessageSighting {
    let session: UInt64
    /// A hash of the session's full JID, which costs less than the text.
    let client: UInt32
    /// A hash of the session's account.
    let account: UInt32
    /// The lower half of the record's number; 0 if it is not known.
    let sequence: UInt32
    let isSent: Bool
    /// Whether the session is that of the message's sender.
    let isOwn: Bool
    /// A hash of the message's unique id (XEP-0359): of a sent message the origin-id, of a received one the stanza-id of
    /// the account or room. 0 if there is none.
    let uniqueID: UInt32

    init(_ record: borrowing Record, _ content: Span<UInt8>, _ direction: Direction, isOwn: Bool) {
        uniqueID = record.uniqueID(content, direction).map { UInt32(truncatingIfNeeded: $0.hashValue) } ?? 0
        session = record.session
        sequence = UInt32(truncatingIfNeeded: record.sequence)
        isSent = direction == .send
        self.isOwn = isOwn
        // Sessions without an address have nothing in common.
        let jid = record.jid ?? "\(session)"
        client = UInt32(truncatingIfNeeded: jid.hashValue)
        account = UInt32(truncatingIfNeeded: jid.prefix { $0 != "/" }.hashValue)
    }
}

/// A message, with the properties by which its copies are recognised.
struct SeenMessage {
    /// Maximum number of messages of which copies are looked for, if they have the same id, text and sender.
    static let maximumCount = 4
    /// Copies of a message lie within this time of each other, in nanoseconds, as in an audit store: five minutes. After
    /// that, a client may use an id again.
    static let copyTime: UInt64 = 300_000_000_000
    /// Two proxies on the way of a message see it within this time, in nanoseconds: 10 seconds.
    static let proxyTime: UInt64 = 10_000_000_000
    /// Maximum number of sessions that are remembered. A room can have many.
    private static let maximumSightings = 16

    /// The position of the record that is shown: that of the sender, if there is one.
    private(set) var position: Int
    /// The time of the first sighting, or of its delay (XEP-0203), in nanoseconds.
    let time: Int64
    private(set) var sightings: [MessageSighting]
    /// Whether xmpptap has dropped or edited it at ``position``.
    var isChanged: Bool

    init(_ sighting: MessageSighting, at position: Int, _ time: Int64, isChanged: Bool) {
        self.position = position
        self.time = time
        self.isChanged = isChanged
        sightings = [sighting]
    }

    /// Adds a copy.
    ///
    /// - Returns: Whether it replaces the record at ``position``: the receiver's session may be recorded first, but a
    ///   message belongs to its sender.
    mutating func add(_ sighting: MessageSighting, at position: Int) -> Bool {
        let isFirst = sighting.isSent && !sightings.contains { $0.isSent }
        // Without the sender's, another message of the same session would seem a copy.
        if isFirst || sightings.count < Self.maximumSightings { sightings.append(sighting) }
        if isFirst { self.position = position }
        return isFirst
    }
}

extension Record {
    private static let delayNamespace = Array("urn:xmpp:delay".utf8)
    private static let stanzaIDNamespace = Array("urn:xmpp:sid:0".utf8)

    /// Returns the time of a message's delay (XEP-0203); nil if it has none.
    func delay(_ content: Span<UInt8>) -> Timestamp? {
        find("delay", .delay, Self.delayNamespace, content) { reader, item in
            reader.value(of: "stamp", item).flatMap { Timestamp(rfc3339: $0) }
        }
    }

    /// Returns the id (XEP-0359) that the client has given to a message that it sends, or that a room or the server of the
    /// account has given to a received one; nil if there is none.
    fileprivate func uniqueID(_ content: Span<UInt8>, _ direction: Direction) -> String? {
        guard direction == .recv else {
            return find("origin-id", .stanzaID, Self.stanzaIDNamespace, content) { reader, item in
                reader.value(of: "id", item)
            }
        }
        let isRoom = type.map { content.slice($0).equals("groupchat") } ?? false
        guard
            let owner = isRoom ? from.map({ content.slice($0).bareText }) : jid.map({ String($0.prefix { $0 != "/" }) })
        else { return nil }
        // Anyone can add an id in the name of another entity, except of the account and the room, which replace it.
        return find("stanza-id", .stanzaID, Self.stanzaIDNamespace, content) { reader, item in
            reader.value(of: "by", item) == owner ? reader.value(of: "id", item) : nil
        }
    }

    /// Calls `body` at each child of a name and namespace, until it returns a value. A child of a child is not about the
    /// message.
    ///
    /// - Parameter text: The namespace as text.
    private func find<Value>(
        _ name: StaticString,
        _ namespace: Namespace,
        _ text: [UInt8],
        _ content: Span<UInt8>,
        _ body: (borrowing ItemReader, Span<UInt8>) -> Value?
    ) -> Value? {
        guard let xml else { return nil }
        let item = content.slice(xml)
        guard item.contains(text.span) else { return nil }
        var reader = ItemReader()
        reader.begin()
        while let token = reader.next(item) {
            switch token {
            case .start:
                guard reader.depth == 2, reader.namespace == namespace, item.slice(reader.name).equals(name) else {
                    continue
                }
                if let value = body(reader, item) { return value }
            case .fault: return nil
            case .text, .section, .end: continue
            }
        }
        return nil
    }
}
