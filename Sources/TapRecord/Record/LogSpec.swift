package import XMPPCore

/// The selection of a log, as the user specified it: `info,send,recv,tls=trace,jid:romeo@example.org=verbose`.
///
/// A comma-separated list of words, each at most once, in any order:
/// - `off`, `error`, `warn`, `info`, `verbose`, `trace`: the level; default `info`;
/// - `send`, `recv`: SEND and RECV lines with the whole XML, at any level; `verbose` implies both;
/// - `PART=LEVEL`: another level for one ``Part``;
/// - `session:N=LEVEL`: another level for the session with that number;
/// - `jid:JID=LEVEL`: another level for the sessions of a full JID, of every resource of a bare JID, or of a whole
///   domain. A bare JID or a domain also applies to sessions that are still logging in. In the JID, a comma is written
///   `%2C`, and a percent sign before `2C` or `25` is written `%25`.
///
/// For each record the most specific word applies: session before JID before part before the level. ``LogFilter``
/// implements this.
package struct LogSpec: Sendable, Hashable {
    /// The level; `nil` if not specified.
    package var level: Level?
    /// Whether `send` was specified.
    package var showsSend = false
    /// Whether `recv` was specified.
    package var showsReceive = false
    /// The levels of parts.
    package private(set) var parts: [Part: Level] = [:]
    /// The levels of sessions by number.
    package private(set) var sessions: [UInt64: Level] = [:]
    /// The levels of JIDs, in the specified order.
    package private(set) var jids: [JIDLevel] = []

    /// A level for the sessions of a JID.
    package struct JIDLevel: Sendable, Hashable {
        /// A full JID, a bare JID for all its resources, or a domain for all its JIDs.
        package let jid: JID
        /// The level of those sessions.
        package let level: Level
    }

    /// Creates a specification of a level and the switches, without levels for parts, sessions or JIDs.
    package init(level: Level? = nil, send: Bool = false, receive: Bool = false) {
        self.level = level
        showsSend = send
        showsReceive = receive
    }

    /// Sets the level of a part; nil removes it.
    package mutating func set(_ level: Level?, part: Part) { parts[part] = level }

    /// Sets the level of a session; nil removes it.
    package mutating func set(_ level: Level?, session: UInt64) { sessions[session] = level }

    /// Sets the level of the sessions of a JID; nil removes it.
    package mutating func set(_ level: Level?, jid: JID) {
        jids.removeAll { $0.jid == jid }
        if let level { jids.append(JIDLevel(jid: jid, level: level)) }
    }

    /// Parses a specification; spaces around its words are ignored.
    package init(_ text: String) throws(LogSpecError) {
        var column = 1
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            let leading = word.prefix { $0 == " " }.count
            var trimmed = word.dropFirst(leading)
            while trimmed.last == " " { trimmed.removeLast() }
            try add(Word(text: String(trimmed), column: column + leading))
            column += word.count + 1
        }
    }

    private struct Word {
        var text: String
        var column: Int

        func error(_ code: LogSpecError.Code) -> LogSpecError {
            LogSpecError(code: code, word: text, column: column)
        }
    }

    private mutating func add(_ word: Word) throws(LogSpecError) {
        guard !word.text.isEmpty else { throw word.error(.emptyWord) }
        // Splits at the last "=", because a JID may contain "=" but a level cannot.
        guard let equals = word.text.lastIndex(of: "=") else { return try addSwitch(word) }
        let subject = word.text[..<equals]
        let levelName = word.text[word.text.index(after: equals)...]
        guard let level = Level(name: levelName) else { throw word.error(.unknownLevel(String(levelName))) }

        if subject.hasPrefix("session:") {
            let digits = subject.dropFirst("session:".count)
            guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt64(digits), number > 0 else {
                throw word.error(.badSession(String(digits)))
            }
            guard sessions.updateValue(level, forKey: number) == nil else { throw word.error(.repeated) }
        } else if subject.hasPrefix("jid:") {
            let jid: JID
            do throws(JIDError) {
                jid = try JID(parsing: Self.decode(subject.dropFirst("jid:".count)))
            } catch {
                throw word.error(.badJID(error.reason))
            }
            guard !jids.contains(where: { $0.jid == jid }) else { throw word.error(.repeated) }
            jids.append(JIDLevel(jid: jid, level: level))
        } else {
            guard let part = Part(name: subject) else { throw word.error(.unknownPart(String(subject))) }
            guard parts.updateValue(level, forKey: part) == nil else { throw word.error(.repeated) }
        }
    }

    private mutating func addSwitch(_ word: Word) throws(LogSpecError) {
        if let level = Level(name: word.text) {
            if let earlier = self.level { throw word.error(.secondLevel(earlier)) }
            self.level = level
        } else if word.text == "send", !showsSend {
            showsSend = true
        } else if word.text == "recv", !showsReceive {
            showsReceive = true
        } else if word.text == "send" || word.text == "recv" {
            throw word.error(.repeated)
        } else if Part(name: word.text) != nil || word.text.hasPrefix("session:") || word.text.hasPrefix("jid:") {
            throw word.error(.missingLevel)
        } else {
            throw word.error(.unknownWord)
        }
    }

    /// Decodes `%2C` and `%25`; any other percent sign is literal.
    private static func decode(_ text: Substring) -> String {
        var result = ""
        var rest = text
        while let character = rest.popFirst() {
            if character == "%", rest.prefix(2).lowercased() == "2c" || rest.hasPrefix("25") {
                result.append(rest.hasPrefix("25") ? "%" : ",")
                rest.removeFirst(2)
            } else {
                result.append(character)
            }
        }
        return result
    }

    /// Encodes a text for ``decode(_:)``.
    private static func encode(_ text: String) -> String {
        var result = ""
        var rest = text[...]
        while let character = rest.popFirst() {
            switch character {
            case ",": result += "%2C"
            case "%" where rest.prefix(2).lowercased() == "2c" || rest.hasPrefix("25"): result += "%25"
            default: result.append(character)
            }
        }
        return result
    }
}

extension LogSpec: CustomStringConvertible {
    /// The specification as text, in a fixed order; parsing the text gives an equal specification.
    package var description: String {
        var words: [String] = []
        if let level { words.append(level.name) }
        if showsSend { words.append("send") }
        if showsReceive { words.append("recv") }
        for part in Part.allCases {
            if let level = parts[part] { words.append("\(part.name)=\(level.name)") }
        }
        for (number, level) in sessions.sorted(by: { $0.key < $1.key }) {
            words.append("session:\(number)=\(level.name)")
        }
        for entry in jids { words.append("jid:\(Self.encode(entry.jid.description))=\(entry.level.name)") }
        // An empty specification means the default.
        return words.isEmpty ? Level.info.name : words.joined(separator: ",")
    }
}
