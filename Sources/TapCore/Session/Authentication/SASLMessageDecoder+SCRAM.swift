internal import TapRecord

// SCRAM (RFC 5802), and the GS2 header that OAuth's mechanisms share with it.
extension SASLMessageDecoder {
    mutating func readSCRAM(
        _ message: [UInt8],
        isClient: Bool,
        _ details: inout Attributes
    ) throws(Malformed) -> String? {
        guard isClient else {
            try readSCRAMServer(try Self.attributes(message[...]), &details)
            return nil
        }
        if message.starts(with: "c=".utf8) {
            try readSCRAMFinal(try Self.attributes(message[...]), &details)
            return nil
        }
        let rest = try readGS2(message, &details)
        let attributes = try Self.attributes(message[rest...])
        guard attributes.count >= 2, attributes[0].name == 0x6E, attributes[1].name == 0x72,
            !attributes[1].value.isEmpty
        else { throw Malformed() }
        clientNonce = Array(attributes[1].value)
        details["client_nonce_bytes"] = .integer(Int64(attributes[1].value.count))
        return try Self.note(user: try Self.unescape(attributes[0].value)[...], &details)
    }

    private func readSCRAMServer(_ attributes: [Attribute], _ details: inout Attributes) throws(Malformed) {
        guard let first = attributes.first else { throw Malformed() }
        switch first.name {
        case 0x76: details["server_signature"] = true
        case 0x65:
            let error = try Self.string(first.value)
            let isCode = error.utf8.allSatisfy { $0 >= 0x61 && $0 <= 0x7A || $0 == 0x2D } && error.utf8.count <= 64
            details["server_error"] = .string(isCode ? error : "other-error")
        case 0x72:
            guard attributes.count >= 3, attributes[1].name == 0x73, attributes[2].name == 0x69,
                let salt = Base64.decode(try Self.string(attributes[1].value)),
                let iterations = Int64(try Self.string(attributes[2].value)), iterations > 0
            else { throw Malformed() }
            if let clientNonce, !first.value.starts(with: clientNonce) {
                details["nonce_mismatch"] = true
                details["server_nonce_bytes"] = .integer(Int64(first.value.count))
            } else {
                details["server_nonce_bytes"] = .integer(Int64(first.value.count - (clientNonce?.count ?? 0)))
            }
            details["salt_bytes"] = .integer(Int64(salt.count))
            details["iterations"] = .integer(iterations)
            for attribute in attributes.dropFirst(3) {
                switch attribute.name {
                // XEP-0474, in its present form and that of before 0.4.0.
                case 0x68: details["signs_mechanisms"] = "h"
                case 0x64: details["signs_mechanisms"] = "d"
                // XEP-0515.
                case 0x74: details["signs_tls_version"] = .string(Self.version(attribute.value))
                default: break
                }
            }
        default: throw Malformed()
        }
    }

    private static func version(_ value: ArraySlice<UInt8>) -> String {
        let isVersion =
            value.count == 4 && value.allSatisfy { $0 >= 0x30 && $0 <= 0x39 || $0 >= 0x61 && $0 <= 0x66 }
        return isVersion ? String(decoding: value, as: UTF8.self) : "other"
    }

    private func readSCRAMFinal(_ attributes: [Attribute], _ details: inout Attributes) throws(Malformed) {
        guard attributes.count >= 3, attributes[1].name == 0x72, attributes.last?.name == 0x70,
            let binding = Base64.decode(try Self.string(attributes[0].value))
        else { throw Malformed() }
        details["proof"] = true
        guard let gs2Header else { return }
        if binding.starts(with: gs2Header) {
            details["channel_binding_bytes"] = .integer(Int64(binding.count - gs2Header.count))
        } else {
            details["channel_binding_changed"] = true
        }
    }

    /// Reads `n,,`, `y,a=authzid,`, `p=type,,` (RFC 5801 §4); returns where what follows begins.
    mutating func readGS2(_ message: [UInt8], _ details: inout Attributes) throws(Malformed) -> Int {
        guard let comma = message.firstIndex(of: 0x2C),
            let end = message[(comma + 1)...].firstIndex(of: 0x2C)
        else { throw Malformed() }
        let flag = message[..<comma]
        switch flag.first {
        case 0x6E where flag.count == 1: details["channel_binding_flag"] = "n"
        case 0x79 where flag.count == 1: details["channel_binding_flag"] = "y"
        case 0x70 where flag.count > 2 && flag[1] == 0x3D:
            details["channel_binding_flag"] = "p"
            details["channel_binding"] = .string(try Self.string(flag[2...]))
        default: throw Malformed()
        }
        let authzid = message[(comma + 1)..<end]
        if !authzid.isEmpty {
            guard authzid.count > 2, authzid.starts(with: "a=".utf8) else { throw Malformed() }
            details["authzid"] = .string(try Self.string(try Self.unescape(authzid.dropFirst(2))[...]))
        }
        gs2Header = Array(message[...end])
        return end + 1
    }

    /// A letter and its value.
    private struct Attribute {
        var name: UInt8
        var value: ArraySlice<UInt8>
    }

    private static func attributes(_ message: ArraySlice<UInt8>) throws(Malformed) -> [Attribute] {
        var attributes: [Attribute] = []
        for part in message.split(separator: 0x2C, omittingEmptySubsequences: false) {
            guard part.count >= 2, part[part.startIndex + 1] == 0x3D else { throw Malformed() }
            attributes.append(Attribute(name: part[part.startIndex], value: part.dropFirst(2)))
        }
        return attributes
    }

    /// A name with `=2C` and `=3D` for comma and equals sign (RFC 5802 §5.1).
    private static func unescape(_ name: ArraySlice<UInt8>) throws(Malformed) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = name
        while let byte = rest.popFirst() {
            guard byte == 0x3D else {
                bytes.append(byte)
                continue
            }
            if rest.starts(with: "2C".utf8) {
                bytes.append(0x2C)
            } else if rest.starts(with: "3D".utf8) {
                bytes.append(0x3D)
            } else {
                throw Malformed()
            }
            rest = rest.dropFirst(2)
        }
        return bytes
    }
}
