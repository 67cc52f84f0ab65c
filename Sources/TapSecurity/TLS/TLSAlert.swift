/// A TLS alert (RFC 8446 §6).
package struct TLSAlert: Sendable, Hashable {
    /// The number of the alert.
    package let code: UInt8

    /// Creates an alert from its number.
    package init(code: UInt8) { self.code = code }

    /// The peer's certificate is invalid.
    package static let badCertificate = TLSAlert(code: 42)
    /// The peer's certificate has expired, or is not valid yet.
    package static let certificateExpired = TLSAlert(code: 45)
    /// The issuer of the peer's certificate is not trusted.
    package static let unknownCA = TLSAlert(code: 48)
    /// The peers have no TLS version in common.
    package static let protocolVersion = TLSAlert(code: 70)
    /// The requested server name is not served.
    package static let unrecognizedName = TLSAlert(code: 112)
    /// None of the protocols offered with ALPN is supported.
    package static let noApplicationProtocol = TLSAlert(code: 120)

    /// The name in the RFC, `unknown_ca`; `alert 200` if the number has no name.
    package var name: String { Self.names[code] ?? "alert \(code)" }

    /// Whether the sender rejects the certificate of its peer.
    package var isAboutCertificate: Bool { (42...49).contains(code) && code != 47 || code == 113 }

    private static let names: [UInt8: String] = [
        0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 21: "decryption_failed",
        22: "record_overflow", 30: "decompression_failure", 40: "handshake_failure", 41: "no_certificate",
        42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
        46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error",
        51: "decrypt_error", 60: "export_restriction", 70: "protocol_version", 71: "insufficient_security",
        80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled", 100: "no_renegotiation",
        109: "missing_extension", 110: "unsupported_extension", 111: "certificate_unobtainable",
        112: "unrecognized_name", 113: "bad_certificate_status_response", 114: "bad_certificate_hash_value",
        115: "unknown_psk_identity", 116: "certificate_required", 120: "no_application_protocol",
    ]

    /// The meaning, as a human-readable clause with the sender as its subject.
    package var meaning: String {
        switch code {
        case 0: "sent close_notify"
        case 10: "received an unexpected message"
        case 20, 21, 51: "could not decrypt or verify a record"
        case 22: "received a record that is too long"
        case 40: "found no common cipher suite, group or signature algorithm"
        case 42: "rejected the certificate as invalid"
        case 43: "does not support this type of certificate"
        case 44: "rejected the certificate as revoked"
        case 45: "rejected the certificate as expired or not yet valid"
        case 46: "rejected the certificate"
        case 47: "received an illegal parameter"
        case 48: "does not trust the issuer of the certificate"
        case 49: "denied access with this certificate"
        case 50: "received a message that it cannot decode"
        case 70: "supports none of the offered TLS versions"
        case 71: "requires stronger cryptography than is offered"
        case 80: "had an internal error"
        case 86: "rejected the lower version as a downgrade attack"
        case 90: "canceled the handshake"
        case 100: "does not renegotiate"
        case 109: "requires a missing extension"
        case 110: "received an extension that it did not offer"
        case 112: "does not serve the requested server name"
        case 116: "requires a client certificate"
        case 120: "supports none of the offered ALPN protocols"
        default: "sent \(name)"
        }
    }
}

extension TLSAlert: CustomStringConvertible {
    /// The name in the RFC.
    package var description: String { name }
}
