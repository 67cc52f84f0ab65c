/// An extension in `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
package struct WebSocketExtension: Sendable, Hashable {
    /// A parameter; its value is nil if it has none.
    package struct Parameter: Sendable, Hashable {
        package var name: String
        package var value: String?

        package init(_ name: String, _ value: String? = nil) {
            self.name = name
            self.value = value
        }
    }

    /// The registered name.
    package var name: String
    /// The parameters in the order of the field.
    package var parameters: [Parameter]

    package init(_ name: String, _ parameters: [Parameter] = []) {
        self.name = name
        self.parameters = parameters
    }

    /// The extension as written in the field.
    package var text: String {
        name + parameters.map { "; " + $0.name + ($0.value.map { "=" + $0 } ?? "") }.joined()
    }

    /// Returns the extensions in one or more header fields, in order; nil if a field is malformed.
    package static func parse(_ fields: [String]) -> [WebSocketExtension]? {
        var extensions: [WebSocketExtension] = []
        for field in fields {
            var reader = Reader(field)
            guard let found = reader.readList() else { return nil }
            extensions += found
        }
        return extensions
    }

    /// Returns a field without the extensions of this name (in lower case), whatever their case, with the others in a canonical form. The result is nil, for
    /// no field at all, if no other extension remains, or if the field is malformed: a peer might read it differently.
    package static func removing(_ name: String, from fields: [String]) -> String? {
        guard let rest = parse(fields)?.filter({ $0.name.lowercased() != name }), !rest.isEmpty else { return nil }
        return rest.map(\.text).joined(separator: ", ")
    }

    /// Reads the grammar of RFC 6455 §9.1, with the lists of RFC 9110 §5.6.1.
    private struct Reader {
        private let bytes: [UInt8]
        private var index = 0

        init(_ field: String) { bytes = Array(field.utf8) }

        mutating func readList() -> [WebSocketExtension]? {
            var list: [WebSocketExtension] = []
            while true {
                skipSpace()
                guard index < bytes.count else { return list }
                if skip(0x2C) { continue }
                guard let one = readExtension() else { return nil }
                list.append(one)
                skipSpace()
                guard index == bytes.count || skip(0x2C) else { return nil }
            }
        }

        private mutating func readExtension() -> WebSocketExtension? {
            guard let name = readToken() else { return nil }
            var parameters: [Parameter] = []
            while true {
                skipSpace()
                guard skip(0x3B) else { return WebSocketExtension(name, parameters) }
                skipSpace()
                guard let name = readToken() else { return nil }
                var parameter = Parameter(name)
                skipSpace()
                if skip(0x3D) {
                    skipSpace()
                    guard let value = peek == 0x22 ? readQuoted() : readToken() else { return nil }
                    parameter.value = value
                }
                parameters.append(parameter)
            }
        }

        private var peek: UInt8? { index < bytes.count ? bytes[index] : nil }

        private mutating func skipSpace() { while peek == 0x20 || peek == 0x09 { index += 1 } }

        private mutating func skip(_ byte: UInt8) -> Bool {
            guard peek == byte else { return false }
            index += 1
            return true
        }

        private mutating func readToken() -> String? {
            let start = index
            while let byte = peek, Self.isToken(byte) { index += 1 }
            return index > start ? String(decoding: bytes[start..<index], as: UTF8.self) : nil
        }

        /// Reads a quoted string, whose content must be a token (RFC 6455 §9.1).
        private mutating func readQuoted() -> String? {
            var content: [UInt8] = []
            index += 1
            while let byte = peek, byte != 0x22 {
                if byte == 0x5C { index += 1 }
                guard let byte = peek, Self.isToken(byte) else { return nil }
                content.append(byte)
                index += 1
            }
            return skip(0x22) && !content.isEmpty ? String(decoding: content, as: UTF8.self) : nil
        }

        private static func isToken(_ byte: UInt8) -> Bool {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
            default: false
            }
        }
    }
}

/// The reason why extensions are not negotiated correctly. The raw value is stable.
package enum WebSocketExtensionFault: String, Error, Sendable, CaseIterable {
    case malformed = "extensions-malformed"
    /// The server answers an extension that the client has not offered, or one twice (RFC 6455 §9.1).
    case notOffered = "extension-not-offered"
    /// The peers agree on an extension other than permessage-deflate: frames cannot be read.
    case unsupported = "extension-unsupported"
    /// A parameter of permessage-deflate is unknown or repeated, or has a wrong value (RFC 7692 §7.1).
    case parameter = "extension-parameter"
    /// The answer does not fit to any offer of permessage-deflate (RFC 7692 §7.1).
    case mismatch = "extension-mismatch"

    /// A description of the fault as one clause, for people.
    package var explanation: StaticString {
        switch self {
        case .malformed: "the header field is malformed"
        case .notOffered: "the client did not offer it"
        case .unsupported: "only permessage-deflate can be decoded"
        case .parameter: "a parameter is unknown, repeated or has a wrong value"
        case .mismatch: "the parameters do not fit to the offer of the client"
        }
    }
}
