/// A scansion script: its characters, and their actions in sequence.
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
/// The language is that of scansion (matthewwild.co.uk/projects/scansion); only clients are supported as characters.
package struct Script: Sendable {
    /// A tag for the selection of scripts: `## slow`, `## status: stable`.
    package struct Tag: Sendable, Hashable {
        /// The part before the colon, or the whole tag.
        package var name: String
        /// The part after the colon; nil if there is none.
        package var value: String?
    }

    /// A client.
    package struct Character: Sendable, Hashable {
        /// The name in the script: `Juliet's phone`.
        package var name: String
        /// The bare JID; never empty in a parsed script.
        package var jid = ""
        /// The password; nil if the script contains none.
        package var password: String?
        /// The resource to request; nil lets the server choose.
        package var resource: String?
        /// The server's host name or address; nil if the script does not set it.
        package var host: String?
        /// The server's port; nil if the script does not set it.
        package var port: Int?
        /// The line that defines the character, from 1.
        package var line: Int
    }

    /// An action of a character.
    package enum Action: Sendable {
        /// Logs in and binds a resource.
        case connects
        /// Closes its stream.
        case disconnects
        /// Sends a stanza.
        case sends(ScriptText)
        /// Receives a stanza that matches.
        case receives(ExpectedElement)
        /// Receives nothing during ``ScriptPlay/Settings/quiet``.
        case receivesNothing
    }

    /// One action of one character.
    package struct Step: Sendable {
        /// Index of the character.
        package var character: Int
        /// The action.
        package var action: Action
        /// The line of the action, from 1.
        package var line: Int
        /// The stanza of ``Action/receives(_:)`` as written in the script; nil for other actions.
        var expected: String?
    }

    /// The first comment; nil if there is none.
    package internal(set) var title: String?
    /// The other comments before the first character, joined by newlines.
    package internal(set) var description = ""
    /// The tags in order.
    package internal(set) var tags: [Tag] = []
    /// The characters, at least one.
    package internal(set) var characters: [Character] = []
    /// The steps, at least one.
    package internal(set) var steps: [Step] = []

    /// Parses a script.
    ///
    /// - Parameters:
    ///   - bytes: UTF-8 text; lines end with LF or CR LF.
    ///   - file: The file name for errors.
    /// - Throws: The first ``ScriptFault``.
    package init(_ bytes: [UInt8], file: String) throws(ScriptFault) {
        var parser = ScriptParser(bytes, file: file)
        self = try parser.parse()
    }

    init() {}

    /// Returns whether the script has a tag; a wanted tag without a value matches any value.
    package func has(_ wanted: Tag) -> Bool {
        tags.contains { $0.name == wanted.name && (wanted.value == nil || $0.value == wanted.value) }
    }
}

extension Script.Tag {
    /// Parses `NAME` or `NAME: VALUE`.
    package init(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1)
        name = parts.first.map { String($0.trimmingBlanks) } ?? ""
        value = parts.count > 1 ? String(parts[1].trimmingBlanks) : nil
    }
}

extension Script.Tag: CustomStringConvertible {
    /// The tag as written in a script.
    package var description: String { value.map { "\(name): \($0)" } ?? name }
}

extension Substring {
    /// The text without leading and trailing spaces and tabs.
    var trimmingBlanks: Substring {
        let rest = drop { $0 == " " || $0 == "\t" }
        guard let last = rest.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return rest[...last]
    }
}
