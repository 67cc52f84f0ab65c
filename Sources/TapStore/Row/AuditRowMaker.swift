internal import TapCore
package import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Makes rows of the records of a run; used by one thread at a time.
package final class AuditRowMaker {
    private let run: String
    private let content: StoredContent
    private var reader = StanzaFieldReader()
    private var profileReader = ProfileReader()
    private var addresses = AddressCache()

    /// - Parameters:
    ///   - run: The word of the run, from the header of the records.
    ///   - content: What rows contain of stanzas.
    package init(run: String, content: StoredContent = StoredContent()) {
        self.run = run
        self.content = content
    }

    /// Returns what a store keeps of a record; nil for nothing.
    ///
    /// - Parameter content: The texts of the record.
    package func entry(_ record: borrowing Record, content: Span<UInt8>) -> AuditEntry? {
        record.kind == .stanza
            ? row(record, content: content).map { .stanza($0) } : session(record).map { .session($0) }
    }

    /// Returns what a store keeps of a stored record; see ``entry(_:content:)``.
    package func entry(_ line: borrowing RecordLine) -> AuditEntry? {
        entry(line.record, content: line.content.span)
    }

    /// Whether a record can have an entry.
    static func isKept(_ record: borrowing Record) -> Bool {
        record.kind == .stanza ? record.jid != nil && record.direction != nil : isSessionRecord(record)
    }

    private static func isSessionRecord(_ record: borrowing Record) -> Bool {
        guard record.session != 0, let code = record.code else { return false }
        return code == Record.Code.sessionBegan || code == Record.Code.sessionReady || code == Record.Code.loginFailed
            || code == Record.Code.sessionEnded
    }

    /// Returns what a session's record says of it; nil for another record.
    func session(_ record: borrowing Record) -> AuditSession? {
        guard Self.isSessionRecord(record), let code = record.code else { return nil }
        var session = AuditSession(run: run, number: record.session)
        session.account = record.jid.map { addresses[$0].bare } ?? Self.claimedAccount(record)
        session.client = record.remote
        session.source = RecordPlace(sequence: record.sequence, time: record.time)
        switch code {
        case Record.Code.sessionBegan: session.began = record.time
        case Record.Code.loginFailed:
            session.cause = record.details?[Record.Detail.cause]?.text
            session.finding = record.details?[Record.Detail.finding]?.text
        case Record.Code.sessionEnded:
            session.ended = record.time
            session.closeReason = record.details?[Record.Detail.closeReason]?.text
        default: break
        }
        return session
    }

    /// Returns the account that a client names in its login, which need not exist; nil if it has named none.
    private static func claimedAccount(_ record: borrowing Record) -> String? {
        guard let user = record.user else { return nil }
        guard let domain = record.domain, !user.contains("@") else { return user }
        return "\(user)@\(domain)"
    }

    /// Returns the row of a record; nil if it is no stanza, or its session has no known account.
    ///
    /// - Parameter content: The texts of the record.
    package func row(_ record: borrowing Record, content: Span<UInt8>) -> AuditRow? {
        guard record.kind == .stanza, let direction = record.direction, let jid = record.jid else { return nil }
        guard let name = record.name, let kind = AuditRow.Kind(content.slice(name)) else { return nil }
        let account = addresses[jid]
        var row = AuditRow(
            run: run,
            sequence: record.sequence,
            session: record.session,
            time: record.time,
            account: account.bare,
            direction: direction,
            kind: kind,
            size: Int(clamping: record.length)
        )
        row.tap = self.content.tap
        row.resource = account.resource
        row.type = record.type.map { content.slice($0).string() }
        row.id = record.id.map { content.slice($0).string() }
        if record.payloadName != nil { row.payload = record.payloadText(content) }
        row.action = record.action
        row.rule = record.rule
        row.condition = record.condition
        row.roundTrip = record.roundTrip
        setPeer((direction == .send ? record.to : record.from).map { content.slice($0).string() }, &row)
        if let xml = record.xml {
            if self.content.includesXML { row.xml = content.slice(xml).string() }
            if self.content.includesAvatars,
                ProfileReader.isRead(kind, direction, type: row.type, payload: record.payloadNamespace),
                let contact = Self.owner(of: row)
            {
                row.profiles = profileReader.read(content.slice(xml), of: contact)
            }
            if kind == .message || row.type == "error" { read(content.slice(xml), &row) }
        }
        return row
    }

    /// Returns the row of a stored record; see ``row(_:content:)``.
    package func row(_ line: borrowing RecordLine) -> AuditRow? { row(line.record, content: line.content.span) }

    /// Returns the address to which the avatar or vCard in a stanza belongs.
    ///
    /// A client can publish for others, such as a room (XEP-0486), but the server may refuse that: nil, the contact's own is seen when
    /// somebody requests it.
    private static func owner(of row: AuditRow) -> String? {
        guard let peer = row.peer, peer != row.account else { return row.account }
        guard row.direction == .recv else { return nil }
        // Only occupants of rooms have a resource here: a vCard is requested of the bare address (XEP-0054 §3.3).
        return row.peerResource.map { "\(peer)/\($0)" } ?? peer
    }

    private func setPeer(_ text: String?, _ row: inout AuditRow) {
        guard let text else { return (row.peer, row.peerResource) = (nil, nil) }
        let address = addresses[text]
        (row.peer, row.peerResource) = (address.bare, address.resource)
    }

    private func read(_ item: Span<UInt8>, _ row: inout AuditRow) {
        guard let fields = reader.read(item) else { return }
        // What a client sends is not delayed: it could give its messages any time.
        if row.direction == .recv { setTime(fields.delay, &row) }
        row.condition = row.condition ?? fields.condition
        guard row.kind == .message else { return }
        if let (inner, delay, isCarbon) = fields.forwarded, setForwarded(inner, isCarbon ? .carbon : .archive, &row) {
            setTime(delay, &row)
            return
        }
        setMessage(fields, &row)
    }

    /// Sets the fields to those of the message inside another; returns false if the sender of the outer one must not speak
    /// for that of the inner one.
    ///
    /// The account's own server sends carbon copies and results of the account's archive, a room those of its own messages
    /// (XEP-0280 §11, XEP-0313). Anybody else could put words into a user's mouth.
    private func setForwarded(_ message: StanzaFields, _ source: AuditRow.Source, _ row: inout AuditRow) -> Bool {
        guard row.direction == .recv else { return false }
        let sender = message.from.map { addresses[$0].bare }
        if let outer = row.peer, outer != row.account {
            guard source == .archive, sender == outer else { return false }
        }
        row.source = source
        row.direction = sender == nil || sender == row.account ? .send : .recv
        row.type = message.type
        row.id = message.id
        row.payload = message.payload
        setPeer(row.direction == .send ? message.to : message.from, &row)
        setMessage(message, &row)
        return true
    }

    private func setMessage(_ message: StanzaFields, _ row: inout AuditRow) {
        row.body = message.body
        row.subject = message.subject
        row.thread = message.thread
        row.stanzaID = message.stanzaID
        row.stanzaBy = message.stanzaBy
        row.originID = message.originID == row.id ? nil : message.originID
        // Copies have the same text, although it is not stored.
        if content.bodies != .full { row.copyKey = MessageKey(row)?.bytes }
        row.body = content.bodies.stored(row.body)
        row.subject = content.bodies.stored(row.subject)
    }

    private func setTime(_ stamp: String?, _ row: inout AuditRow) {
        if let stamp, let time = Timestamp(rfc3339: stamp) { row.time = time }
    }
}

extension AuditRow.Kind {
    /// Creates the kind of a stanza with this name; nil for another name.
    fileprivate init?(_ name: Span<UInt8>) {
        if name.equals("message") {
            self = .message
        } else if name.equals("presence") {
            self = .presence
        } else if name.equals("iq") {
            self = .iq
        } else {
            return nil
        }
    }
}

/// The parts of addresses, because the same ones occur again and again.
private struct AddressCache {
    private static let limit = 50_000

    private var parts: [ExactText: (bare: String, resource: String?)] = [:]

    /// The bare address, normalized if it is valid, and the resource.
    subscript(_ text: String) -> (bare: String, resource: String?) {
        mutating get {
            let exact = ExactText(text)
            if let known = parts[exact] { return known }
            let address = Address(text)
            let bare = address.jid.map { $0.bare.normalized.description } ?? address.bare.raw
            if parts.count >= Self.limit { parts.removeAll(keepingCapacity: true) }
            parts[exact] = (bare, address.resource)
            return (bare, address.resource)
        }
    }
}

/// The key that all copies of a message share: its sender, its receiver, the sender's id and the body; of a room, the room
/// instead of sender and receiver, since its occupants have nicknames.
///
/// The body is part of it, so that messages with different bodies are never taken for copies, whatever ids they have.
struct MessageKey {
    /// The first half of a SHA-256 digest.
    let bytes: [UInt8]

    init?(_ row: AuditRow) {
        guard let body = row.body else { return nil }
        let ends = row.isOfRoom ? [row.peer ?? ""] : [row.sender, row.receiver]
        let parts = ends + [row.originID ?? row.id ?? "", body]
        var joined: [UInt8] = []
        for part in parts {
            joined += part.utf8
            // A byte that UTF-8 does not have separates the parts.
            joined.append(0xFF)
        }
        joined.removeLast()
        guard let digest = try? OpenSSLCryptography().digest(.sha256, of: joined.span) else { return nil }
        bytes = Array(digest.prefix(16))
    }
}
