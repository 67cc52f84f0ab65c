package import TapRecord
internal import XMPPCore

/// Reads conversations from the records of logs, captures and client logs.
///
/// Pass headers and records in file order. ``RecordedConversation/faults`` lists the reasons why a conversation is
/// unusable.
package struct ConversationReader {
    private struct Key: Hashable {
        let run: Int
        let number: UInt64
    }

    /// The state of a session while its records are read.
    fileprivate struct Reading {
        var conversation: RecordedConversation
        var isReady = false
        var isEncrypted = false
        /// Number of items after login without content.
        var lacking = 0
        var isTorn = false
        /// The number of the last record.
        var last: UInt64 = 0
        /// The answers before which no request was sent: by id, the number of the answer's record.
        var unasked: [String: UInt64] = [:]
        var requests: Set<String> = []
        /// The first record that is out of order.
        var disorder: RecordedConversation.Fault?
        /// The namespace declarations of the stream headers.
        var roots: [Direction: [UInt8]] = [:]
        /// Contacts that the client changed before it received the roster.
        var changed: Set<String> = []
        var closed: Direction?
        /// The last refusal of a login: the account, the condition, and the record.
        var refusal: (account: JID, condition: String, at: Int64, sequence: UInt64)?
    }

    private let parser = StanzaParser()
    private var parts = SharedParts()
    private var runs: [String: Int] = [:]
    private var run = 0
    private var order: [Key] = []
    private var readings: [Key: Reading] = [:]
    /// Runs with missing records: sessions that are still open may have lost some.
    private var lossy: Set<Int> = []
    /// Runs in which a trigger limited the recording to the time around matches: a session without its end lacks
    /// records.
    private var windowed: Set<Int> = []

    /// Creates a reader without records.
    package init() {}

    /// Handles a header: the records that follow belong to its run.
    package mutating func add(_ header: RecordHeader) {
        run = runs[header.run, default: runs.count + 1]
        runs[header.run] = run
        if header.filter != nil { recordLoss() }
        if header.trigger != nil { windowed.insert(run) }
    }

    /// Handles missing records of the current run.
    package mutating func recordLoss() {
        for key in order where key.run == run && readings[key]?.conversation.ending == .open {
            readings[key]?.isTorn = true
        }
        lossy.insert(run)
    }

    /// Handles the next record.
    package mutating func add(_ line: RecordLine) {
        let record = line.record
        guard record.session != 0 else { return }
        let key = Key(run: run, number: record.session)
        if readings[key] == nil {
            order.append(key)
            readings[key] = Reading(conversation: RecordedConversation(run: run, number: record.session))
            readings[key]?.isTorn = lossy.contains(run)
        }
        guard var reading = readings.removeValue(forKey: key) else { return }
        if record.code == Record.Code.recordsOmitted { reading.isTorn = true }
        reading.add(line, parser, &parts)
        readings[key] = reading
    }

    /// Returns all conversations in the order in which their sessions began; incomplete ones have a fault.
    package func conversations() -> [RecordedConversation] {
        order.compactMap { readings[$0]?.finished(isWindowed: windowed.contains($0.run)) }
    }
}

extension ConversationReader.Reading {
    fileprivate mutating func add(_ line: RecordLine, _ parser: StanzaParser, _ parts: inout SharedParts) {
        let record = line.record
        if record.sequence < last, disorder == nil { disorder = .disordered(record: record.sequence, after: last) }
        last = record.sequence
        if conversation.ending == .open { conversation.ended = (record.monotonic, record.sequence) }
        switch record.code {
        case Record.Code.sessionReady:
            isReady = true
            conversation.jid = record.jid.flatMap { JID($0) }
            conversation.ready = record.monotonic
            conversation.readySequence = record.sequence
            if case .integer(let number)? = record.details?[Record.Detail.resumes] {
                conversation.resumes = UInt64(exactly: number)
            }
            return
        case Record.Code.tlsOpened where record.leg != .client: conversation.offer.isEncrypted = true
        case Record.Code.sessionEnded:
            conversation.ending = closed.map { $0 == .send ? .client : .server } ?? .lost
            return
        default: break
        }
        recordRefusal(record)
        guard let direction = record.direction else { return }
        switch record.kind {
        case .streamOpen: open(line, direction)
        case .bytes: isEncrypted = true
        case .stanza, .element, .streamClose:
            guard isReady else { return recordBinding(line, parser) }
            guard let item = RecordedItem(line, root: roots[direction] ?? StanzaForm.clientDeclarations, &parts)
            else {
                lacking += 1
                return
            }
            if item.kind == .end { closed = closed ?? direction }
            conversation.items.append(item)
            checkOrder(item)
            recordRoster(item, parser)
        default: break
        }
    }

    /// Checks that requests come before their answers (RFC 6120 §8.2.3).
    private mutating func checkOrder(_ item: RecordedItem) {
        guard disorder == nil, item.kind == .iq, item.origin == .peer, let id = item.id else { return }
        if item.isAnswer, item.direction == .recv, !requests.contains(id) {
            unasked[id] = item.sequence
        } else if !item.isAnswer, item.direction == .send {
            requests.insert(id)
            guard let answer = unasked[id] else { return }
            disorder = .answeredEarly(answer: answer, request: item.sequence)
        }
    }

    private mutating func recordRefusal(_ record: Record) {
        guard record.code == Record.Code.saslFailure, record.direction == .recv, let condition = record.condition,
            let user = record.user, let domain = record.domain, let account = JID("\(user)@\(domain)")
        else { return }
        refusal = (account, condition, record.monotonic, record.sequence)
    }

    private mutating func open(_ line: RecordLine, _ direction: Direction) {
        guard let xml = line.record.xml else { return }
        roots[direction] = line.declarations
        if direction == .send { conversation.language = Self.language(line.content.span.slice(xml).string()) }
    }

    /// Returns the value of `xml:lang` in a stream header.
    private static func language(_ header: String) -> String? {
        guard let name = header.firstRange(of: "xml:lang=") else { return nil }
        let value = header[name.upperBound...]
        guard let quote = value.first else { return nil }
        return String(value.dropFirst().prefix { $0 != quote })
    }

    private mutating func recordBinding(_ line: RecordLine, _ parser: StanzaParser) {
        if line.record.direction == .recv, let xml = line.record.xml, let name = line.record.name,
            line.content.span.slice(name).equals("features")
        {
            let features = Array(line.content[xml.range])
            conversation.features = features
            if line.record.origin == .peer,
                let element = try? parser.parse(
                    features.span,
                    root: roots[.recv] ?? StanzaForm.clientDeclarations
                ), let offered = StreamFeatures(element)
            {
                conversation.offer.add(offered)
            }
        }
        if line.record.direction == .send, let xml = line.record.xml, let name = line.record.name,
            line.content.span.slice(name).equals("authenticate"),
            let login = try? parser.parse(
                line.content.span.slice(xml),
                root: roots[.send] ?? StanzaForm.clientDeclarations
            ), let bind = login.child("bind", .bind2)
        {
            conversation.inlineFeatures = [.carbons, .streamManagement].filter { bind.child("enable", $0) != nil }
        }
        guard line.record.direction == .send, line.record.payloadNamespace == .bind, let xml = line.record.xml,
            let bind = try? parser.parse(
                line.content.span.slice(xml),
                root: roots[.send] ?? StanzaForm.clientDeclarations
            ).child("bind", .bind)
        else { return }
        conversation.resource = bind.childText("resource", .bind)
    }

    private mutating func recordRoster(_ item: RecordedItem, _ parser: StanzaParser) {
        guard conversation.roster == nil, item.kind == .iq, item.payloadNamespace == .roster, let bytes = item.sent,
            let query = try? parser.parse(bytes.span, root: item.root).child("query", .roster)
        else { return }
        let contacts = query.children("item", .roster)
        guard item.direction == .recv, item.type == "result" else {
            if item.direction == .send, item.type == "set" {
                changed.formUnion(contacts.compactMap { $0.attribute("jid") })
            }
            return
        }
        conversation.roster = contacts.compactMap { contact in
            guard let jid = contact.attribute("jid"), !changed.contains(jid) else { return nil }
            return RecordedConversation.Contact(
                jid: jid,
                name: contact.attribute("name"),
                subscription: contact.attribute("subscription") ?? "none",
                groups: contact.children("group", .roster).map(\.text)
            )
        }
    }

    fileprivate func finished(isWindowed: Bool) -> RecordedConversation {
        var conversation = conversation
        if !isReady, let refusal {
            (conversation.jid, conversation.refusal) = (refusal.account, refusal.condition)
            (conversation.ready, conversation.readySequence) = (refusal.at, refusal.sequence)
            return conversation
        }
        if !isReady || conversation.jid == nil {
            conversation.faults.append(isEncrypted ? .encrypted : .withoutLogin)
        }
        if lacking > 0 { conversation.faults.append(.lacksItems(lacking)) }
        if let disorder { conversation.faults.insert(disorder, at: 0) }
        if isTorn || isWindowed && conversation.ending == .open { conversation.faults.append(.incomplete) }
        return conversation
    }
}

extension RecordLine {
    /// The declarations of a stream header's record, as ``StanzaParser/parse(_:root:)`` expects them; empty for other
    /// records.
    package var declarations: [UInt8] {
        guard record.kind == .streamOpen, let xml = record.xml else { return [] }
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(content.span.slice(xml))
        while decoder.next() != nil {}
        return decoder.declarations
    }
}
