internal import TapCore
package import TapRecord

/// Why a direction of a TLS connection cannot be decrypted, or not completely.
package enum TLSDecryptionFailure: Error, Sendable, Hashable {
    /// The key log does not contain this secret of the connection.
    case noSecret(KeyLog.Label)
    /// The secret from the key log does not decrypt its first record.
    case wrongSecret
    /// Bytes are missing at this offset of the direction, and no later record could be decrypted.
    case gap(at: Int)
    /// Records of this cipher suite, given by its standard name, cannot be decrypted.
    case unsupportedSuite(String)
    /// The version, given by its number, is neither TLS 1.2 nor TLS 1.3.
    case unsupportedVersion(UInt16)
    /// The bytes do not begin with a TLS record.
    case notTLS
    /// The bytes do not begin with a TLS handshake, or the peer's part of it is missing.
    case noHandshake
    /// The bytes end inside a record.
    case truncated
    /// The record or handshake message at this offset in the direction is malformed.
    case malformed(at: Int)
    /// OpenSSL failed.
    case library(OpenSSLError)

    /// A stable code, for records.
    package var name: String {
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

    /// The failure as a human-readable clause.
    package var explanation: Prose {
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
    /// Hashes the call, like `==`.
    package func hash(into hasher: inout Hasher) { hasher.combine(call) }
}
