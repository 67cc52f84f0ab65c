internal import TapRecord

/// Parses a ``Script`` line by line.
struct ScriptParser {
    private struct Line {
        /// The number, from 1.
        var number: Int
        /// The range of the line in the file, without the line ending.
        var range: Range<Int>
        var text: Substring

        var isBlank: Bool { text.trimmingBlanks.isEmpty }
        var isIndented: Bool { text.first == " " || text.first == "\t" }
        var isRule: Bool { text.trimmingBlanks.count >= 3 && text.trimmingBlanks.allSatisfy { $0 == "-" } }
        /// Whether the line is a comment that begins with `//` or `--`. A line of at least three dashes is not a
        /// comment: it ends the header.
        var isRemark: Bool { text.hasPrefix("//") || text.hasPrefix("--") && !isRule }
    }

    private let source: ScriptSource
    private var lines: ArraySlice<Line> = []
    private var script = Script()
    /// The line of each property of the current character.
    private var properties: [String: Int] = [:]
    /// Characters that have connected before the current step.
    private var connected: Set<Int> = []

    init(_ bytes: [UInt8], file: String) {
        source = ScriptSource(bytes: bytes, file: file)
    }

    mutating func parse() throws(ScriptFault) -> Script {
        try split()
        try parseHeader()
        while let line = lines.popFirst() { try parseStep(line) }
        guard !script.steps.isEmpty else {
            throw source.fault(at: source.bytes.count, "the script has no actions", expected: Self.actionForm)
        }
        return script
    }

    private mutating func split() throws(ScriptFault) {
        var start = 0
        var number = 0
        while start < source.bytes.count {
            let end = source.bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? source.bytes.count
            number += 1
            var text = start..<end
            if source.bytes[text].last == UInt8(ascii: "\r") { text = start..<end - 1 }
            guard let string = String(validating: source.bytes[text], as: UTF8.self) else {
                throw source.fault(at: start, "a line that is not UTF-8")
            }
            lines.append(Line(number: number, range: text, text: string[...]))
            start = end + 1
        }
    }

    // MARK: Header

    private mutating func parseHeader() throws(ScriptFault) {
        while let line = lines.popFirst() {
            if line.isBlank || line.isRemark { continue }
            if line.text.hasPrefix("##") {
                try addTag(line)
            } else if line.text.hasPrefix("#") {
                addComment(String(line.text.dropFirst().trimmingBlanks))
            } else if line.text.hasPrefix("[") {
                try addCharacter(line)
            } else if line.isIndented {
                try addProperty(line)
            } else if line.text.trimmingBlanks.allSatisfy({ $0 == "-" }) {
                return try endHeader(line)
            } else {
                throw source.fault(
                    at: line.range.lowerBound,
                    "\"\(line.text)\" above the line of dashes",
                    expected: "a character such as [Client] Romeo, its indented properties, or -----"
                )
            }
        }
        throw source.fault(at: source.bytes.count, "the script ends in its header", expected: "-----, then actions")
    }

    private mutating func addTag(_ line: Line) throws(ScriptFault) {
        let tag = Script.Tag(String(line.text.dropFirst(2)))
        guard !tag.name.isEmpty else {
            throw source.fault(at: line.range.lowerBound, "a tag without a name", expected: "## NAME or ## NAME: VALUE")
        }
        script.tags.append(tag)
    }

    private mutating func addComment(_ text: String) {
        guard script.characters.isEmpty else { return }
        if script.title == nil {
            script.title = text
        } else {
            script.description += script.description.isEmpty ? text : "\n\(text)"
        }
    }

    private mutating func addCharacter(_ line: Line) throws(ScriptFault) {
        try checkCharacter()
        let form = "[Client] NAME"
        guard let close = line.text.firstIndex(of: "]") else {
            throw source.fault(at: line.range.lowerBound, "\"[\" without \"]\"", expected: form)
        }
        let kind = line.text[line.text.index(after: line.text.startIndex)..<close]
        guard kind == "Client" else {
            let column = line.range.lowerBound + 1
            guard kind != "Component" else {
                throw source.fault(at: column, "components are not supported", expected: form)
            }
            let nearest = Spelling.nearest(to: String(kind), among: ["client"]).map { _ in "Client" }
            throw source.fault(at: column, "unknown kind of character \"\(kind)\"", expected: form, nearest: nearest)
        }
        let rest = line.text[line.text.index(after: close)...]
        let name = String(rest.trimmingBlanks)
        let place = line.range.lowerBound + line.text[..<close].utf8.count + 1
        guard !name.isEmpty else {
            throw source.fault(at: place, "a character without a name", expected: form)
        }
        if let bad = name.first(where: { "<>&\"{}`:".contains($0) }) {
            throw source.fault(
                at: place,
                "\(bad) in the name of a character",
                expected: "letters, digits, ' and blanks"
            )
        }
        if let other = script.characters.first(where: { $0.name == name }) {
            throw source.fault(at: place, "\"\(name)\" is already defined in line \(other.line)")
        }
        script.characters.append(.init(name: name, line: line.number))
        properties = [:]
    }

    private static let propertyNames = ["jid", "password", "resource", "connect_host", "connect_port"]

    private mutating func addProperty(_ line: Line) throws(ScriptFault) {
        let text = line.text.trimmingBlanks
        let place = line.range.lowerBound + line.text.prefix { $0 == " " || $0 == "\t" }.utf8.count
        guard let index = script.characters.indices.last else {
            throw source.fault(at: place, "a property above the first character", expected: "[Client] NAME")
        }
        guard let colon = text.firstIndex(of: ":") else {
            throw source.fault(at: place, "\"\(text)\" is not a property", expected: "NAME: VALUE")
        }
        let name = String(text[..<colon].trimmingBlanks)
        let rest = text[text.index(after: colon)...]
        let value = String(rest.trimmingBlanks)
        guard Self.propertyNames.contains(name) else {
            throw source.fault(
                at: place,
                "unknown property \"\(name)\"",
                expected: Self.propertyNames.joined(separator: ", "),
                nearest: Spelling.nearest(to: name, among: Self.propertyNames)
            )
        }
        let valuePlace = place + text.utf8.count - rest.drop { $0 == " " || $0 == "\t" }.utf8.count
        if let other = properties.updateValue(line.number, forKey: name) {
            throw source.fault(at: place, "\"\(name)\" is already in line \(other)")
        }
        guard !value.isEmpty else { throw source.fault(at: valuePlace, "\"\(name)\" without a value") }
        switch name {
        case "jid":
            guard let jid = source.account(value) else {
                throw source.fault(
                    at: valuePlace,
                    "\"\(value)\" is not an account",
                    expected: "a JID such as romeo@localhost"
                )
            }
            script.characters[index].jid = jid.account
            if script.characters[index].resource == nil { script.characters[index].resource = jid.resource }
        case "password": script.characters[index].password = value
        case "resource": script.characters[index].resource = value
        case "connect_host": script.characters[index].host = value
        default:
            guard let port = Int(value), (1...65535).contains(port) else {
                throw source.fault(at: valuePlace, "\"\(value)\" is not a port", expected: "a number from 1 to 65535")
            }
            script.characters[index].port = port
        }
    }

    /// Checks that the last defined character has a JID.
    private func checkCharacter() throws(ScriptFault) {
        guard let last = script.characters.last, last.jid.isEmpty else { return }
        let start = source.start(ofLine: last.line)
        throw source.fault(at: start, "\"\(last.name)\" has no jid", expected: "an indented line jid: USER@DOMAIN")
    }

    private func endHeader(_ line: Line) throws(ScriptFault) {
        try checkCharacter()
        guard line.text.trimmingBlanks.count >= 3 else {
            throw source.fault(at: line.range.lowerBound, "\"\(line.text)\"", expected: "at least three dashes: -----")
        }
        guard !script.characters.isEmpty else {
            throw source.fault(
                at: line.range.lowerBound,
                "a script without characters",
                expected: "[Client] NAME above"
            )
        }
    }

    // MARK: Actions

    private static let verbs = ["connects", "disconnects", "sends:", "receives:"]
    private static let actionForm = "NAME connects, disconnects, sends: STANZA, receives: STANZA or receives: nothing"

    private mutating func parseStep(_ line: Line) throws(ScriptFault) {
        if line.isBlank || line.text.hasPrefix("#") || line.isRemark || line.isRule { return }
        let start = line.range.lowerBound
        guard !line.isIndented else {
            throw source.fault(at: start, "an indented line without an action above it", expected: Self.actionForm)
        }
        guard !line.text.hasPrefix("[") else {
            throw source.fault(at: start, "a character below the line of dashes", expected: Self.actionForm)
        }
        let names = script.characters.indices.filter { line.text.hasPrefix("\(script.characters[$0].name) ") }
        guard let character = names.max(by: { script.characters[$0].name.count < script.characters[$1].name.count })
        else { throw unknownCharacter(line) }
        let name = script.characters[character].name
        let text = line.text.dropFirst(name.count + 1).trimmingBlanks
        let place = start + line.text.utf8.count - line.text.dropFirst(name.count).drop { $0 == " " }.utf8.count
        let verb = text.prefix { $0 != " " && $0 != "\t" && $0 != ":" }
        let rest = text.dropFirst(verb.count).trimmingBlanks
        func append(_ action: Script.Action, expecting stanza: Range<Int>? = nil) {
            let text = stanza.map { String(String(decoding: source.bytes[$0], as: UTF8.self).trimmingSpace) }
            script.steps.append(.init(character: character, action: action, line: line.number, expected: text))
        }
        switch verb {
        case "connects", "disconnects":
            guard rest.isEmpty else {
                throw source.fault(
                    at: place + verb.utf8.count,
                    "\"\(rest)\" behind \"\(verb)\"",
                    expected: "nothing there"
                )
            }
            if verb == "connects" { connected.insert(character) }
            append(verb == "connects" ? .connects : .disconnects)
        case "sends", "receives":
            let content = rest.hasPrefix(":") ? rest.dropFirst() : rest
            let isNothing = content.trimmingBlanks == "nothing" && verb == "receives"
            // Some scripts omit the colon before an indented stanza.
            guard rest.hasPrefix(":") || rest.isEmpty || isNothing else {
                throw source.fault(
                    at: place,
                    "\"\(verb)\" without a colon",
                    expected: "\"\(verb):\"",
                    nearest: "\(verb):"
                )
            }
            guard connected.contains(character) else {
                throw source.fault(at: start, "\"\(name)\" is not connected", expected: "\"\(name) connects\" above")
            }
            if isNothing { return append(.receivesNothing) }
            let from =
                content.isEmpty
                ? line.range.upperBound
                : start + line.text.utf8.distance(from: line.text.startIndex, to: content.startIndex)
            let place = block(from: from, line)
            let stanza = try source.stanza(in: place, script.characters, connected, verb: String(verb))
            if verb == "sends" {
                append(.sends(stanza.sent))
            } else {
                append(.receives(stanza.expected), expecting: place)
            }
        default:
            let nearest = Spelling.nearest(to: "\(verb)\(rest.hasPrefix(":") ? ":" : "")", among: Self.verbs)
            throw source.fault(at: place, "unknown action \"\(verb)\"", expected: Self.actionForm, nearest: nearest)
        }
    }

    private func unknownCharacter(_ line: Line) -> ScriptFault {
        let words = line.text.split(separator: " ")
        let verb = words.firstIndex { Self.verbs.contains(String($0)) || Self.verbs.contains("\($0):") }
        let name = words[..<(verb ?? words.count)].joined(separator: " ")
        let names = script.characters.map { $0.name.lowercased() }
        let nearest = Spelling.nearest(to: name, among: names).flatMap { found in
            script.characters.first { $0.name.lowercased() == found }?.name
        }
        return source.fault(
            at: line.range.lowerBound,
            verb == nil ? "\"\(line.text)\" is not an action" : "unknown character \"\(name)\"",
            expected: verb == nil ? Self.actionForm : script.characters.map(\.name).joined(separator: ", "),
            nearest: nearest
        )
    }

    /// Returns the range of an action's stanza: the rest of its line, and the indented and blank lines that follow.
    private mutating func block(from start: Int, _ line: Line) -> Range<Int> {
        var end = line.range.upperBound
        while let next = lines.first, next.isIndented || next.isBlank {
            if !next.isBlank { end = next.range.upperBound }
            lines.removeFirst()
        }
        return start..<max(start, end)
    }
}
