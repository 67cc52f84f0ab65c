internal import TapCore

/// TLS settings of the server leg, for all sessions. xmpptap is the TLS client there.
package struct ServerLegTLS: Sendable {
    /// The trust anchors for server certificates.
    package enum Trust: Sendable, Hashable {
        /// The system's trust anchors.
        case system
        /// Only the certificates in this PEM file: roots, or the servers' own certificates.
        case file(String)
    }

    /// The lowest allowed version (default: TLS 1.2). A version below TLS 1.2 also allows weak cryptography (OpenSSL's
    /// security level 0) and servers without RFC 5746.
    package var minimumVersion = TLSVersion.tls12
    /// The trust anchors (default: the system's).
    package var trust = Trust.system
    /// Certificates that are accepted by their fingerprints. Servers with a pin may present no other certificate
    /// (default: none).
    package var pins: [CertificatePin] = []
    /// Whether to accept an untrusted certificate, and report its faults (default: false).
    package var isInsecure = false
    /// The certificate for servers that request a client certificate (default: none).
    package var identity: TLSIdentity?
    /// Whether a handshake stops when the server requests a certificate, until ``TLSEngine/present(_:)`` is called
    /// (default: false).
    package var choosesIdentity = false
    /// Called with each secret of each connection as a line of an SSLKEYLOGFILE, without its line feed, on the
    /// connection's thread.
    package var keyLog: (@Sendable (String) -> Void)?

    /// Creates settings with the defaults.
    package init() {}
}

/// TLS settings of the client leg, for all sessions. xmpptap is the TLS server there.
package struct ClientLegTLS: Sendable {
    /// The lowest allowed version (default: TLS 1.2). A version below TLS 1.2 also allows weak cryptography (OpenSSL's
    /// security level 0).
    package var minimumVersion = TLSVersion.tls12
    /// The trust anchors for the certificates of clients, which are servers of other domains; nil requests none
    /// (default). With it, the sessions of TLS are not resumed, so that each client shows its certificate.
    package var clientTrust: ServerLegTLS.Trust?
    /// Called with the secrets of the connections, as described for ``ServerLegTLS/keyLog``.
    package var keyLog: (@Sendable (String) -> Void)?

    /// Creates settings with the defaults.
    package init() {}
}

/// TLS options for the connection to one server.
package struct ServerLegTarget: Sendable {
    /// The identity that the server's certificate must match, and the default name in SNI.
    package var reference: ServerReference
    /// The name sent in SNI (default: that of the reference); nil sends none.
    package var serverName: String?
    /// Protocols offered with ALPN (default: none).
    package var protocols: [String] = []
    /// The highest offered version; nil offers the newest.
    package var maximumVersion: TLSVersion?

    /// Creates a target with the reference's name in SNI and no ALPN.
    package init(reference: ServerReference) {
        self.reference = reference
        serverName = reference.hostName
    }
}

/// TLS options for the connection of one client.
package struct ClientLegOffer: Sendable {
    /// The answer to the client's ALPN extension.
    package enum Protocols: Sendable, Hashable {
        /// No answer, regardless of the client's offer.
        case ignored
        /// The first of these protocols that the client offers. If it offers only other protocols, the handshake fails
        /// with `no_application_protocol`. If it does not send the extension, none is selected.
        case chosen([String])
    }

    /// The certificate and key of xmpptap; without them the handshake fails.
    package var identity: TLSIdentity?
    /// The highest accepted version; nil accepts the newest.
    package var maximumVersion: TLSVersion?
    /// The answer to the client's ALPN extension; none by default.
    package var protocols = Protocols.ignored
    /// The identity that the client's certificate must match; nil accepts any names. See ``ClientLegTLS/clientTrust``.
    package var reference: ServerReference?

    /// Creates an offer with an identity, any version and no ALPN.
    package init(identity: TLSIdentity? = nil) { self.identity = identity }
}

/// A version of TLS that xmpptap supports on both legs.
package enum TLSVersion: UInt16, Sendable, Hashable, Comparable, CaseIterable {
    /// TLS 1.0 (RFC 2246), only for old servers.
    case tls10 = 0x0301
    /// TLS 1.1 (RFC 4346), only for old servers.
    case tls11 = 0x0302
    /// TLS 1.2 (RFC 5246).
    case tls12 = 0x0303
    /// TLS 1.3 (RFC 8446).
    case tls13 = 0x0304

    /// Returns whether the left version is older.
    package static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.rawValue < right.rawValue }
}

extension TLSVersion: CustomStringConvertible {
    /// The usual name, such as `TLS 1.3`.
    package var description: String { ClientHello.name(ofVersion: rawValue) }
}
