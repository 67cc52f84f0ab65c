internal import XMPPCore

/// A text with expressions: `$<path|function||"default">`, and the `$(…)` expressions of ``Known``.
struct RuleText: Sendable, Hashable {
    enum Function: String, Sendable, CaseIterable {
        case bare, node, host, resource
    }

    /// The supported names in `$(…)`.
    enum Known: String, Sendable, CaseIterable {
        case stanza
        case topTag = "stanza:top_tag()"
        case name = "stanza.name"
        case jid = "session.full_jid"
        case user = "session.username"
        case host = "session.host"
        case ip = "session.ip"
    }

    indirect enum Part: Sendable, Hashable {
        case literal([UInt8])
        case path(StanzaPath, [Function], default: [UInt8])
        case known(Known)
        /// `%1` in a replacement; 0 is the whole match.
        case capture(Int)
    }

    var parts: [Part] = []

    /// The text if it has no expressions; otherwise nil.
    var literal: [UInt8]? {
        switch parts.count {
        case 0: []
        case 1: if case .literal(let bytes) = parts[0] { bytes } else { nil }
        default: nil
        }
    }

    /// Creates a text without expressions.
    init(literal: String) { parts = literal.isEmpty ? [] : [.literal(Array(literal.utf8))] }

    /// Parses a text.
    ///
    /// - Parameters:
    ///   - reader: At the start of the text, which extends to the end of the line.
    ///   - captures: Number of captures that `%1` and so on can refer to; nil if `%` is literal.
    init(_ reader: inout RuleReader, captures: Int? = nil) throws(RuleFault) {
        var literal = ""
        while !reader.isAtEnd {
            let start = reader
            if reader.consume("$<") {
                flush(&literal)
                parts.append(try Self.expression(&reader, start))
            } else if reader.consume("$(") {
                flush(&literal)
                parts.append(try Self.known(&reader, start))
            } else if let captures, reader.consume("%") {
                if reader.consume("%") {
                    literal += "%"
                    continue
                }
                flush(&literal)
                // As in Lua, %1 is the whole match if the pattern has no captures.
                parts.append(.capture(try reader.integer("capture after %", in: 0...max(1, captures))))
                if captures == 0, case .capture(1) = parts.last { parts[parts.count - 1] = .capture(0) }
            } else {
                literal += reader.rest.prefix(1)
                _ = reader.consume(String(reader.rest.prefix(1)))
            }
        }
        flush(&literal)
    }

    private mutating func flush(_ literal: inout String) {
        if !literal.isEmpty { parts.append(.literal(Array(literal.utf8))) }
        literal = ""
    }

    private static func expression(_ reader: inout RuleReader, _ start: RuleReader) throws(RuleFault) -> Part {
        var source = ""
        var depth = 1
        while let character = reader.rest.first {
            if character == "<" { depth += 1 }
            if character == ">" { depth -= 1 }
            _ = reader.consume(String(character))
            if depth == 0 { break }
            source.append(character)
        }
        guard depth == 0 else { throw reader.fault("\"$<\" without \">\"", at: start) }
        var fallback = "<undefined>"
        if let bar = source.firstRange(of: "||\""), source.hasSuffix("\""), source.endIndex > bar.upperBound {
            fallback = String(source[bar.upperBound...].dropLast())
            source = String(source[..<bar.lowerBound])
        }
        let words = source.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        var functions: [Function] = []
        for word in words.dropFirst() {
            guard let function = Function(rawValue: word) else {
                throw reader.fault(
                    "\"\(word)\" is not a function of an expression",
                    "expected bare, node, host or resource, or ||\"default\" at the end",
                    at: start
                )
            }
            functions.append(function)
        }
        do throws(StanzaPath.PathFault) {
            let path = try StanzaPath(words.first ?? "")
            return .path(path, functions, default: Array(fallback.utf8))
        } catch {
            throw reader.fault(
                "\(error.message) in \"$<\(source)>\"",
                "expected a path, as in $<@from|bare>",
                at: start
            )
        }
    }

    private static func known(_ reader: inout RuleReader, _ start: RuleReader) throws(RuleFault) -> Part {
        var source = ""
        var depth = 1
        while let character = reader.rest.first {
            if character == "(" { depth += 1 }
            if character == ")" { depth -= 1 }
            _ = reader.consume(String(character))
            if depth == 0 { break }
            source.append(character)
        }
        guard depth == 0 else { throw reader.fault("\"$(\" without \")\"", at: start) }
        if let known = Known(rawValue: source) { return .known(known) }
        if source.hasPrefix("stanza.attr."), let path = try? StanzaPath("@" + source.dropFirst(12)) {
            return .path(path, [], default: Array("nil".utf8))
        }
        throw reader.fault(
            "\"$(\(source))\" is Lua code; xmpptap does not run Lua",
            "expected $<…>, $(stanza.attr.NAME) or one of "
                + Known.allCases.map { "$(\($0.rawValue))" }.joined(separator: ", "),
            at: start
        )
    }
}
