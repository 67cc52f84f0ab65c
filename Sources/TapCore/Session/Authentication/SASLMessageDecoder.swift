internal import TapRecord

/// Decodes the messages of one exchange with one mechanism; its state contains no secrets.
struct SASLMessageDecoder: Sendable {
    let mechanism: SASLMechanism
    let policy: RedactionPolicy

    var clientNonce: [UInt8]?
    /// The GS2 header of the client's first SCRAM or OAuth message.
    private var gs2Header: [UInt8]?

    init(_ mechanism: SASLMechanism, policy: RedactionPolicy) {
        self.mechanism = mechanism
        self.policy = policy
    }

    /// The error for a message that violates its mechanism.
    struct Malformed: Error {}

    /// Adds the details of a message that are not secret; returns the authentication identity that the message
    /// contains, if any.
    ///
    /// For a malformed message, `malformed` is the only detail added: a part that looks like a name may be a secret.
    mutating func decode(_ message: [UInt8], _ role: SASLMessage.Role, _ details: inout Attributes) -> String? {
        var found = details
        do throws(Malformed) {
            let user = try read(message, role, &found)
            details = found
            return user
        } catch {
            details["malformed"] = true
            return nil
        }
    }

    private mutating func read(
        _ message: [UInt8],
        _ role: SASLMessage.Role,
        _ details: inout Attributes
    ) throws(Malformed) -> String? {
        let isClient = role == .initial || role == .response
        switch mechanism {
        case .plain:
            // RFC 4616 §2: there is only one message, that of the client.
            guard role != .challenge else { throw Malformed() }
            return isClient ? try readPlain(message, &details) : nil
        case .scram: return try readSCRAM(message, isClient: isClient, &details)
        case .external:
            guard isClient else { return nil }
            let authzid = try Self.string(message[...])
            if policy == .none { details["authzid"] = .string(authzid) } else { details["authzid_given"] = true }
            return nil
        case .anonymous:
            guard isClient else { return nil }
            let trace = try Self.string(message[...])
            if policy == .none { details["trace"] = .string(trace) } else { details["trace_given"] = true }
            return nil
        case .oauth: return try readOAuth(message, isClient: isClient, &details)
        case .digestMD5: return try readDigest(message, isClient: isClient, &details)
        case .hashedToken:
            guard isClient else { return nil }
            guard let sign = message.firstIndex(of: 0), sign > 0, sign + 1 < message.count else { throw Malformed() }
            return try Self.record(user: message[..<sign], &details)
        case .other:
            details["bytes"] = .integer(Int64(message.count))
            return nil
        }
    }

    // MARK: PLAIN (RFC 4616)

    /// Reads `[authzid] NUL authcid NUL passwd`. X-OAUTH2 sends its token in the same format.
    private func readPlain(_ message: [UInt8], _ details: inout Attributes) throws(Malformed) -> String? {
        let parts = message.split(separator: 0, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[1].isEmpty, !parts[2].isEmpty else { throw Malformed() }
        if !parts[0].isEmpty { details["authzid"] = .string(try Self.string(parts[0])) }
        return try Self.record(user: parts[1], &details)
    }

    // MARK: OAUTHBEARER (RFC 7628) and similar mechanisms

    private mutating func readOAuth(
        _ message: [UInt8],
        isClient: Bool,
        _ details: inout Attributes
    ) throws(Malformed) -> String? {
        guard isClient else {
            details["server_error"] = .string(Self.status(message))
            return nil
        }
        if message == [0x01] {
            details["acknowledges_error"] = true
            return nil
        }
        guard message.contains(0x01) else { return try readPlain(message, &details) }
        for pair in try readGS2(message, &details).split(separator: 0x01) {
            guard let sign = pair.firstIndex(of: 0x3D) else { throw Malformed() }
            let value = pair[(sign + 1)...]
            switch try Self.string(pair[..<sign]) {
            case "host": details["host"] = .string(try Self.string(value))
            case "port": details["port"] = .string(try Self.string(value))
            case "auth":
                let scheme = value.prefix { $0 != 0x20 }
                guard scheme.count < value.count else { throw Malformed() }
                details["scheme"] = .string(try Self.string(scheme))
            default: break
            }
        }
        guard case .string(let name) = details["authzid"] else { return nil }
        details["authzid"] = nil
        return try Self.record(user: Array(name.utf8)[...], &details)
    }

    /// Returns the `status` of a server's error (RFC 7628 §3.2.2); `other-error` if it has none.
    private static func status(_ message: [UInt8]) -> String {
        var reader = JSONReader(message.span.bytes)
        do throws(JSONError) {
            guard case .objectStart = try reader.next() else { return "other-error" }
            while case .name(let name) = try reader.next() {
                guard reader.matches(name, "status"), case .text(let status) = try reader.next() else {
                    _ = try reader.skipValue()
                    continue
                }
                return reader.string(status)
            }
            return "other-error"
        } catch {
            return "other-error"
        }
    }

    // MARK: DIGEST-MD5 (RFC 2831)

    private func readDigest(_ message: [UInt8], isClient: Bool, _ details: inout Attributes) throws(Malformed)
        -> String?
    {
        var user: String?
        for directive in try Self.directives(message) {
            switch (directive.name, isClient) {
            case ("username", true): user = try Self.record(user: directive.value[...], &details)
            case ("authzid", true): details["authzid"] = .string(try Self.string(directive.value[...]))
            case ("realm", _): details["realm"] = .string(try Self.string(directive.value[...]))
            case ("qop", _): details["qop"] = .string(try Self.string(directive.value[...]))
            case ("digest-uri", true): details["digest_uri"] = .string(try Self.string(directive.value[...]))
            case ("nonce", false): details["server_nonce_bytes"] = .integer(Int64(directive.value.count))
            case ("cnonce", true): details["client_nonce_bytes"] = .integer(Int64(directive.value.count))
            case ("response", true): details["proof"] = true
            case ("rspauth", false): details["server_signature"] = true
            default: break
            }
        }
        return user
    }

    /// Parses the directives of a message: `name=token` or `name="quoted"`, separated by commas.
    private static func directives(_ message: [UInt8]) throws(Malformed) -> [(name: String, value: [UInt8])] {
        var directives: [(name: String, value: [UInt8])] = []
        var rest = message[...]
        while true {
            while let byte = rest.first, byte == 0x2C || byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
                rest = rest.dropFirst()
            }
            guard !rest.isEmpty else { return directives }
            guard let sign = rest.firstIndex(of: 0x3D) else { throw Malformed() }
            let name = try string(rest[..<sign]).lowercased()
            rest = rest[(sign + 1)...]
            var value: [UInt8] = []
            if rest.first == 0x22 {
                rest = rest.dropFirst()
                var isClosed = false
                while !isClosed, let byte = rest.popFirst() {
                    switch byte {
                    case 0x22: isClosed = true
                    case 0x5C:
                        guard let escaped = rest.popFirst() else { throw Malformed() }
                        value.append(escaped)
                    default: value.append(byte)
                    }
                }
                guard isClosed else { throw Malformed() }
            } else {
                value = Array(rest.prefix { $0 != 0x2C })
                rest = rest.dropFirst(value.count)
            }
            guard directives.count < 64 else { throw Malformed() }
            directives.append((name, value))
        }
    }

    // MARK: Text

    /// The longest accepted name in bytes: a part of a JID is at most this long (RFC 7622 §3.3). Every later record
    /// repeats the name, so longer names would let an unauthenticated client fill the logs.
    static let maximumNameLength = 1023

    static func record(user: ArraySlice<UInt8>, _ details: inout Attributes) throws(Malformed) -> String {
        guard user.count <= maximumNameLength else { throw Malformed() }
        let name = try string(user)
        details["user"] = .string(name)
        return name
    }

    /// Returns the bytes as text; throws if they are not UTF-8 or contain a control character.
    static func string(_ bytes: ArraySlice<UInt8>) throws(Malformed) -> String {
        let copy = Array(bytes)
        guard UTF8Scan.isValid(copy.span.bytes), copy.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw Malformed()
        }
        return String(decoding: copy, as: UTF8.self)
    }
}

// SCRAM (RFC 5802), and the GS2 header that SCRAM shares with the OAuth mechanisms.
extension SASLMessageDecoder {
    private mutating func readSCRAM(
        _ message: [UInt8],
        isClient: Bool,
        _ details: inout Attributes
    ) throws(Malformed) -> String? {
        guard isClient else {
            try readSCRAMServer(message, &details)
            return nil
        }
        if message.starts(with: "c=".utf8) {
            try readSCRAMFinal(message, &details)
            return nil
        }
        guard let values = SCRAMAttributes(try readGS2(message, &details))?.values("nr"), !values[1].isEmpty,
            let name = SCRAMHeader.decodeName(values[0])
        else { throw Malformed() }
        clientNonce = Array(values[1])
        details["client_nonce_bytes"] = .integer(Int64(values[1].count))
        return try Self.record(user: Array(name.utf8)[...], &details)
    }

    private func readSCRAMServer(_ message: [UInt8], _ details: inout Attributes) throws(Malformed) {
        guard let message = SCRAMAttributes(message[...]), let first = message.attributes.first else {
            throw Malformed()
        }
        switch first.name {
        case 0x76: details["server_signature"] = true
        case 0x65:
            let error = try Self.string(first.value)
            let isCode = error.utf8.allSatisfy { $0 >= 0x61 && $0 <= 0x7A || $0 == 0x2D } && error.utf8.count <= 64
            details["server_error"] = .string(isCode ? error : "other-error")
        case 0x72:
            guard let values = message.values("rsi"), let salt = Base64.decode(try Self.string(values[1])),
                let iterations = Int64(try Self.string(values[2])), iterations > 0
            else { throw Malformed() }
            if let clientNonce, !first.value.starts(with: clientNonce) {
                details["nonce_mismatch"] = true
                details["server_nonce_bytes"] = .integer(Int64(first.value.count))
            } else {
                details["server_nonce_bytes"] = .integer(Int64(first.value.count - (clientNonce?.count ?? 0)))
            }
            details["salt_bytes"] = .integer(Int64(salt.count))
            details["iterations"] = .integer(iterations)
            for attribute in message.attributes.dropFirst(3) {
                switch attribute.name {
                // XEP-0474: attribute `h` since version 0.4.0, `d` before.
                case 0x68: details["signs_mechanisms"] = "h"
                case 0x64: details["signs_mechanisms"] = "d"
                // XEP-0515: the TLS version.
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

    private func readSCRAMFinal(_ message: [UInt8], _ details: inout Attributes) throws(Malformed) {
        guard let message = SCRAMAttributes(message[...]), let values = message.values("cr"),
            message.attributes.last?.name == 0x70, let binding = Base64.decode(try Self.string(values[0]))
        else { throw Malformed() }
        details["proof"] = true
        guard let gs2Header else { return }
        if binding.starts(with: gs2Header) {
            details["channel_binding_bytes"] = .integer(Int64(binding.count - gs2Header.count))
        } else {
            details["channel_binding_changed"] = true
        }
    }

    /// Reads a GS2 header such as `n,,`, `y,a=authzid,` or `p=type,,` (RFC 5801 §4); returns the rest of the message.
    private mutating func readGS2(
        _ message: [UInt8],
        _ details: inout Attributes
    ) throws(Malformed) -> ArraySlice<UInt8> {
        var rest = message[...]
        guard let header = SCRAMHeader(takingFrom: &rest) else { throw Malformed() }
        switch header.flag {
        case .unsupported: details["channel_binding_flag"] = "n"
        case .notOffered: details["channel_binding_flag"] = "y"
        case .bound(let type):
            details["channel_binding_flag"] = "p"
            details["channel_binding"] = .string(type)
        }
        if let name = header.authorization { details["authzid"] = .string(try Self.string(Array(name.utf8)[...])) }
        gs2Header = Array(header.bytes)
        return rest
    }
}
