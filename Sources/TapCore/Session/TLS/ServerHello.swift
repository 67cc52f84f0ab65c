/// The fields of a ServerHello (RFC 5246 §7.4.1.3, RFC 8446 §4.1.3).
package struct ServerHello: Sendable, Hashable {
    /// The version that the server chose.
    package var version: UInt16
    /// The server random, 32 bytes.
    package var random: [UInt8]
    /// The session ID: in TLS 1.2 the id of the new or resumed session, in TLS 1.3 a copy of the client's.
    package var sessionID: [UInt8]
    /// The cipher suite that the server chose.
    package var cipherSuite: UInt16
    /// The extensions of the ServerHello.
    package var extensions: ServerExtensions

    /// Whether this is a HelloRetryRequest: the client must send another ClientHello.
    package var isRetryRequest: Bool { random == Self.retryRandom }

    /// Reads a whole message without its header; nil if a length inside the message does not fit.
    package init?(_ message: [UInt8]) {
        do throws(ClientHello.Truncated) {
            var body = ClientHello.Cursor(message[...])
            version = try body.number()
            random = Array(try body.read(32))
            sessionID = Array(try body.vector(1))
            cipherSuite = try body.number()
            _ = try body.read(1)
            extensions = ServerExtensions()
            if !body.isEmpty { try extensions.read(&body) }
            version = extensions.selectedVersion ?? version
        } catch {
            return nil
        }
    }

    /// The SHA-256 digest of `HelloRetryRequest`, which identifies that message (RFC 8446 §4.1.3).
    private static let retryRandom: [UInt8] = [
        0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91, 0xC2, 0xA2,
        0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
    ]
}

/// A server's extensions, from its ServerHello, or encrypted in TLS 1.3 (EncryptedExtensions).
package struct ServerExtensions: Sendable, Hashable {
    /// The protocol that the server chose by ALPN; nil if there is none.
    package var applicationProtocol: String?
    /// The chosen version, if it is TLS 1.3; nil otherwise.
    package var selectedVersion: UInt16?
    /// Whether a session is resumed (TLS 1.3).
    package var hasPreSharedKey = false
    /// Whether early data is accepted (TLS 1.3).
    package var acceptsEarlyData = false
    /// Whether CBC records are encrypted before they are authenticated (RFC 7366).
    package var encryptsThenMACs = false

    init() {}

    /// Reads an EncryptedExtensions message without its header; nil if a length inside the message does not fit.
    package init?(encrypted message: [UInt8]) {
        do throws(ClientHello.Truncated) {
            var body = ClientHello.Cursor(message[...])
            try read(&body)
        } catch {
            return nil
        }
    }

    mutating func read(_ body: inout ClientHello.Cursor) throws(ClientHello.Truncated) {
        var extensions = ClientHello.Cursor(try body.vector(2))
        while !extensions.isEmpty {
            let type = try extensions.number()
            var content = ClientHello.Cursor(try extensions.vector(2))
            switch type {
            case 16:
                var names = ClientHello.Cursor(try content.vector(2))
                applicationProtocol = String(decoding: try names.vector(1), as: UTF8.self)
            case 22: encryptsThenMACs = true
            case 41: hasPreSharedKey = true
            case 42: acceptsEarlyData = true
            case 43: selectedVersion = try content.number()
            default: break
            }
        }
    }
}
