internal import COpenSSL
internal import TapCore
package import TapRecord

/// The parameters that a finished handshake negotiated.
package struct TLSParameters: Sendable, Hashable {
    /// The version, such as `TLS 1.3`.
    package var version: String
    /// The version as a comparable number; nil if it is unknown.
    package var versionNumber: TLSVersion?
    /// The cipher suite by its IANA name, such as `TLS_AES_128_GCM_SHA256`.
    package var suite: String
    /// The protocol chosen with ALPN; nil if there is none.
    package var applicationProtocol: String?
    /// The name in SNI that was sent or received; nil if there is none.
    package var serverName: String?
    /// Whether an earlier session was resumed, so that no certificate was sent.
    package var isResumed: Bool
    /// The server's certificate: the received one, or the one that xmpptap presented; nil if there was none.
    package var certificate: CertificateInfo?
    /// Faults of the server's certificate that were ignored; see ``ServerLegTLS/isInsecure``.
    package var overlooked: [CertificateFault]
    /// The certificate of the client, if one was requested; see ``ClientLegTLS/clientTrust``.
    package var client = ClientCertificate.notRequested
    /// Received alerts that did not end the connection.
    package var alertsReceived: [TLSAlert]

    /// The parameters as the attributes of a record.
    package var details: Attributes {
        var details: Attributes = [:]
        details["version"] = .string(version)
        details["suite"] = .string(suite)
        if let applicationProtocol { details["alpn"] = .string(applicationProtocol) }
        if let serverName { details["server_name"] = .string(serverName) }
        if isResumed { details["resumed"] = true }
        if let certificate {
            for entry in certificate.details.entries { details[entry.name] = entry.value }
        }
        if !overlooked.isEmpty { details["overlooked"] = .strings(overlooked.map(\.explanation)) }
        return details
    }
}

/// The result of requesting a certificate from a client.
package enum ClientCertificate: Sendable, Hashable {
    /// No certificate was requested.
    case notRequested
    /// The client has none, or did not show it.
    case none
    /// The certificate, its roles, and its faults; without faults it is verified.
    case shown(CertificateInfo, CertificateUses, [CertificateFault])
}

extension TLSEngine {
    /// Returns the negotiated parameters; nil before the end of the handshake. While ``awaitsIdentity`` is true, those
    /// that the server has already confirmed.
    package func parameters() -> TLSParameters? {
        guard isEstablished || awaitsIdentity else { return nil }
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        let name = start.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self) }
        let version = UInt16(truncatingIfNeeded: SSL_version(ssl))
        return TLSParameters(
            version: ClientHello.name(ofVersion: version),
            versionNumber: TLSVersion(rawValue: version),
            suite: SSL_get_current_cipher(ssl).flatMap { SSL_CIPHER_standard_name($0) }.map { String(cString: $0) }
                ?? "unknown",
            applicationProtocol: name,
            serverName: serverName,
            isResumed: SSL_session_reused(ssl) == 1,
            certificate: serverInfo,
            overlooked: context.role == .client ? observed.faults : [],
            client: clientCertificate,
            alertsReceived: observed.alertsReceived
        )
    }

    /// The name in SNI that was sent to the server or received from the client; nil if there is none, or before the
    /// ClientHello.
    package var serverName: String? {
        SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    }

    private var clientCertificate: ClientCertificate {
        guard context.role == .server, context.verifiesClients else { return .notRequested }
        guard let certificate = SSL_get0_peer_certificate(ssl) else { return .none }
        return .shown(context.known.info(of: certificate), observed.uses, observed.faults)
    }

    /// The contents of the certificate that identifies the server of this connection: the server's certificate, or the
    /// one that xmpptap presented.
    private var serverInfo: CertificateInfo? {
        guard let certificate = serverCertificate else { return nil }
        if context.role == .server, let identity, certificate == identity.leaf { return identity.certificate }
        return context.known.info(of: certificate)
    }

    /// The certificate that identifies the server of this connection, as a borrowed `X509 *`.
    var serverCertificate: OpaquePointer? {
        context.role == .client ? SSL_get0_peer_certificate(ssl) : SSL_get_certificate(ssl)
    }
}

extension TLSParameters {
    /// Returns the negotiated parameters as a human-readable line.
    ///
    /// - Parameter peer: The peer with its article, `the server`.
    package func summary(peer: String) -> String {
        var summary = "\(version) with \(peer): \(suite)"
        if let applicationProtocol { summary += ", ALPN \(applicationProtocol)" }
        if let serverName { summary += ", SNI \(serverName)" }
        if isResumed { summary += ", resumed" }
        if let certificate { summary += "; \(certificate.summary)" }
        return summary
    }

    /// The ignored faults of the server's certificate, as a clause; nil if there are none.
    package var overlookedSummary: String? {
        overlooked.isEmpty ? nil : overlooked.map(\.explanation).joined(separator: "; ")
    }
}
