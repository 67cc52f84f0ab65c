internal import COpenSSL
package import TapCore

/// A type of channel binding, which binds a login to the TLS connection below it. The types are sorted by preference:
/// RFC 9266 replaces `tls-unique` by the exporter, and the certificate's hash is the same for all connections.
package enum ChannelBindingType: String, Sendable, Hashable, CaseIterable {
    /// Keying material of the connection (RFC 9266).
    case exporter = "tls-exporter"
    /// The first Finished message of the handshake (RFC 5929 §3).
    case unique = "tls-unique"
    /// A hash of the server's certificate (RFC 5929 §4).
    case serverEndPoint = "tls-server-end-point"
}

extension TLSEngine {
    /// Returns the channel-binding data of this connection; nil if the type is not defined for the connection, or
    /// before the end of the handshake.
    package func channelBinding(_ type: ChannelBindingType) -> [UInt8]? {
        guard isEstablished else { return nil }
        defer { ERR_clear_error() }
        return switch type {
        case .exporter: exporter
        case .unique: unique
        case .serverEndPoint: serverCertificate.flatMap(Self.endPoint)
        }
    }

    /// The leg to which a login can be bound; nil before the end of the handshake.
    package var securedLeg: SecuredLeg? {
        guard isEstablished else { return nil }
        let bindings = ChannelBindingType.allCases.compactMap { type in
            channelBinding(type).map { ChannelBinding(type: type.rawValue, data: $0) }
        }
        return SecuredLeg(version: UInt16(truncatingIfNeeded: SSL_version(ssl)), bindings: bindings)
    }

    private var isTLS13: Bool { SSL_version(ssl) >= Int32(TLSVersion.tls13.rawValue) }

    /// Whether the exporter and `tls-unique` are unique to the connection. Before TLS 1.3, this requires the extended
    /// master secret (RFC 9266 §4.2, RFC 7627).
    private var isBound: Bool { isTLS13 || xmpptap_has_extended_master_secret(ssl) == 1 }

    private var exporter: [UInt8]? {
        guard isBound else { return nil }
        let label = "EXPORTER-Channel-Binding"
        var data = [UInt8](repeating: 0, count: 32)
        // The context is empty but present. Without a context, the data would differ before TLS 1.3.
        let context: UInt8 = 0
        let result = withUnsafePointer(to: context) { context in
            SSL_export_keying_material(ssl, &data, data.count, label, label.utf8.count, context, 0, 1)
        }
        return result == 1 ? data : nil
    }

    private var unique: [UInt8]? {
        // TLS 1.3 has Finished messages, but the type `tls-unique` is not defined for it (RFC 8446 appendix C.5).
        guard !isTLS13, isBound else { return nil }
        // The client's Finished is the first, unless a session is resumed.
        let isOurs = (context.role == .client) != (SSL_session_reused(ssl) == 1)
        var data = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        let count =
            isOurs ? SSL_get_finished(ssl, &data, data.count) : SSL_get_peer_finished(ssl, &data, data.count)
        return 1...data.count ~= count ? Array(data.prefix(count)) : nil
    }

    /// Returns the hash of a server's certificate by RFC 5929 §4.1. Returns nil if the signature has no hash function,
    /// or more than one, because the type is then undefined.
    private static func endPoint(_ certificate: OpaquePointer) -> [UInt8]? {
        var digest: Int32 = NID_undef
        var algorithm: Int32 = NID_undef
        var flags: UInt32 = 0
        guard X509_get_signature_info(certificate, &digest, &algorithm, nil, &flags) == 1, digest != NID_undef
        else { return nil }
        // RSASSA-PSS names two hash functions; OpenSSL sets the flag if they are the same.
        if algorithm == EVP_PKEY_RSA_PSS, flags & UInt32(X509_SIG_INFO_TLS) == 0 { return nil }
        if digest == NID_md5 || digest == NID_sha1 || digest == NID_md5_sha1 { digest = NID_sha256 }
        return EVP_get_digestbyname(OBJ_nid2sn(digest)).flatMap { CertificateInfo.digest(of: certificate, by: $0) }
    }
}
