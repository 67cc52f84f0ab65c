internal import TapCore
package import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Makes rows of the records of a run.
package struct AuditRowMaker {
    private let run: String
    private let keepsXML: Bool
    private let parser = StanzaParser()

    /// The namespaces of items that were recorded without their stream header.
    private static let root = Array(" xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'".utf8)

    /// - Parameters:
    ///   - run: The word of the run, from the header of the records.
    ///   - keepsXML: Whether rows contain the stanza as recorded.
    package init(run: String, keepsXML: Bool = false) {
        self.run = run
        self.keepsXML = keepsXML
    }

    /// Returns the row of a record; nil if it is no stanza, or its session has no known account.
    package func row(_ line: RecordLine) -> AuditRow? {
        let record = line.record
        guard record.kind == .stanza, let direction = record.direction, let jid = record.jid else { return nil }
        let account = Address(jid)
        func text(_ range: ByteRange?) -> String? { range.map { line.content.span.slice($0).string() } }
        guard let kind = AuditRow.Kind.allCases.first(where: { $0.name == text(record.name) }) else { return nil }
        var row = AuditRow(
            run: run,
            sequence: record.sequence,
            session: record.session,
            time: record.time,
            account: Self.bare(account),
            direction: direction,
            kind: kind,
            size: Int(clamping: record.length)
        )
        row.resource = account.resource
        row.type = text(record.type)
        row.id = text(record.id)
        row.payload = record.payload(in: line.content)
        row.action = record.action
        row.rule = record.rule
        row.condition = record.condition
        row.roundTrip = record.roundTrip
        setPeer(text(direction == .send ? record.to : record.from), &row)
        if keepsXML { row.xml = text(record.xml) }
        if kind == .message || row.type == "error", let xml = record.xml { read(line.content.span.slice(xml), &row) }
        return row
    }

    private static func bare(_ address: Address) -> String {
        address.jid.map { $0.bare.normalized.description } ?? address.bare.raw
    }

    private func setPeer(_ text: String?, _ row: inout AuditRow) {
        guard let text else { return (row.peer, row.peerResource) = (nil, nil) }
        let address = Address(text)
        row.peer = Self.bare(address)
        row.peerResource = address.resource
    }

    private func read(_ bytes: Span<UInt8>, _ row: inout AuditRow) {
        var start = 0
        while start < bytes.count, bytes[start] != 0x3C { start += 1 }
        guard let element = try? parser.parse(bytes.extracting(start..<bytes.count), root: Self.root) else { return }
        // What a client sends is not delayed: it could give its messages any time.
        if row.direction == .recv, let delay = element.child("delay", .delay) { setTime(delay, &row) }
        if let error = element.firstChild(where: { $0.isNamed("error") }) {
            row.condition = row.condition ?? error.firstChild?.name
        }
        guard row.kind == .message else { return }
        if let (inner, source) = Self.forwarded(in: element), readForwarded(inner, source, &row) { return }
        readMessage(element, &row)
    }

    /// Returns the element that contains the message of a carbon copy, or of a result of an archive.
    private static func forwarded(in message: Element) -> (Element, AuditRow.Source)? {
        if let carbon = message.child("sent", .carbons) ?? message.child("received", .carbons) {
            return carbon.child("forwarded", .forward).map { ($0, .carbon) }
        }
        return message.child("result", .archive)?.child("forwarded", .forward).map { ($0, .archive) }
    }

    /// Reads the message inside another; returns false if the sender of the outer one must not speak for that of the inner one.
    ///
    /// The account's own server sends carbon copies and results of the account's archive, a room those of its own messages
    /// (XEP-0280 §11, XEP-0313). Anybody else could put words into a user's mouth.
    private func readForwarded(_ forwarded: Element, _ source: AuditRow.Source, _ row: inout AuditRow) -> Bool {
        guard row.direction == .recv, let message = forwarded.firstChild(where: { $0.isNamed("message") }) else {
            return false
        }
        let sender = message.attribute("from").map { Self.bare(Address($0)) }
        if let outer = row.peer, outer != row.account {
            guard source == .archive, sender == outer else { return false }
        }
        row.source = source
        if let delay = forwarded.child("delay", .delay) { setTime(delay, &row) }
        row.direction = sender == nil || sender == row.account ? .send : .recv
        row.type = message.attribute("type")
        row.id = message.attribute("id")
        row.payload = message.firstChild.map { "{\($0.namespaceURI)}\($0.name)" }
        setPeer(message.attribute(row.direction == .send ? "to" : "from"), &row)
        readMessage(message, &row)
        return true
    }

    private func readMessage(_ message: Element, _ row: inout AuditRow) {
        row.body = message.firstChild { $0.isNamed("body") && $0.isInNamespace(of: message) }?.text
        row.subject = message.firstChild { $0.isNamed("subject") && $0.isInNamespace(of: message) }?.text
        row.thread = message.firstChild { $0.isNamed("thread") && $0.isInNamespace(of: message) }?.text
        if let archived = message.child("stanza-id", .stanzaID) {
            row.stanzaID = archived.attribute("id")
            row.stanzaBy = archived.attribute("by")
        }
        let origin = message.child("origin-id", .stanzaID)?.attribute("id")
        row.originID = origin == row.id ? nil : origin
        row.copyKey = MessageKey(row).map(\.bytes)
    }

    private func setTime(_ delay: Element, _ row: inout AuditRow) {
        if let stamp = delay.attribute("stamp"), let time = Timestamp(rfc3339: stamp) { row.time = time }
    }
}

extension Record {
    /// Returns the first child as `{namespace}name`, or its name if it is in no known namespace.
    fileprivate func payload(in content: [UInt8]) -> String? {
        guard let payloadName else { return nil }
        let name = content.span.slice(payloadName).string()
        let uri = payloadURI.map { content.span.slice($0).string() } ?? "\(payloadNamespace.uri)"
        return uri.isEmpty ? name : "{\(uri)}\(name)"
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
        // A byte that UTF-8 does not have separates the parts.
        let joined = Array(parts.map { Array($0.utf8) }.joined(separator: [0xFF]))
        guard let digest = try? OpenSSLCryptography().digest(.sha256, of: joined.span) else { return nil }
        bytes = Array(digest.prefix(16))
    }
}
