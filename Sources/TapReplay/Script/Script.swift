/// A scansion script: who takes part, and what each of them does, one step after the other.
///
///     # A message to a full JID
///     [Client] Romeo
///     	jid: romeo@localhost
///     	password: secret
///     -----
///     Romeo connects
///     Romeo sends:
///     	<message to="${Romeo's full JID}"><body>Hi</body></message>
///     Romeo receives:
///     	<message from="${Romeo's full JID}" id="{scansion:any}"/>
///
/// The language is scansion's (matthewwild.co.uk/projects/scansion). Of its characters only clients are known.
public struct Script: Sendable {
    /// A word by which scripts are chosen: `## slow`, `## status: stable`.
    public struct Tag: Sendable, Hashable {
        /// What stands before the colon, or all of it.
        public var name: String
        /// What stands behind the colon; nil without one.
        public var value: String?
    }

    /// A client.
    public struct Character: Sendable, Hashable {
        /// How the script calls it: `Juliet's phone`.
        public var name: String
        /// Its bare JID; never empty in a script that was parsed.
        public var jid = ""
        /// Its password; nil where the script has none.
        public var password: String?
        /// The resource to ask for; nil leaves it to the server.
        public var resource: String?
        /// The server's host or address; nil where the script leaves it to the command.
        public var host: String?
        /// The server's port; nil where the script leaves it to the command.
        public var port: Int?
        /// The line that defines it, from 1.
        public var line: Int
    }

    /// What a character does.
    public enum Action: Sendable {
        /// Logs in and binds a resource.
        case connects
        /// Closes its stream.
        case disconnects
        /// Sends a stanza.
        case sends(ScriptText)
        /// Gets a stanza, the next that comes.
        case receives(ExpectedElement)
        /// Gets nothing for a while.
        case receivesNothing
    }

    /// One action of one character.
    public struct Step: Sendable {
        /// Index of the character.
        public var character: Int
        /// What it does.
        public var action: Action
        /// The line of the action, from 1.
        public var line: Int
        /// The stanza of ``Action/receives(_:)`` as it stands in the script; nil of other actions.
        var expected: String?
    }

    /// The first comment; nil without one.
    public internal(set) var title: String?
    /// The other comments before the first character, joined by newlines.
    public internal(set) var description = ""
    /// The tags in the script's order.
    public internal(set) var tags: [Tag] = []
    /// At least one.
    public internal(set) var characters: [Character] = []
    /// At least one.
    public internal(set) var steps: [Step] = []

    /// Reads a script.
    ///
    /// - Parameters:
    ///   - bytes: UTF-8; lines end with LF or CR LF.
    ///   - file: The name for faults.
    /// - Throws: The first ``ScriptFault``.
    public init(_ bytes: [UInt8], file: String) throws(ScriptFault) {
        var parser = ScriptParser(bytes, file: file)
        self = try parser.parse()
    }

    init() {}

    /// Whether it has a tag; one without a value is the same with any.
    public func has(_ wanted: Tag) -> Bool {
        tags.contains { $0.name == wanted.name && (wanted.value == nil || $0.value == wanted.value) }
    }
}

extension Script.Tag {
    /// Reads `NAME` or `NAME: VALUE`.
    public init(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1)
        name = parts.first.map { String($0.trimmingBlanks) } ?? ""
        value = parts.count > 1 ? String(parts[1].trimmingBlanks) : nil
    }
}

extension Substring {
    /// Without blanks and tabs at its ends.
    var trimmingBlanks: Substring {
        let rest = drop { $0 == " " || $0 == "\t" }
        guard let last = rest.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return rest[...last]
    }
}
