internal import TapRecord
internal import XMPPCore

/// Writes a scansion script from recorded conversations, with wildcards for values that a server generates.
///
/// Logins and stream management are left out, because the language cannot express them: a client that resumed its
/// session stays connected. Also left out are the server's pings, stanzas that a server may send or not, messages that it
/// had stored before the recording, requests with values that the server made, and items that the proxy created;
/// ``omissions`` counts them. Other requests of the server and their answers are written, with the tag
/// ``ScriptPlay/optionalRequests``.
public struct ScriptWriter {
    /// One action of the script.
    private struct Entry {
        var run: Int
        var at: Int64
        var sequence: UInt64
        var text: String
        /// Index of the client.
        var client: Int
        /// The stanza; nil for other actions.
        var stanza: RecordedItem?
    }

    /// The stanzas that a script lacks: reasons as clauses for people, and their numbers.
    public private(set) var omissions: [(reason: String, count: Int)] = []

    private let conversations: [RecordedConversation]
    private let names: [String]
    let rules: NoiseRules
    private let parser = StanzaParser()
    private var entries: [Entry] = []
    private let serverValues: ServerValues
    /// Whether the script contains requests of the server.
    private var hasRequests = false
    /// Ids that clients generated and that the server passes on.
    private var ownIDs: Set<String> = []

    /// - Parameters:
    ///   - conversations: The conversations; those without a JID, or with a refused login, are left out.
    ///   - rules: The rules for values that vary.
    public init(_ conversations: [RecordedConversation], rules: NoiseRules = NoiseRules()) {
        self.conversations = RecordedConversation.joined(conversations.filter { $0.jid != nil && $0.refusal == nil })
        self.rules = rules
        serverValues = ServerValues(self.conversations, rules: rules)
        var names: [String] = []
        for conversation in self.conversations {
            let letters = (conversation.jid?.local ?? "").filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
            let name = letters.isEmpty ? "Client" : letters.prefix(1).uppercased() + letters.dropFirst()
            let count = names.count { $0 == name || $0.hasPrefix("\(name) ") }
            names.append(count == 0 ? name : "\(name) \(count + 1)")
        }
        self.names = names
        for item in self.conversations.flatMap(\.items) where item.direction == .send && item.origin == .peer {
            // An answer has the id of the request.
            if !item.isAnswer, let id = item.id { ownIDs.insert(id) }
        }
        for conversation in conversations where conversation.refusal != nil { omit("a login that the server refused") }
        makeEntries()
        sortEntries()
    }

    /// Returns the script; nil if no conversation can be written.
    ///
    /// - Parameter title: The text of its first line.
    public func script(title: String) -> String? {
        guard !conversations.isEmpty else { return nil }
        var text = "# \(LineBuffer.escaped(title))\n"
        text += "# Passwords are read from the accounts file; for scansion add \"password:\" to each client.\n"
        if hasRequests { text += "## \(ScriptPlay.optionalRequests)\n" }
        text += "## \(ScriptPlay.optionalStoredData)\n"
        for (index, conversation) in conversations.enumerated() {
            text += "\n[Client] \(names[index])\n\tjid: \(conversation.account?.description ?? "")\n"
            if let resource = conversation.resource, Self.isPlain(resource) { text += "\tresource: \(resource)\n" }
        }
        text += "\n-----\n"
        for entry in entries { text += "\n\(entry.text)" }
        return text
    }

    /// Returns whether a value can be written as a property without escapes.
    private static func isPlain(_ value: String) -> Bool {
        !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F } && !value.contains("\u{2028}")
    }

    private mutating func omit(_ reason: String) {
        let place = omissions.firstIndex { $0.reason == reason } ?? omissions.count
        if place == omissions.count { omissions.append((reason, 0)) }
        omissions[place].count += 1
    }

    private mutating func makeEntries() {
        for (index, conversation) in conversations.enumerated() {
            var last = conversation.ready
            func add(_ sequence: UInt64, _ at: Int64, _ text: String, _ stanza: RecordedItem? = nil) {
                last = max(last, at)
                let run = conversation.run
                entries.append(
                    Entry(run: run, at: last, sequence: sequence, text: text, client: index, stanza: stanza)
                )
            }
            /// Requests of the server whose answers cannot be written, because their ids differ each time.
            var unanswered: Set<String> = []
            var options = OptionalStanzas(rules: rules)
            var omitted = OmittedRequests()
            add(conversation.readySequence, conversation.ready, "\(names[index]) connects\n")
            // After its closing tag a client's stanzas have no effect.
            let closing = conversation.items.firstIndex { $0.kind == .end && $0.direction == .send }
            for item in conversation.items.prefix(closing ?? conversation.items.count) {
                guard item.origin == .peer, let element = item.stanza(parser) else { continue }
                if item.direction == .recv {
                    if omitted.isAnswer(element) { continue }
                    guard item.isAnswer || !serverValues.isEffect(element, at: .init(conversation, item)) else {
                        omit("a stanza that follows from a request which is not in the script")
                        continue
                    }
                    let isRequest = item.kind == .iq && !item.isAnswer && element.isOfServer
                    if isRequest, let id = item.id { unanswered.insert(id) }
                    if isRequest, item.payloadNamespace == .ping { continue }
                    let form = StanzaForm(element)
                    if form.isDelayed, item.kind == .message, item.id.map(isOwn) != true {
                        let isHistory = form.type == "groupchat"
                        omit(isHistory ? "history of a room" : "a message that the server had stored before")
                        continue
                    }
                    let roles = OptionalStanzas.Roles(
                        isPlayed: { [conversations] jid in conversations.contains { $0.jid?.description == jid } }
                    )
                    if let option = options.option(form, roles) {
                        guard item.kind == .iq, item.type == "get" else {
                            omit(option.source ?? "a stanza that the server may send or not")
                            continue
                        }
                        hasRequests = true
                        if let id = item.id { unanswered.remove(id) }
                    }
                } else {
                    if item.isAnswer, let id = item.id, unanswered.contains(id) { continue }
                    let isUnsendable = serverValues.isUnsendable(element)
                    omitted.follow(element, isOmitted: isUnsendable)
                    if isUnsendable {
                        omit("a request with a value that the server made, and the answers to it")
                        continue
                    }
                    if serverValues.occur(in: element) { omit("a value that the server made, sent as it was recorded") }
                }
                var writer = ScriptStanzaWriter(
                    script: self,
                    isSent: item.direction == .send,
                    keepsID: item.kind == .iq && !item.isAnswer && item.id.map(unanswered.contains) == false
                )
                writer.write(
                    element,
                    path: [],
                    inherited: Namespace.client.uri.description,
                    isStrict: false,
                    indent: "\t"
                )
                let verb = item.direction == .send ? "sends" : "receives"
                let missing =
                    item.direction == .send && !item.placeholders.isEmpty
                    ? "# not in the recording, write it here: \(item.placeholders.joined(separator: ", "))\n" : ""
                add(item.sequence, item.at, "\(missing)\(names[index]) \(verb):\n\(writer.text)", item)
            }
            let end = closing.map { (conversation.items[$0].sequence, conversation.items[$0].at) }
            let (sequence, at) = end ?? (conversation.ended.sequence, conversation.ended.at)
            let effect = firstEffect(ofEndOf: conversation, after: last, before: at)
            add(sequence, effect.map { $0 - 1 } ?? at, "\(names[index]) disconnects\n")
        }
    }

    /// Sorts the actions by time. Stanzas that clients sent at the same time are sorted as the server handled them, since
    /// in a script each is sent after the one before.
    private mutating func sortEntries() {
        entries.sort { ($0.run, $0.at, $0.sequence) < ($1.run, $1.at, $1.sequence) }
        /// The places at which each client receives messages and presence, by id.
        var places: [String: [Int: Int]] = [:]
        for (place, entry) in entries.enumerated() {
            guard let stanza = entry.stanza, stanza.direction == .recv, stanza.kind != .iq, let id = stanza.id else {
                continue
            }
            places[id, default: [:]][entry.client] = places[id]?[entry.client] ?? place
        }
        func isHandled(_ one: Entry, before other: Entry) -> Bool {
            guard let one = one.stanza?.id.flatMap({ places[$0] }), let other = other.stanza?.id.flatMap({ places[$0] })
            else { return false }
            return one.contains { client, place in other[client].map { place < $0 } ?? false }
        }
        for place in entries.indices.reversed() where entries[place].stanza?.direction == .send {
            let entry = entries[place]
            let sent = entries[(place + 1)...].prefix { $0.stanza?.direction == .send && $0.client != entry.client }
            guard let last = sent.lastIndex(where: { isHandled($0, before: entry) }) else { continue }
            entries.remove(at: place)
            entries.insert(entry, at: last)
        }
    }

    /// Returns when another client first received unavailable presence because of the end of a conversation: the
    /// recording may contain it before the end (RFC 6121 §4.5.2). nil if there is none between two times.
    private func firstEffect(ofEndOf conversation: RecordedConversation, after start: Int64, before end: Int64)
        -> Int64?
    {
        var first: Int64?
        for other in conversations where other.run == conversation.run && other.jid != conversation.jid {
            for item in other.items where item.kind == .presence && item.type == "unavailable" && item.at > start {
                guard item.direction == .recv, item.from == conversation.jid?.description, item.at < end else {
                    continue
                }
                first = min(first ?? item.at, item.at)
            }
        }
        return first
    }

    /// Returns the variable for a client's address; nil for other values.
    func variable(_ value: String) -> String? {
        for (index, conversation) in conversations.enumerated() where conversation.jid?.description == value {
            return "${\(names[index])'s full JID}"
        }
        for (index, conversation) in conversations.enumerated() where conversation.account?.description == value {
            return "${\(names[index])'s JID}"
        }
        return nil
    }

    /// Returns whether an address is a full JID of a client's account, so that its resource varies.
    func isOfClient(_ value: String) -> Bool {
        guard let slash = value.firstIndex(of: "/") else { return false }
        return conversations.contains { $0.account?.description == String(value[..<slash]) }
    }

    func isOwn(_ id: String) -> Bool { ownIDs.contains(id) }
}
