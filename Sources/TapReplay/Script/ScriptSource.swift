internal import TapRecord
internal import XMPPCore

/// The text of a script, for error positions and stanzas.
struct ScriptSource {
    let bytes: [UInt8]
    let file: String

    // MARK: Positions

    /// Returns a fault at a byte offset of the file.
    func fault(at offset: Int, _ found: String, expected: String? = nil, nearest: String? = nil) -> ScriptFault {
        let before = bytes.prefix(max(0, offset))
        let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return ScriptFault(
            file: file,
            line: before.count { $0 == UInt8(ascii: "\n") } + 1,
            column: String(decoding: before[start...], as: UTF8.self).count + 1,
            found: found,
            expected: expected,
            nearest: nearest
        )
    }

    /// Returns the offset of a line; lines count from 1.
    func start(ofLine number: Int) -> Int {
        var rest = number
        return bytes.firstIndex { byte in
            if rest == 1 { return true }
            if byte == UInt8(ascii: "\n") { rest -= 1 }
            return false
        } ?? bytes.count
    }

    /// Returns bare JID and resource of a JID with a local part; nil for other text.
    func account(_ text: String) -> (account: String, resource: String?)? {
        guard let jid = JID(text), jid.local != nil else { return nil }
        return (jid.bare.description, jid.resource)
    }

    // MARK: Stanzas

    /// A stream header that declares the prefix `scansion`.
    private static let header = Array(
        """
        <stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
        xmlns:scansion='urn:xmpptap:scansion' version='1.0'>
        """.utf8
    )
    private static let wildcardNamespace = "urn:xmpptap:scansion"

    /// Parses the stanza of an action; an action that sends can have several.
    ///
    /// - Parameters:
    ///   - range: The range of the stanza in the file.
    ///   - characters: The characters that variables may refer to.
    ///   - connected: Characters whose full JID is known.
    ///   - verb: `receives`, or `sends`, for which `{scansion:any}` is ordinary text.
    func stanza(
        in range: Range<Int>,
        _ characters: [Script.Character],
        _ connected: Set<Int>,
        verb: String
    ) throws(ScriptFault) -> (sent: ScriptText, expected: ExpectedElement) {
        let block = Array(bytes[range])
        // An apostrophe in a variable would end a quoted value, so it is replaced by a backtick, which names cannot
        // contain.
        let marked = Self.variables(in: block[...]).reduce(into: block) { text, variable in
            for index in variable where text[index] == UInt8(ascii: "'") { text[index] = UInt8(ascii: "`") }
        }
        let reading = Reading(source: self, start: range.lowerBound, block: block, characters, connected)
        let (place, element) = try element(marked, range.lowerBound, verb)
        guard verb == "receives" else {
            if let wildcard = Self.find("{scansion:capture", in: block[place]) {
                throw fault(at: range.lowerBound + wildcard, "a capture in a stanza that is sent", expected: "a value")
            }
            let text = try reading.text(
                Self.withoutIndents(Self.withoutStrictness(marked[place])),
                from: place.lowerBound
            )
            return (text, ExpectedElement(name: "", namespace: "", isStrict: false))
        }
        return (ScriptText([]), try reading.expected(element, isStrict: false, parent: element.namespaceURI))
    }

    private func element(
        _ block: [UInt8],
        _ start: Int,
        _ verb: String
    ) throws(ScriptFault) -> (place: Range<Int>, Element) {
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(Self.header.span)
        decoder.append(block.span)
        var found: (place: Range<Int>, element: Element)?
        while let event = decoder.next() {
            let at = max(0, Int(clamping: event.position) - Self.header.count)
            switch event.kind {
            case .item(.header), .item(.whitespace): continue
            case .item(.element):
                if verb == "sends", let first = found {
                    found = (first.place.lowerBound..<at + Int(clamping: event.length), first.element)
                    continue
                }
                guard found == nil else {
                    throw fault(at: start + at, "a second stanza", expected: "one stanza after \"\(verb):\"")
                }
                do {
                    found = (at..<at + Int(clamping: event.length), try StanzaParser().parse(decoder))
                } catch {
                    throw fault(at: start + at, error.message)
                }
            case .fault(let scan):
                let at = max(0, Int(clamping: scan.offset) - Self.header.count)
                throw fault(at: start + at, scan.explanation, expected: "a stanza")
            default: throw fault(at: start + at, "this is not a stanza", expected: "a stanza such as <presence/>")
            }
        }
        guard let found else {
            let isEmpty = block.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
            throw fault(
                at: start + (isEmpty ? 0 : block.count),
                isEmpty ? "no stanza after \"\(verb):\"" : "the stanza has no end",
                expected: isEmpty ? "an indented stanza such as <presence/>" : "an end tag, in indented lines"
            )
        }
        if let rest = decoder.finish() {
            throw fault(
                at: start + max(0, Int(clamping: rest.position) - Self.header.count),
                "a second stanza without an end"
            )
        }
        return found
    }

    /// Returns the ranges of `${...}`, braces included.
    static func variables(in text: ArraySlice<UInt8>) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var position = text.startIndex
        while let start = find("${", in: text[position...]) {
            guard let end = text[start...].firstIndex(of: UInt8(ascii: "}")) else { break }
            found.append(start..<end + 1)
            position = end + 1
        }
        return found
    }

    static func find(_ word: String, in text: ArraySlice<UInt8>) -> Int? {
        let word = Array(word.utf8)
        return text.indices.first { text[$0...].starts(with: word) }
    }

    /// Returns the stanza without line breaks and indentation between tags, which only format the script.
    private static func withoutIndents(_ stanza: ArraySlice<UInt8>) -> [UInt8] {
        var kept: [UInt8] = []
        var position = stanza.startIndex
        while position < stanza.endIndex {
            let space = stanza[position...].prefix { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
            let isBetweenTags =
                kept.last == UInt8(ascii: ">") && space.endIndex < stanza.endIndex
                && stanza[space.endIndex] == UInt8(ascii: "<") && space.contains(0x0A)
            if !space.isEmpty, isBetweenTags {
                position = space.endIndex
            } else {
                kept += space.isEmpty ? stanza[position...position] : space
                position += max(1, space.count)
            }
        }
        return kept
    }

    /// Returns stanzas to send without `scansion:strict` attributes, which only matter for expected stanzas.
    private static func withoutStrictness(_ stanza: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var kept = stanza[...]
        while let start = find(" scansion:strict=", in: kept) {
            let quote = kept.index(start, offsetBy: " scansion:strict=".utf8.count)
            guard quote < kept.endIndex, let end = kept[(quote + 1)...].firstIndex(of: kept[quote]) else { break }
            kept = (kept[..<start] + kept[(end + 1)...])[...]
        }
        return kept
    }

    /// Creates texts and expectations from a stanza whose variables contain backticks instead of apostrophes.
    private struct Reading {
        let source: ScriptSource
        let start: Int
        /// The stanza as written in the file.
        let block: [UInt8]
        let characters: [Script.Character]
        let connected: Set<Int>

        init(
            source: ScriptSource,
            start: Int,
            block: [UInt8],
            _ characters: [Script.Character],
            _ connected: Set<Int>
        ) {
            (self.source, self.start, self.block) = (source, start, block)
            (self.characters, self.connected) = (characters, connected)
        }

        /// Splits a text into literal text and variables.
        ///
        /// - Parameter place: Offset of the text in the block, for errors.
        func text(_ text: [UInt8], from place: Int = 0) throws(ScriptFault) -> ScriptText {
            var pieces: [ScriptText.Piece] = []
            var position = 0
            for range in ScriptSource.variables(in: text[...]) {
                if range.lowerBound > position { pieces.append(.text(Array(text[position..<range.lowerBound]))) }
                pieces.append(.variable(try variable(Array(text[range]))))
                position = range.upperBound
            }
            if position < text.count { pieces.append(.text(Array(text[position...]))) }
            return ScriptText(pieces)
        }

        private func variable(_ text: [UInt8]) throws(ScriptFault) -> ScriptVariable {
            let name = String(decoding: text.map { $0 == UInt8(ascii: "`") ? UInt8(ascii: "'") : $0 }, as: UTF8.self)
            let inner = name.dropFirst(2).dropLast()
            for (index, character) in characters.enumerated() {
                if inner == "\(character.name)'s JID" { return ScriptVariable(character: index, isFull: false) }
                guard inner == "\(character.name)'s full JID" else { continue }
                guard connected.contains(index) else {
                    throw fault(
                        name,
                        "the full JID of \(character.name) is not known yet",
                        "\"\(character.name) connects\" above"
                    )
                }
                return ScriptVariable(character: index, isFull: true)
            }
            let first = characters.first?.name ?? "Romeo"
            throw fault(name, "unknown variable \(name)", "a character's address such as ${\(first)'s full JID}")
        }

        func expected(_ element: Element, isStrict: Bool, parent: String) throws(ScriptFault) -> ExpectedElement {
            var isStrict = isStrict || element.namespaceURI != parent
            var attributes: [ExpectedElement.Attribute] = []
            for attribute in element.attributes {
                guard attribute.namespaceURI != ScriptSource.wildcardNamespace else {
                    isStrict = try strictness(attribute)
                    continue
                }
                let value = try value(attribute.value)
                attributes.append(.init(namespace: attribute.namespaceURI, name: attribute.name, value: value))
            }
            var result = ExpectedElement(
                name: element.name,
                namespace: element.namespaceURI,
                isStrict: isStrict,
                attributes: attributes
            )
            let text = element.text.trimmingSpace
            if !text.isEmpty { result.text = try value(String(text)) }
            for child in element.children {
                result.children.append(try expected(child, isStrict: isStrict, parent: element.namespaceURI))
            }
            return result
        }

        private func strictness(_ attribute: Element.Attribute) throws(ScriptFault) -> Bool {
            guard attribute.name == "strict" else {
                throw fault(
                    "scansion:\(attribute.name)",
                    "unknown attribute scansion:\(attribute.name)",
                    "scansion:strict"
                )
            }
            switch attribute.value {
            case "true", "yes", "1": return true
            case "false", "no", "0": return false
            default: throw fault(attribute.value, "scansion:strict is \"\(attribute.value)\"", "true or false")
            }
        }

        private func value(_ text: String) throws(ScriptFault) -> ExpectedElement.Value {
            guard text.hasPrefix("{scansion:"), text.hasSuffix("}") else {
                return .text(try self.text(Array(text.utf8)))
            }
            let word = text.dropFirst("{scansion:".count).dropLast()
            if word == "any" { return .any }
            let parts = word.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.first == "capture" else {
                let nearest = Spelling.nearest(to: String(parts.first ?? ""), among: ["any", "capture"])
                throw fault(text, "unknown wildcard \(text)", Self.wildcards, nearest: nearest)
            }
            guard parts.count == 2, !parts[1].isEmpty else {
                throw fault(text, "a capture without a name", Self.wildcards)
            }
            return .capture(String(parts[1]))
        }

        private static let wildcards = "{scansion:any} or {scansion:capture:NAME}"

        /// Returns a fault at the first occurrence of `word` in the stanza.
        private func fault(
            _ word: String,
            _ found: String,
            _ expected: String,
            nearest: String? = nil
        ) -> ScriptFault {
            let place = ScriptSource.find(word, in: block[...]) ?? 0
            return source.fault(at: start + place, found, expected: expected, nearest: nearest)
        }
    }
}
