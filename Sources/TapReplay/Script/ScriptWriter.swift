internal import TapRecord
internal import XMPPCore

/// Writes a scansion script from recorded conversations, with wildcards for values that a server generates.
///
/// Logins and stream management are left out, because the language cannot express them: a client that resumed its
/// session stays connected. Also left out are the server's pings, stanzas that a server may send or not, messages that it
/// had stored before the recording, and items that the proxy created; ``omissions`` counts them. Other requests of the
/// server and their answers are written, with the tag ``ScriptPlay/optionalRequests``.
public struct ScriptWriter {
    /// One action of the script.
    private struct Entry {
        var run: Int
        var at: Int64
        var sequence: UInt64
        var text: String
    }

    /// The stanzas that a script lacks: reasons as clauses for people, and their numbers.
    public private(set) var omissions: [(reason: String, count: Int)] = []

    private let conversations: [RecordedConversation]
    private let names: [String]
    private let rules: NoiseRules
    private let parser = StanzaParser()
    private var entries: [Entry] = []
    /// Values that the server made, which the script cannot send back.
    private var serverValues: Set<String> = []
    /// Whether the script contains requests of the server.
    private var hasRequests = false
    /// Ids that clients generated and that the server passes on.
    private var ownIDs: Set<String> = []

    /// - Parameters:
    ///   - conversations: The conversations; those without a JID are left out.
    ///   - rules: The rules for values that vary.
    public init(_ conversations: [RecordedConversation], rules: NoiseRules = NoiseRules()) {
        self.conversations = RecordedConversation.joined(conversations.filter { $0.jid != nil })
        self.rules = rules
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
        makeEntries()
    }

    /// Returns the script; nil if no conversation can be written.
    ///
    /// - Parameter title: The text of its first line.
    public func script(title: String) -> String? {
        guard !conversations.isEmpty else { return nil }
        var text = "# \(LineBuffer.escaped(title))\n"
        text += "# Passwords are read from the accounts file; for scansion add \"password:\" to each client.\n"
        if hasRequests {
            text += "## \(ScriptPlay.optionalRequests.name): \(ScriptPlay.optionalRequests.value ?? "")\n"
        }
        for (index, conversation) in conversations.enumerated() {
            text += "\n[Client] \(names[index])\n\tjid: \(conversation.account?.description ?? "")\n"
            if let resource = conversation.resource, Self.isPlain(resource) { text += "\tresource: \(resource)\n" }
        }
        text += "\n-----\n"
        for entry in entries.sorted(by: { ($0.run, $0.at, $0.sequence) < ($1.run, $1.at, $1.sequence) }) {
            text += "\n\(entry.text)"
        }
        return text
    }

    /// Returns whether a value can be written as a property without escapes.
    private static func isPlain(_ value: String) -> Bool {
        !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F } && !value.contains("\u{2028}")
    }

    /// Notes the values of a received stanza that differ from session to session, and that a client may send back.
    private mutating func note(_ element: Element, path: [Element]) {
        let path = path + [element]
        let found = found(path)
        func isMade(_ action: NoiseRules.Action?) -> Bool {
            switch action {
            case .bind(.archiveID), .bind(.token), .bind(.url), .bind(.exchangeID): true
            default: false
            }
        }
        for attribute in element.attributes where attribute.value.utf8.count >= ValueClass.serverValueSize {
            let target = Locator.Target.attribute(
                uri: Array(attribute.namespaceURI.utf8),
                name: Array(attribute.name.utf8)
            )
            if isMade(action(target, found)) { serverValues.insert(attribute.value) }
        }
        if element.firstChild == nil, element.textSize >= ValueClass.serverValueSize, isMade(action(.text, found)) {
            serverValues.insert(element.text)
        }
        for child in element.children { note(child, path: path) }
    }

    private func sendsServerValue(_ element: Element) -> Bool {
        element.attributes.contains { serverValues.contains($0.value) }
            || element.firstChild == nil && serverValues.contains(element.text)
            || element.children.contains(where: sendsServerValue)
    }

    private mutating func omit(_ reason: String) {
        let place = omissions.firstIndex { $0.reason == reason } ?? omissions.count
        if place == omissions.count { omissions.append((reason, 0)) }
        omissions[place].count += 1
    }

    private mutating func makeEntries() {
        for (index, conversation) in conversations.enumerated() {
            var last = conversation.ready
            func add(_ sequence: UInt64, _ at: Int64, _ text: String) {
                last = max(last, at)
                entries.append(Entry(run: conversation.run, at: last, sequence: sequence, text: text))
            }
            /// Requests of the server whose answers cannot be written, because their ids differ each time.
            var unanswered: Set<String> = []
            var options = OptionalStanzas(rules: rules)
            add(conversation.readySequence, conversation.ready, "\(names[index]) connects\n")
            // After its closing tag a client's stanzas have no effect.
            let closing = conversation.items.firstIndex { $0.kind == .end && $0.direction == .send }
            for item in conversation.items.prefix(closing ?? conversation.items.count) {
                guard item.kind != .nonza, item.kind != .end, item.origin == .peer,
                    let bytes = item.direction == .send ? item.atServer() : item.sent,
                    let element = try? parser.parse(bytes.span, root: item.root)
                else { continue }
                if item.direction == .recv {
                    let isRequest = item.kind == .iq && !item.isAnswer && element.isOfServer
                    if isRequest, let id = item.id { unanswered.insert(id) }
                    if isRequest, item.payloadNamespace == .ping { continue }
                    let form = StanzaForm(element)
                    if form.isDelayed, item.kind == .message, item.id.map(isOwn) != true {
                        omit("a message that the server had stored before")
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
                } else if item.isAnswer, let id = item.id, unanswered.contains(id) {
                    continue
                }
                if item.direction == .recv {
                    note(element, path: [])
                } else if !serverValues.isEmpty, sendsServerValue(element) {
                    omit("a value that the server made, sent as it was recorded")
                }
                var writer = Writer(
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
                add(item.sequence, item.at, "\(missing)\(names[index]) \(verb):\n\(writer.text)")
            }
            let end = closing.map { (conversation.items[$0].sequence, conversation.items[$0].at) }
            let (sequence, at) = end ?? (conversation.ended.sequence, conversation.ended.at)
            let effect = firstEffect(ofEndOf: conversation, after: last, before: at)
            add(sequence, effect.map { $0 - 1 } ?? at, "\(names[index]) disconnects\n")
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
    fileprivate func variable(_ value: String) -> String? {
        for (index, conversation) in conversations.enumerated() where conversation.jid?.description == value {
            return "${\(names[index])'s full JID}"
        }
        for (index, conversation) in conversations.enumerated() where conversation.account?.description == value {
            return "${\(names[index])'s JID}"
        }
        return nil
    }

    /// Returns whether an address is a full JID of a client's account, so that its resource varies.
    fileprivate func isOfClient(_ value: String) -> Bool {
        guard let slash = value.firstIndex(of: "/") else { return false }
        return conversations.contains { $0.account?.description == String(value[..<slash]) }
    }

    /// Returns whether a server may leave out an element.
    fileprivate func isOptional(_ element: Element, in path: [Element]) -> Bool {
        rules.optional(element, in: path) != nil
    }

    fileprivate func isOwn(_ id: String) -> Bool { ownIDs.contains(id) }

    /// Returns the rules for an element.
    fileprivate func found(_ path: [Element]) -> [Int] {
        var found: [Int] = []
        rules.fill(&found, for: path)
        return found
    }

    fileprivate func action(_ target: Locator.Target, _ found: [Int]) -> NoiseRules.Action? {
        rules.action(for: NoiseRules.key(target), found)?.1
    }
}

/// Writes a stanza with the indentation of scripts; mixed content is not indented.
private struct Writer {
    /// How a value is written.
    private enum Value {
        /// With this text.
        case written(String)
        case any, left
    }

    let script: ScriptWriter
    let isSent: Bool
    /// Whether the stanza's id is written, so that a later stanza can answer it.
    let keepsID: Bool
    var text = ""

    init(script: ScriptWriter, isSent: Bool, keepsID: Bool) {
        self.script = script
        self.isSent = isSent
        self.keepsID = keepsID
    }

    /// - Parameter indent: The indentation; nil within mixed content.
    mutating func write(_ element: Element, path: [Element], inherited: String, isStrict: Bool, indent: String?) {
        let path = path + [element]
        let found = script.found(path)
        let namespace = element.namespaceURI
        text += "\(indent ?? "")<\(element.name)"
        if namespace != inherited { text += " xmlns=\"\(Self.escaped(namespace))\"" }
        var isLoose = false
        for (index, attribute) in element.attributes.enumerated() {
            switch value(of: attribute, element, path, found) {
            case .left: isLoose = true
            case .any: append("{scansion:any}", attribute, index)
            case .written(let value): append(value, attribute, index)
            }
        }
        let contents = contents(of: element, path, found, isLoose: &isLoose)
        let wasStrict = isStrict || namespace != inherited
        if !isSent, wasStrict, isLoose { text += " scansion:strict=\"false\"" }
        let isInline = indent == nil || contents.contains { if case .text = $0 { true } else { false } }
        text += contents.isEmpty ? "/>" : isInline ? ">" : ">\n"
        for content in contents {
            switch content {
            case .text(let value): text += value
            case .element(let child):
                write(
                    child,
                    path: path,
                    inherited: namespace,
                    isStrict: wasStrict && !isLoose,
                    indent: isInline ? nil : (indent ?? "") + "\t"
                )
            }
        }
        if !contents.isEmpty { text += "\(isInline ? "" : indent ?? "")</\(element.name)>" }
        if indent != nil { text += "\n" }
    }

    /// Returns the content to write: text with escapes, without white space between elements.
    private func contents(
        of element: Element,
        _ path: [Element],
        _ found: [Int],
        isLoose: inout Bool
    ) -> [Element.Content] {
        let contents = element.contents.filter { content in
            if case .element(let child) = content { isSent || !isIgnored(child, path) } else { true }
        }
        let count = contents.count { if case .element = $0 { true } else { false } }
        isLoose = isLoose || count != element.elementCount || count > 1
        let isElementOnly = element.firstChild != nil && element.text.trimmingSpace.isEmpty
        var value = Value.left
        if !isElementOnly, !element.text.isEmpty {
            value = self.value(ofText: element.text, found)
            if case .written = value {} else { isLoose = true }
        }
        guard case .written(let whole) = value else {
            return contents.filter { if case .element = $0 { true } else { false } }
        }
        guard element.firstChild != nil else { return [.text(whole)] }
        return contents.map { if case .text(let text) = $0 { .text(Self.escaped(text)) } else { $0 } }
    }

    private func isIgnored(_ element: Element, _ path: [Element]) -> Bool {
        if case .ignore? = script.action(.element, script.found(path + [element])) { return true }
        return script.isOptional(element, in: path)
    }

    // MARK: Values

    private func value(of attribute: Element.Attribute, _ element: Element, _ path: [Element], _ found: [Int]) -> Value
    {
        let (uri, name) = (Array(attribute.namespaceURI.utf8), Array(attribute.name.utf8))
        return value(
            attribute.value,
            script.action(.attribute(uri: uri, name: name), found),
            isID: path.count == 1 && name == Array("id".utf8)
        )
    }

    private func value(ofText text: String, _ found: [Int]) -> Value {
        value(text, script.action(.text, found), isID: false)
    }

    private func value(_ value: String, _ action: NoiseRules.Action?, isID: Bool) -> Value {
        if let variable = script.variable(value) { return .written(variable) }
        let written = Value.written(Self.escaped(value))
        guard !isSent else { return written }
        // The script parser would read the value as a variable or wildcard even if it is escaped.
        guard !value.contains("${"), !value.hasPrefix("{scansion:"), !value.contains("[redacted:") else { return .any }
        switch action {
        case nil, .occurs: return Timestamp(rfc3339: value) == nil ? written : .any
        case .ignore: return .left
        case .bind(.stanzaID) where isID && (keepsID || script.isOwn(value)): return written
        case .address: return script.isOfClient(value) ? .any : written
        case .present, .matches, .number, .bind, .bindSuffix, .follow: return .any
        }
    }

    // MARK: Text

    private mutating func append(_ value: String, _ attribute: Element.Attribute, _ index: Int) {
        switch attribute.namespaceURI {
        case "": text += " \(attribute.name)=\"\(value)\""
        case Namespace.xml.uri.description: text += " xml:\(attribute.name)=\"\(value)\""
        case let uri: text += " xmlns:a\(index)=\"\(Self.escaped(uri))\" a\(index):\(attribute.name)=\"\(value)\""
        }
    }

    /// Escapes characters that would end the value or the line, or begin a variable.
    private static func escaped(_ value: String) -> String {
        var text = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "{" where text.hasSuffix("$") || value.contains("{scansion:"): text += "&#123;"
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            case "\n": text += "&#10;"
            case "\r": text += "&#13;"
            case "\t": text += "&#9;"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
