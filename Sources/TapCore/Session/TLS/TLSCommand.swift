package import TapDiagnosis
package import TapRecord
import XMPPCore

/// A session's request to its driver about TLS on its legs. The driver answers with a ``SessionInput``.
package enum TLSCommand: Sendable, Hashable {
    /// Starts the handshake with the server. The server's certificate must match `name`; nil means the upstream's own
    /// name. `sendsName` controls whether the name is sent by SNI. `protocols` are offered by ALPN (RFC 7301). With
    /// `isDirect`, the leg begins with TLS, without STARTTLS.
    ///
    /// The answer is ``TLSEvent/started(directly:)`` or ``TLSEvent/notStarted(_:)``.
    case startServer(name: String?, sendsName: Bool, protocols: [String], isDirect: Bool)
    /// Finds a certificate for `name`; nil if the client names no domain, so that the upstream's own name is used.
    ///
    /// The answer is ``SessionInput/identityFound(isServersOwn:)`` or ``SessionInput/identityNotFound(_:)``.
    case findIdentity(name: String?)
    /// Starts the handshake with the client, with the certificate that was found, and at most `maximumVersion` (nil for
    /// any). A protocol is chosen from `protocols` by ALPN; nil ignores the client's offer. With `isDirect`, `first` is
    /// the ciphertext received so far; without it, `first` is the consent, which must be written in clear first.
    ///
    /// The answer is ``TLSEvent/started(directly:)`` or ``TLSEvent/notStarted(_:)``.
    case startClient(maximumVersion: UInt16?, protocols: [String]?, isDirect: Bool, first: [UInt8])
    /// Continues the handshake with the server, which has requested a certificate: shows one of the client, if the
    /// client has proved to the driver that it may use it. Only servers are such clients (XEP-0178 §3).
    ///
    /// The answer is ``TLSEvent/opened(_:)`` or ``TLSEvent/failed(_:)`` of the server leg.
    case presentIdentity
}

/// A TLS event of a leg.
package enum TLSEvent: Sendable {
    /// The handshake begins; `directly` if the leg begins with TLS, without STARTTLS. All clear text for the client has
    /// been written.
    case started(directly: Bool)
    /// The handshake cannot be started.
    case notStarted(TLSFailure)
    /// The server has been verified, and requests a certificate; its handshake waits for ``TLSCommand/presentIdentity``.
    case identityRequested(TLSAgreement)
    /// Which certificate the server gets; see ``TLSCommand/presentIdentity``.
    case identityChosen(IdentityChoice)
    /// The handshake has succeeded.
    case opened(TLSAgreement)
    /// The handshake failed, or TLS failed later.
    case failed(TLSFailure)
    /// A TLS message was sent or received. It is recorded at level `trace`, without its content. The length is in
    /// bytes.
    case message(String, length: Int, isReceived: Bool)
    /// The leg ended without close_notify.
    case truncated
    /// A message to log.
    case remark(Level, code: String, String)
}

/// The result of a successful handshake.
package struct TLSAgreement: Sendable, Hashable {
    /// The version as in the protocol (0x0304 is TLS 1.3); nil if unknown.
    package var version: UInt16?
    /// The protocol chosen by ALPN (RFC 7301); nil if there is none.
    package var applicationProtocol: String?
    /// The parameters of the connection, for the record.
    package var details: Attributes
    /// The parameters, as human-readable text.
    package var summary: String
    /// The fault of the server's certificate that was ignored; nil if there is none.
    package var overlooked: String?
    /// The stable code of the first fault that was ignored; nil if there is none.
    package var overlookedCode: String?
    /// Whether the client got an unverified certificate, because the server's could not be verified.
    package var isUnverified = false
    /// Whether the peers may judge the fault of ``overlookedCode`` differently, by other trusted issuers or clocks.
    package var dependsOnTrust = false
    /// The remedy if the client disconnects after it has received this certificate; nil if xmpptap did not issue the
    /// certificate.
    package var trust: Remedy?
    /// The certificate of a client that is a server itself; nil if none was requested.
    package var peer: PeerCertificate?
    /// The channel bindings, for logins that xmpptap performs; nil without `--accounts`.
    package var secured: SecuredLeg?

    /// Creates a result with the properties that are always known.
    package init(version: UInt16?, details: Attributes, summary: String) {
        self.version = version
        self.details = details
        self.summary = summary
    }
}

/// The certificate of a server that connects to another server, for SASL EXTERNAL (XEP-0178 §3).
package enum PeerCertificate: Sendable, Hashable {
    /// The server has shown none.
    case missing
    /// The certificate is valid for the domain of the server; with its properties as text and as attributes, and whether
    /// its extended key usage allows TLS clients, which some servers require.
    case verified(String, Attributes, isForClients: Bool)
    /// The certificate has faults: the code of the first, all as a clause, and its properties. `dependsOnTrust` if the
    /// receiving server may find none, because it trusts other issuers or has another clock.
    case refused(code: String, String, summary: String, Attributes, dependsOnTrust: Bool)

    /// The properties of the certificate; nil if there is none.
    package var details: Attributes? {
        switch self {
        case .missing: nil
        case .verified(_, let details, _), .refused(_, _, _, let details, _): details
        }
    }
}

/// The certificate that xmpptap shows to a server on behalf of another one.
package enum IdentityChoice: Sendable, Hashable {
    /// The certificate, as text. `trust` is the remedy if the server does not trust it; nil if xmpptap has not issued it.
    case shown(summary: String, trust: Remedy?)
    /// None, for this reason, as a clause; with the remedy if xmpptap is the cause.
    case withheld(String, Remedy? = nil)
}

/// TLS alerts (RFC 8446 §6, RFC 6066 §3) that can be sent before a handshake.
package enum HandshakeAlert: UInt8, Sendable {
    /// The bytes cannot be decoded.
    case decodeError = 50
    /// Client and server support no common version.
    case protocolVersion = 70
    /// A fault for which the client is not responsible.
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
