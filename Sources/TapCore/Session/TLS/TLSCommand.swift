public import TapDiagnosis
public import TapRecord
import XMPPCore

/// What a session asks its driver to do about TLS on its legs. The driver answers with a ``SessionInput``.
public enum TLSCommand: Sendable, Hashable {
    /// Starts the handshake with the server, whose certificate must stand for `name`, nil is the upstream's own, and which is
    /// offered `protocols` by ALPN (RFC 7301). `sendsName`: by SNI. `isDirect`: the leg begins with TLS, without STARTTLS.
    ///
    /// Answered with ``TLSEvent/started(directly:)`` or ``TLSEvent/notStarted(_:)``.
    case startServer(name: String?, sendsName: Bool, protocols: [String], isDirect: Bool)
    /// Finds a certificate for `name`; nil: the client names no domain, and the upstream's own name counts.
    ///
    /// Answered with ``SessionInput/identityFound(isServersOwn:)`` or ``SessionInput/identityNotFound(_:)``.
    case findIdentity(name: String?)
    /// Starts the handshake with the client, with the identity found, at most at the version (nil is any), and chooses
    /// from the protocols by ALPN; nil ignores what it offers. `isDirect`: `first` is the ciphertext that it has sent already;
    /// otherwise the consent, to be written in clear before. Answered like the server's.
    case startClient(maximumVersion: UInt16?, protocols: [String]?, isDirect: Bool, first: [UInt8])
}

/// What happens to TLS on a leg.
public enum TLSEvent: Sendable {
    /// The handshake begins; `directly` on a leg that begins with TLS instead of STARTTLS. All clear text to the client
    /// has been written.
    case started(directly: Bool)
    /// The handshake cannot be started.
    case notStarted(TLSFailure)
    /// The handshake has ended well.
    case opened(TLSAgreement)
    /// The handshake has failed, or TLS did later.
    case failed(TLSFailure)
    /// A TLS message has passed; recorded at trace without its content. The length is in bytes.
    case message(String, length: Int, isReceived: Bool)
    /// The leg ends without close_notify.
    case truncated
    /// Something to be noted.
    case remark(Level, code: String, String)
}

/// What a handshake has agreed on.
public struct TLSAgreement: Sendable, Hashable {
    /// Version as in the protocol (0x0304 is TLS 1.3); nil for an unknown one.
    public var version: UInt16?
    /// Protocol chosen by ALPN (RFC 7301); nil where there is none.
    public var applicationProtocol: String?
    /// All of it, for the record.
    public var details: Attributes
    /// The same for people.
    public var words: String
    /// What is wrong with the server's certificate and was let pass; nil where nothing is.
    public var overlooked: String?
    /// What to do if the client leaves without a word once it has seen this certificate; nil if the certificate is not
    /// xmpptap's.
    public var trust: Remedy?
    /// What logins may be bound to that are performed here; nil without `--accounts`.
    public var secured: SecuredLeg?

    /// The result of a handshake, as far as it is always known.
    public init(version: UInt16?, details: Attributes, words: String) {
        self.version = version
        self.details = details
        self.words = words
    }
}

/// Alerts of TLS (RFC 8446 §6, RFC 6066 §3) that can stand before a handshake.
public enum HandshakeAlert: UInt8, Sendable {
    /// What came cannot be read.
    case decodeError = 50
    /// No version in common.
    case protocolVersion = 70
    /// It is not the client's fault.
    case internalError = 80
    /// The name asked for is not served.
    case unrecognizedName = 112
    /// None of the protocols offered is spoken.
    case noApplicationProtocol = 120

    /// The alert that says what a stream error would.
    init(_ condition: StreamErrorCondition) {
        self =
            switch condition {
            case .hostUnknown: .unrecognizedName
            case .badFormat: .decodeError
            default: .internalError
            }
    }
}
