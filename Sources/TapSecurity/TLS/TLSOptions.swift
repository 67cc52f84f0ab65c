internal import TapCore

/// How TLS on the server leg is spoken, for all sessions: there the tap is the client.
package struct ServerLegTLS: Sendable {
    /// Whose signature under a server's certificate is trusted.
    package enum Trust: Sendable, Hashable {
        /// The roots that the system trusts.
        case system
        /// The certificates in this file in PEM, and no others: roots, or the servers' own.
        case file(String)
    }

    /// The lowest version taken; default TLS 1.2. Below that, weak cryptography is allowed too (OpenSSL's security level
    /// 0) and servers older than RFC 5746.
    package var minimumVersion = TLSVersion.tls12
    /// Whose signature is trusted; default the system's roots.
    package var trust = Trust.system
    /// Certificates that are accepted by their fingerprint, and the only ones that their servers may show; default none.
    package var pins: [CertificatePin] = []
    /// Accepts an untrusted certificate, and reports its faults; default no.
    package var isInsecure = false
    /// Shown to a server that asks for a client certificate; none by default.
    package var identity: TLSIdentity?
    /// Told each secret of each connection as a line of an SSLKEYLOGFILE, without its line feed, on the connection's
    /// thread.
    package var keyLog: (@Sendable (String) -> Void)?

    /// The defaults.
    package init() {}
}

/// How TLS on the client leg is spoken, for all sessions: there the tap is the server.
package struct ClientLegTLS: Sendable {
    /// The lowest version taken; default TLS 1.2. Below that, weak cryptography is allowed too (OpenSSL's security level
    /// 0).
    package var minimumVersion = TLSVersion.tls12
    /// As in ``ServerLegTLS/keyLog``.
    package var keyLog: (@Sendable (String) -> Void)?

    /// The defaults.
    package init() {}
}

/// TLS options for the connection to one server.
package struct ServerLegTarget: Sendable {
    /// The identity that the server's certificate must match, and the default name in SNI.
    package var reference: ServerReference
    /// The name sent in SNI: the reference's by default; nil sends none.
    package var serverName: String?
    /// Protocols offered by ALPN; none by default.
    package var protocols: [String] = []
    /// The highest version offered; default the highest there is.
    package var maximumVersion: TLSVersion?

    /// A target with the reference's name in SNI and no ALPN.
    package init(reference: ServerReference) {
        self.reference = reference
        serverName = reference.hostName
    }
}

/// TLS options for the connection of one client.
package struct ClientLegOffer: Sendable {
    /// The answer to the client's ALPN extension.
    package enum Protocols: Sendable, Hashable {
        /// Nothing, whatever the client offers.
        case ignored
        /// The first of these that the client offers; if it offers others alone the handshake fails with
        /// `no_application_protocol`. A client that offers none gets none.
        case chosen([String])
    }

    /// Who the tap is; without it the handshake fails.
    package var identity: TLSIdentity?
    /// The highest version taken; default the highest there is.
    package var maximumVersion: TLSVersion?
    /// What ALPN is answered with; nothing by default.
    package var protocols = Protocols.ignored

    /// An offer by this identity, any version and no ALPN.
    package init(identity: TLSIdentity? = nil) { self.identity = identity }
}

/// A version of TLS that both legs can speak.
package enum TLSVersion: UInt16, Sendable, Hashable, Comparable, CaseIterable {
    /// RFC 2246; for old servers alone.
    case tls10 = 0x0301
    /// RFC 4346; for old servers alone.
    case tls11 = 0x0302
    /// RFC 5246.
    case tls12 = 0x0303
    /// RFC 8446.
    case tls13 = 0x0304

    /// Older is less.
    package static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.rawValue < right.rawValue }
}

extension TLSVersion: CustomStringConvertible {
    /// As people write it, `TLS 1.3`.
    package var description: String { ClientHello.name(ofVersion: rawValue) }
}
