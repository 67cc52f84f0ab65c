internal import COpenSSL
internal import Glibc
internal import TapCore
package import TapRecord

/// The contents of a certificate, read from an X.509 structure without any verification.
package struct CertificateInfo: Sendable, Hashable {
    /// The subject alternative names.
    package let names: CertificateNames
    /// The subject in one line, `CN=example.org,O=Example` (RFC 2253, the last part first); empty if there is none.
    package let subject: String
    /// The issuer in one line, in the form of ``subject``.
    package let issuer: String
    /// The start of the validity.
    package let notBefore: CertificateTime
    /// The end of the validity.
    package let notAfter: CertificateTime
    /// The kind and size of the public key, such as `EC P-256` or `RSA 2048`.
    package let key: String
    /// The whole certificate in DER.
    package let der: [UInt8]
    /// The SHA-256 of ``der``, 32 bytes.
    package let fingerprint: [UInt8]

    /// The ``fingerprint`` as uppercase hexadecimal digits, with a colon between bytes.
    package let fingerprintText: String
    /// The contents as the attributes of a record.
    package let details: Attributes
    /// The contents as a human-readable clause: `certificate for NAMES, issued by ISSUER, valid until TIME, SHA-256
    /// FINGERPRINT`.
    package let summary: String

    /// Reads an `X509 *`, without keeping a reference to it.
    init(_ certificate: OpaquePointer) {
        names = CertificateNames(certificate)
        subject = Self.line(X509_get_subject_name(certificate))
        issuer = Self.line(X509_get_issuer_name(certificate))
        notBefore = CertificateTime(X509_get0_notBefore(certificate))
        notAfter = CertificateTime(X509_get0_notAfter(certificate))
        key = Self.key(of: certificate)
        der = (try? encoded("i2d_X509") { i2d_X509(certificate, $0) }) ?? []
        fingerprint = Self.fingerprint(of: certificate)
        fingerprintText = fingerprint.fingerprintText
        ERR_clear_error()
        var details: Attributes = ["subject": .string(subject)]
        let all = names.all
        if !all.isEmpty { details["names"] = .strings(all) }
        details["issuer"] = .string(issuer)
        details["not_before"] = .string(notBefore.text)
        details["not_after"] = .string(notAfter.text)
        details["key"] = .string(key)
        details["fingerprint"] = .string(fingerprintText)
        self.details = details
        let rest = all.count > Self.maximumNames ? " and \(all.count - Self.maximumNames) more" : ""
        let shown = all.isEmpty ? "no name" : all.prefix(Self.maximumNames).joined(separator: ", ") + rest
        summary =
            "certificate for \(shown), issued by \(issuer == subject ? "itself" : issuer), valid until \(notAfter.text), "
            + "SHA-256 \(fingerprintText)"
    }

    /// Maximum number of names in ``summary``.
    private static let maximumNames = 6

    /// Returns a distinguished name in one line of UTF-8.
    static func line(_ name: OpaquePointer?) -> String {
        guard let name, let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        // Without this flag, OpenSSL writes characters outside ASCII in hexadecimal.
        let flags = xmpptap_one_line_name_flags()
        guard X509_NAME_print_ex(bio, name, 0, flags) >= 0 else { return "" }
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(bio))
        let count = Int(BIO_read(bio, &bytes, Int32(clamping: bytes.count)))
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    private static func key(of certificate: OpaquePointer) -> String {
        guard let key = X509_get0_pubkey(certificate) else { return "unreadable" }
        let kind = EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown"
        if kind.hasPrefix("ED") { return kind }
        return "\(kind) \(kind == "EC" ? "P-" : "")\(EVP_PKEY_get_bits(key))"
    }

    static func fingerprint(of certificate: OpaquePointer) -> [UInt8] {
        (try? FetchedDigest.of(.sha256).get()).flatMap { digest(of: certificate, by: $0.pointer) } ?? []
    }

    /// Returns the hash of a whole certificate, computed with an `EVP_MD *`.
    static func digest(of certificate: OpaquePointer, by method: OpaquePointer) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(certificate, method, &digest, &count) == 1 else { return nil }
        return Array(digest.prefix(Int(count)))
    }
}

/// A time in a certificate, in whole seconds.
package struct CertificateTime: Sendable, Hashable, Comparable {
    /// Seconds since 1970 in UTC.
    package let seconds: Int64
    /// The time in RFC 3339 and UTC, `2026-11-21T17:22:42Z`; `unreadable` if the certificate has no valid time.
    package let text: String

    /// Returns whether the left time is earlier.
    package static func < (left: CertificateTime, right: CertificateTime) -> Bool { left.seconds < right.seconds }

    init(_ time: UnsafePointer<ASN1_TIME>?) {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else {
            seconds = 0
            text = "unreadable"
            return
        }
        func digits(_ number: Int32, _ width: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
        }
        text =
            "\(digits(parts.tm_year &+ 1900, 4))-\(digits(parts.tm_mon &+ 1, 2))-\(digits(parts.tm_mday, 2))"
            + "T\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))Z"
        seconds = Int64(timegm(&parts))
    }
}

extension Sequence where Element == UInt8 {
    /// The bytes as lowercase hexadecimal digits, two for each byte.
    package var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

    /// The bytes as uppercase hexadecimal digits, with a colon between bytes.
    package var fingerprintText: String {
        map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined(separator: ":")
    }
}
