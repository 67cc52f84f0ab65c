internal import TapRecord
internal import XMPPCore

/// Writes a scansion script from recorded conversations, with wildcards for values that a server generates.
///
/// The script language cannot express logins and stream management, so the script leaves them out; a client that
/// resumed its session stays connected. The script also leaves out the server's pings, stanzas that a server may also
/// omit, messages that it had stored before the recording, requests with server-generated values, and items that the
/// proxy created. ``omissions`` counts them. Other requests of the server and their answers are written, with the tag
/// ``ScriptPlay/optionalRequests``.
package struct ScriptWriter {
    /// One action of the script.
    private struct Entry {
        /// The position of the action in the order of the server.
        var rank: Int
        var text: String
    }

    /// The stanzas that a script lacks: reasons as human-readable clauses, and numbers of stanzas.
    package private(set) var omissions: [(reason: String, count: Int)] = []

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
    package init(_ conversations: [RecordedConversation], rules: NoiseRules = NoiseRules()) {
        let played = conversations.filter { $0.jid != nil && $0.refusal == nil }
        self.conversations = RecordedConversation.joined(played)
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
            // The client did not generate the id of an answer: it is the id of the request.
            if !item.isAnswer, let id = item.id { ownIDs.insert(id) }
        }
        for conversation in conversations where conversation.refusal != nil { omit("a login that the server refused") }
        for conversation in played where conversation.resumes != nil {
            omit("a lost connection whose session was resumed: the client stays connected")
        }
        makeEntries(RecordOrder(played))
    }

    /// Returns the script; nil if no conversation can be written.
    ///
    /// - Parameter title: The title, which is written as the first line.
    package func script(title: String) -> String? {
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

    private mutating func makeEntries(_ order: RecordOrder) {
        for (index, conversation) in conversations.enumerated() {
            var last = -1
            /// Adds an action. If a replay skips it, it is placed directly after the previous action.
            func add(_ rank: Int?, _ text: String) {
                last = rank ?? last
                entries.append(Entry(rank: last, text: text))
            }
            /// Requests of the server whose answers cannot be written, because their ids differ each time.
            var unanswered: Set<String> = []
            var options = OptionalStanzas(rules: rules)
            var omitted = OmittedRequests()
            add(order.rank(.login, conversation.readySequence, of: conversation), "\(names[index]) connects\n")
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
                let rank = order.rank(.item, item.sequence, of: conversation)
                add(rank, "\(missing)\(names[index]) \(verb):\n\(writer.text)")
            }
            let closed = closing.flatMap { order.rank(.end, conversation.items[$0].sequence, of: conversation) }
            add(
                closed ?? order.rank(.end, conversation.ended.sequence, of: conversation),
                "\(names[index]) disconnects\n"
            )
        }
        let sorted = entries.enumerated().sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }
        entries = sorted.map(\.element)
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
