internal import COpenSSL
internal import Glibc
internal import TapCore
package import TapRecord

/// The contents of a certificate, read from an X.509 structure without any verification.
package struct CertificateInfo: Sendable, Hashable {
    /// Whom it names in its subject alternative names.
    package let names: CertificateNames
    /// Subject in one line, `CN=example.org,O=Example` (RFC 2253, the last part first); empty if it has none.
    package let subject: String
    /// Issuer, written likewise.
    package let issuer: String
    /// From when on it is valid.
    package let notBefore: CertificateTime
    /// Until when it is valid.
    package let notAfter: CertificateTime
    /// Kind and size of its key, `EC P-256`, `RSA 2048`.
    package let key: String
    /// The whole certificate in DER.
    package let der: [UInt8]
    /// SHA-256 of ``der``, 32 bytes.
    package let fingerprint: [UInt8]

    /// ``fingerprint`` as people compare it: capital hexadecimal digits, a colon between bytes.
    package let fingerprintText: String
    /// The same as a record tells it.
    package let details: Attributes
    /// The same as a clause for people: `certificate for NAMES, issued by ISSUER, valid until TIME, SHA-256 FINGERPRINT`.
    package let words: String

    /// Reads an `X509 *`, which it does not keep.
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
        let rest = all.count > Self.mostNames ? " and \(all.count - Self.mostNames) more" : ""
        let shown = all.isEmpty ? "no name" : all.prefix(Self.mostNames).joined(separator: ", ") + rest
        words =
            "certificate for \(shown), issued by \(issuer == subject ? "itself" : issuer), valid until \(notAfter.text), "
            + "SHA-256 \(fingerprintText)"
    }

    /// Names that are shown to people.
    private static let mostNames = 6

    /// A distinguished name in one line of UTF-8.
    static func line(_ name: OpaquePointer?) -> String {
        guard let name, let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        // Without this flag everything beyond ASCII would be written in hexadecimal.
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

    /// The hash of a whole certificate by an `EVP_MD *`.
    static func digest(of certificate: OpaquePointer, by method: OpaquePointer) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(certificate, method, &digest, &count) == 1 else { return nil }
        return Array(digest.prefix(Int(count)))
    }
}

/// A moment in a certificate, to the second.
package struct CertificateTime: Sendable, Hashable, Comparable {
    /// Seconds since 1970 in UTC.
    package let seconds: Int64
    /// RFC 3339 in UTC, `2026-11-21T17:22:42Z`; `unreadable` if the certificate has no valid time.
    package let text: String

    /// Earlier is less.
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
    /// Two digits a byte, in small letters.
    package var hexadecimal: String { map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

    /// A fingerprint as people compare it: capital hexadecimal digits, a colon between bytes.
    package var fingerprintText: String {
        map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined(separator: ":")
    }
}
