package import TapDiagnosis
package import TapRecord
import XMPPCore

/// Reads a TLS client's ClientHello (RFC 8446 §4.1.2) from the first bytes of a direction, on arrival. The boundaries
/// of TLS records and of reads do not matter.
///
/// Bounded: reading fails if the handshake message is longer than 64 KiB, or if a record is empty.
package struct ClientHelloReader: Sendable {
    /// The result so far. All cases except ``needMore`` are final.
    package enum Result: Sendable, Hashable {
        /// The bytes do not begin a TLS handshake.
        case notTLS
        /// More bytes are needed.
        case needMore
        case hello(ClientHello)
        /// The bytes begin like TLS, but are malformed; the text is the fault, as a human-readable clause.
        case malformed(String)
    }

    /// The largest number of bytes to read, including record headers.
    package static let limit = 64 << 10

    private var result = Result.needMore
    private var count = 0
    /// The received bytes of the current record's header.
    private var header: [UInt8] = []
    /// The number of bytes of the current record that are still missing.
    private var left = 0
    /// The handshake message, without record headers.
    private var message: [UInt8] = []

    /// Creates a reader in its initial state.
    package init() {}

    /// Reads the bytes of one read, and returns the result so far.
    package mutating func append(_ input: Span<UInt8>) -> Result {
        guard result == .needMore else { return result }
        var index = 0
        while index < input.count, result == .needMore {
            if left > 0 {
                let end = min(index + left, input.count)
                message.append(input.extracting(index..<end))
                count += end - index
                left -= end - index
                index = end
                readMessage()
            } else {
                header.append(input[index])
                count += 1
                index += 1
                readHeader()
            }
            if result == .needMore, count >= Self.limit {
                result = .malformed("the ClientHello is longer than \(Self.limit) bytes")
            }
        }
        if result != .needMore { message = [] }
        return result
    }

    private mutating func readHeader() {
        let isFirst = count <= 5
        if header.count == 1, header[0] != 0x16 {
            result = isFirst ? .notTLS : .malformed("another record inside the ClientHello")
        }
        if header.count == 2, header[1] != 3 {
            result = isFirst ? .notTLS : .malformed("a record of another version")
        }
        guard header.count == 5, result == .needMore else { return }
        left = Int(header[3]) << 8 | Int(header[4])
        header.removeAll(keepingCapacity: true)
        if left == 0 { result = .malformed("an empty record") }
        if left > 1 << 14 { result = .malformed("a record of \(left) bytes") }
    }

    private mutating func readMessage() {
        if let type = message.first, type != 1 {
            return result = .malformed("handshake message \(type) in place of a ClientHello")
        }
        guard message.count >= 4 else { return }
        let size = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
        guard size <= Self.limit else { return result = .malformed("a ClientHello of \(size) bytes") }
        guard message.count >= 4 + size else { return }
        result = ClientHello.read(Array(message[4..<(4 + size)]))
    }
}

/// The facts of a ClientHello.
package struct ClientHello: Sendable, Hashable {
    /// The version field of the message itself, which stays at TLS 1.2 (0x0303) in TLS 1.3.
    package var legacyVersion: UInt16
    /// The client random, 32 bytes, which identifies the connection in a key log.
    package var random: [UInt8]
    /// The id of the session to resume in TLS 1.2; unused in TLS 1.3.
    package var sessionID: [UInt8]
    /// The versions in the `supported_versions` extension of TLS 1.3, in the client's order, without GREASE; empty if
    /// the extension is missing.
    package var supportedVersions: [UInt16] = []
    /// The requested server name (RFC 6066 §3); nil if there is none.
    package var serverName: String?
    /// The offered ALPN protocols (RFC 7301), in the client's order, without GREASE.
    package var protocols: [String] = []
    /// The number of offered cipher suites, without GREASE and signalling values.
    package var cipherCount = 0
    /// Whether the client offers a session ticket or a pre-shared key to resume an earlier session.
    package var offersResumption = false
    /// Whether early data follows at once (RFC 8446 §4.2.10).
    package var offersEarlyData = false
    /// Whether the client offers an encrypted ClientHello, which may contain the real server name.
    package var offersEncryptedHello = false

    /// The types of the extensions, without GREASE.
    private var extensions: Set<UInt16> = []
    /// Whether the ClientHello contains GREASE values (RFC 8701).
    private var hasGREASE = false
    /// The offered formats of elliptic-curve points (RFC 8422 §5.1.2).
    private var pointFormats: [UInt8] = []

    /// The highest offered version.
    package var version: UInt16 { supportedVersions.max() ?? legacyVersion }

    /// The TLS library that sent the ClientHello; nil if unknown.
    package var library: ClientSoftware.Library? {
        // Browsers and Apple's systems send GREASE, and otherwise the same extensions as other libraries.
        guard !hasGREASE else { return nil }
        // Only JSSE requests stapled OCSP responses for a whole chain (RFC 6961).
        if extensions.contains(17) { return .java }
        let splitsEncryption = extensions.contains(22)
        // Go requests certificate timestamps (RFC 6962), but does not support encrypt-then-MAC (RFC 7366).
        if extensions.contains(18), !splitsEncryption { return .go }
        guard splitsEncryption else { return nil }
        // OpenSSL does not support record size limits (RFC 8449), and GnuTLS no longer supports compressed points.
        if extensions.contains(28) { return .gnuTLS }
        return pointFormats == [0, 1, 2] ? .openSSL : nil
    }

    /// Returns the name of a version, such as `TLS 1.3`; in hexadecimal if unknown.
    package static func name(ofVersion version: UInt16) -> String {
        switch version {
        case 0x0300: "SSL 3.0"
        case 0x0301: "TLS 1.0"
        case 0x0302: "TLS 1.1"
        case 0x0303: "TLS 1.2"
        case 0x0304: "TLS 1.3"
        default: "0x" + String(version, radix: 16)
        }
    }

    /// The attributes for a record.
    package var details: Attributes {
        var details: Attributes = [:]
        if let serverName { details["server_name"] = .string(serverName) }
        if !protocols.isEmpty { details["alpn"] = .strings(protocols) }
        details["version"] = .string(Self.name(ofVersion: version))
        details["legacy_version"] = .string(Self.name(ofVersion: legacyVersion))
        if !supportedVersions.isEmpty {
            details["supported_versions"] = .strings(supportedVersions.map(Self.name(ofVersion:)))
        }
        details["ciphers"] = .integer(Int64(cipherCount))
        if offersResumption { details["offers_resumption"] = true }
        if offersEarlyData { details["offers_early_data"] = true }
        if offersEncryptedHello { details["offers_encrypted_hello"] = true }
        return details
    }

    // MARK: Reading

    struct Truncated: Error {}

    /// Reads a whole ClientHello without its message header; returns `hello` or `malformed`.
    package static func read(_ message: [UInt8]) -> ClientHelloReader.Result {
        do throws(Truncated) {
            return .hello(try ClientHello(message))
        } catch {
            return .malformed("a length inside the ClientHello does not fit it")
        }
    }

    private init(_ message: [UInt8]) throws(Truncated) {
        var body = Cursor(message[...])
        legacyVersion = try body.number()
        random = Array(try body.read(32))
        sessionID = Array(try body.vector(1))
        var ciphers = Cursor(try body.vector(2))
        while !ciphers.isEmpty {
            let cipher = try ciphers.number()
            if Self.isGREASE(cipher) { hasGREASE = true }
            // The signalling values for renegotiation and fallback are not cipher suites (RFC 5746, RFC 7507).
            if !Self.isGREASE(cipher), cipher != 0x00FF, cipher != 0x5600 { cipherCount += 1 }
        }
        _ = try body.vector(1)
        // A ClientHello without extensions ends here.
        guard !body.isEmpty else { return }
        var extensions = Cursor(try body.vector(2))
        guard body.isEmpty else { throw Truncated() }
        while !extensions.isEmpty {
            let type = try extensions.number()
            if Self.isGREASE(type) { hasGREASE = true } else { self.extensions.insert(type) }
            try readExtension(type, Cursor(try extensions.vector(2)))
        }
    }

    private mutating func readExtension(_ type: UInt16, _ content: Cursor) throws(Truncated) {
        var content = content
        switch type {
        case 0:
            var names = Cursor(try content.vector(2))
            while !names.isEmpty {
                let kind = try names.read(1).first
                let name = try names.vector(2)
                if kind == 0, serverName == nil { serverName = String(decoding: name, as: UTF8.self) }
            }
        case 11: pointFormats = (try? content.vector(1)).map { Array($0) } ?? []
        case 16:
            var names = Cursor(try content.vector(2))
            while !names.isEmpty {
                let name = Array(try names.vector(1))
                if name.count == 2, Self.isGREASE(UInt16(name[0]) << 8 | UInt16(name[1])) { continue }
                protocols.append(String(decoding: name, as: UTF8.self))
            }
        case 43:
            var versions = Cursor(try content.vector(1))
            while !versions.isEmpty {
                let version = try versions.number()
                if !Self.isGREASE(version) { supportedVersions.append(version) }
            }
        case 35: if !content.isEmpty { offersResumption = true }
        case 41: offersResumption = true
        case 42: offersEarlyData = true
        case 0xFE0D: offersEncryptedHello = true
        default: break
        }
    }

    /// Returns whether a value is one that clients insert so that servers keep ignoring unknown values (RFC 8701).
    private static func isGREASE(_ value: UInt16) -> Bool {
        value & 0x0F0F == 0x0A0A && value >> 8 == value & 0xFF
    }

    /// Reads the rest of a range of bytes.
    struct Cursor {
        private var rest: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

        var isEmpty: Bool { rest.isEmpty }

        /// Removes and returns the next `count` bytes.
        mutating func read(_ count: Int) throws(Truncated) -> ArraySlice<UInt8> {
            guard count <= rest.count else { throw Truncated() }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }

        mutating func number() throws(Truncated) -> UInt16 {
            try read(2).reduce(0) { $0 << 8 | UInt16($1) }
        }

        /// Removes and returns the bytes after a length field of `width` bytes.
        mutating func vector(_ width: Int) throws(Truncated) -> ArraySlice<UInt8> {
            let count = try read(width).reduce(0) { $0 << 8 | Int($1) }
            return try read(count)
        }
    }
}
