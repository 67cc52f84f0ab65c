/// A list of `letter=value` attributes, the format of SCRAM messages (RFC 5802 §7).
///
/// Parsed as bytes: in a string of characters, a comma followed by a combining mark is not a comma, so client and
/// server could parse a message differently. Values are not decoded.
package struct SCRAMAttributes {
    package let attributes: [(name: UInt8, value: ArraySlice<UInt8>)]

    /// Splits a message; nil if a part is not an attribute, or the text contains NUL or is not UTF-8.
    package init?(_ message: ArraySlice<UInt8>) {
        guard !message.contains(0), String(validating: message, as: UTF8.self) != nil else { return nil }
        var attributes: [(UInt8, ArraySlice<UInt8>)] = []
        for piece in message.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            guard let name = piece.first, isLetter(name), piece.dropFirst().first == UInt8(ascii: "=") else {
                return nil
            }
            attributes.append((name, piece.dropFirst(2)))
        }
        self.attributes = attributes
    }

    /// Whether the message begins with `m=`, a mandatory extension. No such extension is defined, so the message must
    /// be refused.
    package var hasMandatoryExtension: Bool { self.attributes.first?.name == UInt8(ascii: "m") }

    /// Returns the values of the first attributes if these have the given names in this order; nil otherwise. More
    /// attributes may follow.
    package func values(_ names: StaticString) -> [ArraySlice<UInt8>]? {
        let names = names.description.utf8
        guard names.count <= self.attributes.count else { return nil }
        let first = self.attributes.prefix(names.count)
        guard zip(first, names).allSatisfy({ $0.name == $1 }) else { return nil }
        return first.map(\.value)
    }

    /// Returns the value of the first attribute with this name after the first `count` attributes.
    package func value(_ name: Unicode.Scalar, after count: Int) -> ArraySlice<UInt8>? {
        attributes.dropFirst(count).first { $0.name == UInt8(ascii: name) }?.value
    }
}

/// The GS2 header of a client's first message: the channel binding flag and the authorization identity.
package struct SCRAMHeader {
    package enum Flag: Equatable {
        /// `n`: the client does not support channel binding.
        case unsupported
        /// `y`: the client supports channel binding, but the server appears not to.
        case notOffered
        /// `p=`: the client uses a binding of this type.
        case bound(String)
    }

    package let flag: Flag
    package let authorization: String?
    /// The bytes of the header including its second comma. The client's final message repeats them in `c=`.
    package let bytes: ArraySlice<UInt8>

    /// Removes the GS2 header from the beginning of a message; nil if the header is malformed.
    package init?(takingFrom message: inout ArraySlice<UInt8>) {
        let comma = UInt8(ascii: ",")
        guard let first = message.firstIndex(of: comma),
            let second = message[(first + 1)...].firstIndex(of: comma)
        else { return nil }
        let flag = message[..<first]
        switch flag.first {
        case UInt8(ascii: "n") where flag.count == 1: self.flag = .unsupported
        case UInt8(ascii: "y") where flag.count == 1: self.flag = .notOffered
        case UInt8(ascii: "p") where flag.dropFirst().first == UInt8(ascii: "="):
            let type = flag.dropFirst(2)
            guard !type.isEmpty, type.allSatisfy(isTypeCharacter) else { return nil }
            self.flag = .bound(String(decoding: type, as: UTF8.self))
        default: return nil
        }
        let name = message[(first + 1)..<second]
        if name.isEmpty {
            authorization = nil
        } else {
            guard name.starts(with: "a=".utf8), let decoded = Self.decodeName(name.dropFirst(2)) else { return nil }
            authorization = decoded
        }
        bytes = message[...second]
        message = message[(second + 1)...]
    }

    /// Decodes a name; nil if it is empty, or contains `=` other than in `=2C` and `=3D`.
    package static func decodeName(_ value: ArraySlice<UInt8>) -> String? {
        var name: [UInt8] = []
        var rest = value
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "=") else {
                name.append(byte)
                continue
            }
            if rest.starts(with: "2C".utf8) {
                name.append(UInt8(ascii: ","))
            } else if rest.starts(with: "3D".utf8) {
                name.append(UInt8(ascii: "="))
            } else {
                return nil
            }
            rest = rest.dropFirst(2)
        }
        return name.isEmpty ? nil : String(validating: name, as: UTF8.self)
    }
}

private func isLetter(_ byte: UInt8) -> Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
}

/// Returns whether a byte may occur in a channel binding type (RFC 5056 §7).
private func isTypeCharacter(_ byte: UInt8) -> Bool {
    isLetter(byte) || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || byte == UInt8(ascii: "-")
        || byte == UInt8(ascii: ".")
}
