internal import COpenSSL
internal import TapCore
package import TapRecord

/// The parameters that a finished handshake negotiated.
package struct TLSParameters: Sendable, Hashable {
    /// Version as people write it, `TLS 1.3`.
    package var version: String
    /// The same as a number that can be compared; nil for one that is not known.
    package var versionNumber: TLSVersion?
    /// Cipher suite by its IANA name, `TLS_AES_128_GCM_SHA256`.
    package var suite: String
    /// Protocol chosen by ALPN; nil if there is none.
    package var applicationProtocol: String?
    /// Name sent in SNI, or asked for; nil if there is none.
    package var serverName: String?
    /// An earlier session was resumed, so that no certificate was shown.
    package var isResumed: Bool
    /// The server's certificate: the received one, or the one that xmpptap presented; nil if there was none.
    package var certificate: CertificateInfo?
    /// Problems of the server's certificate that were ignored; see ``ServerLegTLS/isInsecure``.
    package var overlooked: [CertificateFault]
    /// Alerts that came, but no end of the connection.
    package var alertsReceived: [TLSAlert]

    /// The same as a record tells it.
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
        if !overlooked.isEmpty { details["overlooked"] = .strings(overlooked.map(\.words)) }
        return details
    }
}

extension TLSEngine {
    /// Returns the negotiated parameters; nil before the end of the handshake.
    package func parameters() -> TLSParameters? {
        guard isEstablished else { return nil }
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
            overlooked: observed.faults,
            alertsReceived: observed.alertsReceived
        )
    }

    /// The name in SNI: sent, or received from the client; nil if there is none, or before the ClientHello.
    package var serverName: String? {
        SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    }

    /// The contents of the certificate that identifies the server of this connection: the server's, or the one we
    /// showed.
    private var serverInfo: CertificateInfo? {
        guard let certificate = serverCertificate else { return nil }
        if let identity, certificate == identity.leaf { return identity.certificate }
        return context.known.info(of: certificate)
    }

    /// The certificate that identifies the server of this connection, a borrowed `X509 *`.
    var serverCertificate: OpaquePointer? {
        context.role == .client ? SSL_get0_peer_certificate(ssl) : SSL_get_certificate(ssl)
    }
}

extension TLSParameters {
    /// The negotiated parameters in a line for people.
    ///
    /// - Parameter peer: The peer with its article, `the server`.
    package func words(peer: String) -> String {
        var words = "\(version) with \(peer): \(suite)"
        if let applicationProtocol { words += ", ALPN \(applicationProtocol)" }
        if let serverName { words += ", SNI \(serverName)" }
        if isResumed { words += ", resumed" }
        if let certificate { words += "; \(certificate.words)" }
        return words
    }

    /// The ignored faults of the server's certificate, as a clause; nil if there are none.
    package var overlookedWords: String? {
        overlooked.isEmpty ? nil : overlooked.map(\.words).joined(separator: "; ")
    }
}
