internal import TapCore
public import TapRecord

/// Why a direction of a TLS connection is not decrypted, or not any further.
public enum TLSDecryptionFailure: Error, Sendable, Hashable {
    /// The key log does not have this secret of the connection.
    case noSecret(KeyLog.Label)
    /// The secret in the key log does not authenticate the first record that it is for.
    case wrongSecret
    /// Bytes are missing from here on, counted from the beginning of the direction, and nothing after them could be decrypted.
    case gap(at: Int)
    /// Records of this cipher suite cannot be decrypted, by the suite's standard name.
    case unsupportedSuite(String)
    /// A version other than TLS 1.2 and TLS 1.3, by its number.
    case unsupportedVersion(UInt16)
    /// The bytes do not begin with a TLS record.
    case notTLS
    /// They begin with TLS, but not with its handshake, or the peer's part of the handshake is missing.
    case noHandshake
    /// They end inside a record.
    case truncated
    /// A record or handshake message here, counted from the beginning of the direction, is none that TLS allows.
    case malformed(at: Int)
    /// OpenSSL failed.
    case library(OpenSSLError)

    /// A stable code, for records.
    public var name: String {
        switch self {
        case .noSecret: "no-secret"
        case .wrongSecret: "wrong-secret"
        case .gap: "gap"
        case .unsupportedSuite: "unsupported-suite"
        case .unsupportedVersion: "unsupported-version"
        case .notTLS: "not-tls"
        case .noHandshake: "no-handshake"
        case .truncated: "truncated"
        case .malformed: "malformed-tls"
        case .library: "tls-library"
        }
    }

    /// What happened, as a clause for people.
    public var words: Prose {
        switch self {
        case .noSecret(let label): "the key log has no \(label.rawValue) of this connection"
        case .wrongSecret: "the secret in the key log does not decrypt this connection"
        case .gap(let offset): "bytes are missing at byte \(offset), and no later record could be decrypted"
        case .unsupportedSuite(let name): "the cipher suite \(name) is not supported"
        case .unsupportedVersion(let version): "\(ClientHello.name(ofVersion: version)) is not supported"
        case .notTLS: "the data is not TLS"
        case .noHandshake: "the TLS handshake is missing; it took place before the recording, or part of it is lost"
        case .truncated: "the data ends inside a TLS record"
        case .malformed(let offset): "malformed TLS record at byte \(offset)"
        case .library(let error): "\(error.description)"
        }
    }
}

extension OpenSSLError: Hashable {
    /// Hashes the call, as `==` compares it.
    public func hash(into hasher: inout Hasher) { hasher.combine(call) }
}
