package import TapDiagnosis
package import TapRecord
import XMPPCore

/// A session's request to its driver about TLS on its legs. The driver answers with a ``SessionInput``.
package enum TLSCommand: Sendable, Hashable {
    /// Starts the handshake with the server. Its certificate must match `name`; nil for the upstream's own name.
    /// `protocols` are offered by ALPN (RFC 7301). `sendsName`: by SNI. `isDirect`: the leg begins with TLS, without
    /// STARTTLS.
    ///
    /// Answered with ``TLSEvent/started(directly:)`` or ``TLSEvent/notStarted(_:)``.
    case startServer(name: String?, sendsName: Bool, protocols: [String], isDirect: Bool)
    /// Finds a certificate for `name`; nil: the client names no domain, and the upstream's own name is used.
    ///
    /// Answered with ``SessionInput/identityFound(isServersOwn:)`` or ``SessionInput/identityNotFound(_:)``.
    case findIdentity(name: String?)
    /// Starts the handshake with the client, using the found identity and at most the version (nil for any), and
    /// chooses from the protocols by ALPN; nil ignores its offer. `isDirect`: `first` is the ciphertext received so
    /// far; otherwise the consent, to be written in clear first. Answered like the server's.
    case startClient(maximumVersion: UInt16?, protocols: [String]?, isDirect: Bool, first: [UInt8])
}

/// A TLS event of a leg.
package enum TLSEvent: Sendable {
    /// The handshake begins; `directly` on a leg that begins with TLS instead of STARTTLS. All clear text to the client
    /// has been written.
    case started(directly: Bool)
    /// The handshake cannot be started.
    case notStarted(TLSFailure)
    /// The handshake has succeeded.
    case opened(TLSAgreement)
    /// The handshake failed, or TLS failed later.
    case failed(TLSFailure)
    /// A TLS message was sent or received; recorded at trace without its content. The length is in bytes.
    case message(String, length: Int, isReceived: Bool)
    /// The leg ended without close_notify.
    case truncated
    /// A message to log.
    case remark(Level, code: String, String)
}

/// The result of a handshake.
package struct TLSAgreement: Sendable, Hashable {
    /// Version as in the protocol (0x0304 is TLS 1.3); nil for an unknown one.
    package var version: UInt16?
    /// Protocol chosen by ALPN (RFC 7301); nil without one.
    package var applicationProtocol: String?
    /// All parameters, for the record.
    package var details: Attributes
    /// The same as text for people.
    package var words: String
    /// The ignored fault of the server's certificate; nil if there is none.
    package var overlooked: String?
    /// The remedy if the client disconnects after it has seen this certificate; nil if the certificate is not
    /// xmpptap's.
    package var trust: Remedy?
    /// The channel bindings for logins that xmpptap performs; nil without `--accounts`.
    package var secured: SecuredLeg?

    /// Creates a result with the properties that are always known.
    package init(version: UInt16?, details: Attributes, words: String) {
        self.version = version
        self.details = details
        self.words = words
    }
}

/// TLS alerts (RFC 8446 §6, RFC 6066 §3) that can be sent before a handshake.
package enum HandshakeAlert: UInt8, Sendable {
    /// The bytes cannot be decoded.
    case decodeError = 50
    /// No version in common.
    case protocolVersion = 70
    /// The client is not at fault.
    case internalError = 80
    /// The requested name is not served.
    case unrecognizedName = 112
    /// None of the offered protocols is supported.
    case noApplicationProtocol = 120

    /// Creates the alert that corresponds to a stream error.
    init(_ condition: StreamErrorCondition) {
        self =
            switch condition {
            case .hostUnknown: .unrecognizedName
            case .badFormat: .decodeError
            default: .internalError
            }
    }
}
