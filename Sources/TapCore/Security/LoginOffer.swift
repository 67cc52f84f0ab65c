/// What a server offers for a login, as far as SCRAM can sign it: the attributes `h` (XEP-0474) and `t` (XEP-0515) of the
/// server's first message. A client compares them with what it has seen, and must fail where they differ.
public struct LoginOffer: Sendable, Hashable {
    /// The mechanisms of the profile in use, SASL's or SASL2's, in any order.
    public var mechanisms: [String]
    /// The types of channel binding that are named (XEP-0440), in any order; nil where there is no such list.
    public var bindingTypes: [String]?
    /// The version of TLS, as in the protocol (0x0304 is TLS 1.3); nil without TLS.
    public var tlsVersion: UInt16?

    /// An offer of these parts.
    public init(mechanisms: [String], bindingTypes: [String]? = nil, tlsVersion: UInt16? = nil) {
        self.mechanisms = mechanisms
        self.bindingTypes = bindingTypes
        self.tlsVersion = tlsVersion
    }

    /// The text whose hash, by the mechanism's function and in base64, is the attribute `h` (XEP-0474 0.4.0 and later).
    public var signedList: [UInt8] {
        var text = Self.joined(mechanisms)
        if let bindingTypes { text += [0x1F] + Self.joined(bindingTypes) }
        return text
    }

    /// The attribute `t`, four digits such as `0304`; nil without TLS.
    public var signedVersion: String? {
        tlsVersion.map { version in
            let digits = String(version, radix: 16)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }
    }

    /// Sorted by their bytes (i;octet), with a record separator between them.
    private static func joined(_ names: [String]) -> [UInt8] {
        let sorted = names.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        return Array(sorted.joined(separator: [0x1E]))
    }
}
