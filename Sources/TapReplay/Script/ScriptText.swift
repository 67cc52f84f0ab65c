internal import XMPPCore

/// Text with variables: `${Romeo's JID}` and `${Romeo's full JID}`.
package struct ScriptText: Sendable, Hashable {
    enum Piece: Sendable, Hashable {
        case text([UInt8])
        case variable(ScriptVariable)
    }

    let pieces: [Piece]

    init(_ pieces: [Piece]) { self.pieces = pieces }

    /// Returns the text with its variables substituted.
    ///
    /// - Parameter isXML: Whether the text is XML, so that values are escaped.
    func bytes(_ values: ScriptValues, isXML: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        for piece in pieces {
            switch piece {
            case .text(let text): bytes += text
            case .variable(let variable):
                let value = values[variable]
                // The escapes of attributes are valid in text too.
                bytes += isXML ? Self.escaped(value) : Array(value.utf8)
            }
        }
        return bytes
    }

    private static func escaped(_ value: String) -> [UInt8] {
        value.utf8.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "&"): Array("&amp;".utf8)
            case UInt8(ascii: "<"): Array("&lt;".utf8)
            case UInt8(ascii: "'"): Array("&apos;".utf8)
            case UInt8(ascii: "\""): Array("&quot;".utf8)
            default: [byte]
            }
        }
    }
}

/// A variable for a character's address.
struct ScriptVariable: Sendable, Hashable {
    /// Index of the character.
    var character: Int
    /// Whether the value of the variable is the full JID, which is known once the character is connected.
    var isFull: Bool
}

/// The state of a running script: addresses of its characters, and captured values.
package struct ScriptValues: Sendable, Hashable {
    /// Bare JIDs by character.
    var accounts: [String]
    /// Full JIDs by character, empty before the login.
    var resources: [String]
    /// Captured values by name.
    var captures: [String: String] = [:]

    init(accounts: [String]) {
        self.accounts = accounts
        resources = accounts.map { _ in "" }
    }

    subscript(variable: ScriptVariable) -> String {
        let values = variable.isFull ? resources : accounts
        return values.indices.contains(variable.character) ? values[variable.character] : ""
    }
}
