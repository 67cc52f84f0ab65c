internal import TapRecord
internal import XMPPCore

/// The conversations of a table: messages between two accounts, or in a room, over all sessions.
struct Conversations {
    /// Maximum number of messages whose copies in other sessions are recognised.
    private static let maximumSeen = 300_000
    /// Maximum number of sessions whose end or resumption is remembered.
    private static let maximumSessions = 100_000
    /// Maximum number of records beside that of the sender which are shown with a message.
    private static let maximumOthers = 8
    /// Maximum number of bytes of the last text in the list.
    private static let maximumText = 120

    /// Namespaces of messages without a text that belong to a conversation: receipts, markers, reactions and
    /// retractions.
    private static let marks: Set<String> = [
        "urn:xmpp:receipts", "urn:xmpp:chat-markers:0", "urn:xmpp:reactions:0", "urn:xmpp:message-retract:1",
        "urn:xmpp:message-retract:0",
    ]
    /// Namespaces of messages that contain other messages.
    private static let wrappers = ["urn:xmpp:carbons:2", "urn:xmpp:mam:2", "urn:xmpp:mam:1"]

    fileprivate struct Key: Hashable {
        let first: String
        /// Empty for a room.
        let second: String
    }

    fileprivate struct Talk {
        let key: Key
        var messages: UInt64 = 0
        /// The positions of its records that the table still has.
        var positions: [Int] = []
        /// By the positions of messages, those of their other records that say what became of them: where xmpptap has dropped or
        /// edited them.
        var others: [Int: [Int]] = [:]
        /// Number of times that another record was shown with a message, or instead of it.
        var changes = 0
        /// Number of its records that the table no longer has.
        var removed = 0
        var last = 0
        var time: Int64 = 0
        var text = ""
    }

    /// Maximum number of conversations.
    private let maximumCount: Int
    /// The numbers of the conversations, which do not change when others are removed.
    private var numbers: [Key: Int] = [:]
    private var talks: [Int: Talk] = [:]
    /// The number of the next conversation.
    private(set) var next = 0
    /// The messages by the hashes of what their copies have in common. A client can use an id again, so several have one hash.
    private var seen = RecentValues<Int, [SeenMessage]>(limit: maximumSeen)
    /// The times when sessions have ended.
    private var ends = RecentValues<UInt64, Int64>(limit: maximumSessions)
    /// The first sessions of those that are resumed, by the later ones.
    private var resumed = RecentValues<UInt64, UInt64>(limit: maximumSessions)
    /// The position up to which records were forgotten.
    private var forgotten = 0
    private var body: [UInt8] = []

    /// Number of conversations that are no longer in the list; those that were continued later are counted, too.
    var omitted: Int { next - talks.count }

    /// - Parameter maximumCount: Maximum number of conversations; the latest ones are kept.
    init(maximumCount: Int = 5000) { self.maximumCount = max(1, maximumCount) }

    mutating func add(_ record: borrowing Record, _ content: Span<UInt8>, at position: Int) {
        if record.kind == .session { return addSession(record, at: position) }
        guard record.kind == .stanza, let direction = record.direction, let name = record.name,
            content.slice(name).equals("message")
        else { return }
        let payload = record.payloadText(content)
        guard !Self.wrappers.contains(where: { payload.hasPrefix("{\($0)}") }) else { return }
        let hasBody = record.readBody(content, into: &body)
        guard hasBody || Self.marks.contains(where: { payload.hasPrefix("{\($0)}") }) else { return }
        func word(_ text: String) -> String { text.cut(to: RecordSurvey.maximumText) }
        let account = word(record.jid.map { String($0.prefix { $0 != "/" }) } ?? "")
        // A client can write any address, which its server replaces or refuses. Components and servers, which have no
        // resource, send for several addresses.
        let isBound = direction == .send && record.jid?.utf8.contains(UInt8(ascii: "/")) ?? false
        let named = isBound ? nil : record.from
        let from = named.map { word(content.slice($0).bareText) } ?? (direction == .send ? account : "")
        let to = record.to.map { word(content.slice($0).bareText) } ?? account
        let isRoom = record.type.map { content.slice($0).equals("groupchat") } ?? false
        let key =
            isRoom
            ? Key(first: direction == .send ? to : from, second: "")
            : Key(first: min(from, to), second: max(from, to))
        let number = number(of: key)
        // In the sessions of its receivers, a message has the text that was sent on.
        let isEdited = record.edited != nil
        if isEdited, direction == .send { _ = record.readEditedBody(content, into: &body) }
        var text: String?
        if hasBody { text = body.span.cut(to: Self.maximumText).string() }
        // The sessions of both accounts, and of several clients of one account, contain the same message.
        if let id = record.id, !id.isEmpty {
            var hasher = Hasher()
            hasher.combine(number)
            hasher.combine(content.slice(id).string())
            // A server can add children before the first one.
            if !hasBody { hasher.combine(payload) }
            hasher.combine(body)
            // Two people can use the same id. In a room, an own message has the address of the account.
            if !isRoom { hasher.combine(from) }
            let hash = hasher.finalize()
            // A client could give its messages any time.
            let delay = direction == .recv ? record.delay(content) : nil
            let sighting = MessageSighting(record, content, direction, isOwn: isBound)
            var messages = seen[hash] ?? []
            let time = (delay ?? record.time).nanoseconds
            if let place = place(of: sighting, time, isDelayed: delay != nil, in: messages) {
                let old = messages[place].position
                let isChange = record.action != nil || isEdited
                if messages[place].add(sighting, at: position) {
                    talks[number]?.replace(old, by: position, keepsOld: messages[place].isChanged || isEdited)
                    messages[place].isChanged = isChange
                } else if isChange || messages[place].isChanged {
                    talks[number]?.addOther(position, to: old, limit: Self.maximumOthers)
                }
                seen.store(messages, for: hash, at: position)
                return
            }
            let isChanged = record.action != nil || isEdited
            messages.append(SeenMessage(sighting, at: position, time, isChanged: isChanged))
            if messages.count > SeenMessage.maximumCount { messages.removeFirst() }
            seen.store(messages, for: hash, at: position)
        }
        talks[number]?.add(at: position, time: record.time.nanoseconds, text)
    }

    /// Remembers when sessions end, and which ones they resume.
    private mutating func addSession(_ record: borrowing Record, at position: Int) {
        let session = record.session
        switch record.code {
        case Record.Code.sessionEnded: ends.store(record.time.nanoseconds, for: session, at: position)
        case Record.Code.sessionReady:
            guard let text = record.details?[Record.Detail.resumes]?.text, let number = UInt64(text) else { return }
            let earlier = TableRuns.session(number, of: TableRuns.run(of: session))
            resumed.store(root(of: earlier), for: session, at: position)
        default: break
        }
    }

    /// Returns the first of the sessions that resume each other.
    private func root(of session: UInt64) -> UInt64 { resumed[session] ?? session }

    /// Returns the index of the message that a sighting is a copy of; nil if it is of a new message.
    private func place(
        of sighting: MessageSighting,
        _ time: Int64,
        isDelayed: Bool,
        in messages: [SeenMessage]
    ) -> Int? {
        var best: (place: Int, distance: UInt64)?
        for (place, message) in messages.enumerated() {
            let distance = (time > message.time ? time &- message.time : message.time &- time).magnitude
            guard distance <= SeenMessage.copyTime, distance <= best?.distance ?? .max,
                isDelayed || message.sightings.allSatisfy({ isCopy(sighting, of: $0, time, distance) })
            else { continue }
            best = (place, distance)
        }
        return best?.place
    }

    /// Returns whether two sightings can be of the same message.
    private func isCopy(_ new: MessageSighting, of old: MessageSighting, _ time: Int64, _ distance: UInt64) -> Bool {
        guard new.isSent == old.isSent else { return true }
        // The same text and id again in a session is another message, unless it is the same record in two files.
        guard new.session != old.session else { return new.sequence == old.sequence && new.sequence > 0 }
        // After a resumption, stanzas that may have been lost are sent again.
        guard root(of: new.session) != root(of: old.session) else { return true }
        guard new.isOwn && old.isOwn || new.account == old.account else { return true }
        if new.client == old.client, new.uniqueID != 0, old.uniqueID != 0 {
            guard new.uniqueID == old.uniqueID else { return false }
            // The clocks of two proxies can differ. A script with fixed ids can run again through the same proxy.
            if !new.isSent || TableRuns.run(of: new.session) != TableRuns.run(of: old.session) { return true }
        }
        // The next run of a client with fixed ids.
        if let end = ends[old.session], end < time { return false }
        // Two clients send different messages, even of one account. Several proxies on the way see the same one.
        guard new.client == old.client else { return !(new.isOwn && old.isOwn) }
        return distance <= SeenMessage.proxyTime
    }

    /// Returns the number of a conversation, which is created if there is none.
    private mutating func number(of key: Key) -> Int {
        if let number = numbers[key] { return number }
        if talks.count >= maximumCount {
            let oldest = talks.sorted { $0.value.last < $1.value.last }.prefix(max(1, maximumCount / 8))
            for (number, _) in oldest { remove(number) }
        }
        let number = next
        next += 1
        numbers[key] = number
        talks[number] = Talk(key: key)
        return number
    }

    private mutating func remove(_ number: Int) {
        guard let talk = talks.removeValue(forKey: number) else { return }
        numbers[talk.key] = nil
    }

    /// Forgets the records before a position, and the conversations that have no others.
    ///
    /// - Parameters:
    ///   - position: The position of the first record that is left.
    ///   - end: The position of the next record.
    mutating func forget(before position: Int, end: Int) {
        seen.forget(before: position, end: end)
        ends.forget(before: position, end: end)
        resumed.forget(before: position, end: end)
        // All conversations are looked at, so this is done in large steps.
        guard position - forgotten >= max(1024, talks.count) else { return }
        forgotten = position
        for number in Array(talks.keys) {
            talks[number]?.forget(before: position)
            if talks[number]?.positions.isEmpty ?? false { remove(number) }
        }
    }

    /// Writes the conversations as an array, the latest first.
    ///
    /// - Parameter matches: Positions of records that were searched for, ascending; the number of those in each conversation is
    ///   written, too.
    func append(to output: inout LineBuffer, matches: [Int]? = nil) {
        output.openArray()
        for (number, talk) in talks.sorted(by: { ($0.value.time, $0.key) > ($1.value.time, $1.key) }) {
            output.openObject()
            output.field("conversation", number)
            output.field("first", talk.key.first)
            output.field("second", talk.key.second)
            output.field("messages", talk.messages)
            output.field("items", talk.removed + talk.positions.count)
            output.field("changes", talk.changes)
            output.field("time", Int(talk.time / 1000))
            output.field("text", talk.text)
            if let matches { output.field("found", talk.positions(in: matches).count) }
            output.closeObject()
        }
        output.closeArray()
    }

    /// Returns the positions of the messages of a conversation that the table still has, and the number of those that
    /// it no longer has; empty if the conversation is unknown.
    func positions(of conversation: Int) -> (removed: Int, positions: [Int]) {
        talks[conversation].map { ($0.removed, $0.positions) } ?? (0, [])
    }

    /// Returns the positions of the messages of a conversation that were found, themselves or in one of their other records.
    ///
    /// - Parameter matches: Positions of records, ascending.
    func positions(of conversation: Int, in matches: [Int]) -> [Int] {
        talks[conversation]?.positions(in: matches) ?? []
    }

    /// By the positions of the messages of a conversation, those of their other records that say what became of them.
    func others(of conversation: Int) -> [Int: [Int]] { talks[conversation]?.others ?? [:] }
}

extension Conversations.Talk {
    fileprivate mutating func add(at position: Int, time: Int64, _ text: String?) {
        positions.append(position)
        last = position
        self.time = time
        guard let text else { return }
        messages += 1
        self.text = text
    }

    /// Replaces the record of a message by a later one of the same message, that of its sender.
    fileprivate mutating func replace(_ old: Int, by new: Int, keepsOld: Bool) {
        guard let index = positions.lastIndex(of: old) else { return }
        positions.remove(at: index)
        positions.append(new)
        last = new
        changes += 1
        let records = (keepsOld ? [old] : []) + (others.removeValue(forKey: old) ?? [])
        if !records.isEmpty { others[new] = records }
    }

    /// Adds a record that says what became of a message.
    fileprivate mutating func addOther(_ position: Int, to message: Int, limit: Int) {
        guard others[message]?.count ?? 0 < limit else { return }
        others[message, default: []].append(position)
        changes += 1
    }

    /// Returns the positions of the messages that are among others, or have a record that is.
    fileprivate func positions(in matches: [Int]) -> [Int] {
        let found = matches.common(with: positions)
        guard !others.isEmpty else { return found }
        let known = Set(found)
        let more = others.filter { message, records in
            !known.contains(message) && !records.common(with: matches).isEmpty
        }
        return more.isEmpty ? found : (found + more.keys).sorted()
    }

    fileprivate mutating func forget(before position: Int) {
        let count = positions.firstIndex { $0 >= position } ?? positions.count
        positions.removeFirst(count)
        removed += count
        if !others.isEmpty { others = others.filter { $0.key >= position } }
    }
}

extension [Int] {
    /// The numbers that are also in another array; both are ascending.
    func common(with other: [Int]) -> [Int] {
        let (few, many) = count < other.count ? (self, other) : (other, self)
        var from = 0
        return few.filter { number in
            var (low, high) = (from, many.count)
            while low < high {
                let middle = (low + high) / 2
                if many[middle] < number { low = middle + 1 } else { high = middle }
            }
            from = low
            return low < many.count && many[low] == number
        }
    }
}
