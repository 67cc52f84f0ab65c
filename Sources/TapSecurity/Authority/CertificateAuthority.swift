internal import COpenSSL
internal import Glibc
internal import TapCore
package import TapRecord

/// A certificate authority of this machine for one domain with its subdomains, or for one address. Its name constraints
/// (RFC 5280 §4.2.1.10) make its key useless for other names.
///
/// The key is on P-256 and signs only leaf certificates. The authority is valid for a year.
package final class CertificateAuthority: Sendable {
    /// The name for which the authority may sign.
    package let name: CertificateName
    /// The certificate in DER, which clients have to trust.
    package let certificate: [UInt8]
    /// The first second of validity: two days before the creation, for clients with slow clocks.
    package let begin: Timestamp
    /// The last second of validity.
    package let end: Timestamp
    /// The SHA-256 digest of the certificate.
    package let fingerprint: [UInt8]

    let key: SigningKey
    /// The roles of the certificates that it may sign. Authorities of earlier versions were for servers only.
    let uses: CertificateUses
    /// The subject Name in DER.
    let subject: [UInt8]
    let keyIdentifier: [UInt8]

    /// Time by which the validity begins before the creation.
    static let headStart = Timestamp.days(2)
    private static let lifetime = Timestamp.days(365)

    /// Creates an authority in memory.
    ///
    /// - Parameters:
    ///   - name: The name for which the authority may sign.
    ///   - now: The current time. The authority is valid from two days before to 365 days after.
    package init(for name: CertificateName, at now: Timestamp) throws(AuthorityError) {
        self.name = name
        uses = .both
        begin = now.wholeSecond - Self.headStart
        end = now.wholeSecond + Self.lifetime
        do throws(OpenSSLError) {
            key = try SigningKey()
            let publicKey = try key.publicKeyInfo()
            keyIdentifier = try Self.identifier(of: publicKey)
            subject = CertificateDraft.name(Self.commonName(name, keyIdentifier))
            let draft = CertificateDraft(
                issuer: subject,
                subject: subject,
                begin: begin,
                end: end,
                publicKey: publicKey,
                extensions: CertificateDraft.authorityUses + [
                    CertificateDraft.constraints(name), CertificateDraft.subjectKey(keyIdentifier),
                ]
            )
            certificate = try draft.signed(by: key, serial: Self.random(16))
            fingerprint = try Self.digest(certificate)
        } catch {
            throw AuthorityError(error, name)
        }
    }

    /// Loads an existing authority, and checks that this program created it.
    ///
    /// - Parameters:
    ///   - parsed: The certificate, an `X509 *` that the caller still owns.
    ///   - key: The private key.
    ///   - name: The expected name.
    ///   - paths: The paths of both files, for errors.
    init(
        _ parsed: OpaquePointer,
        key: SigningKey,
        for name: CertificateName,
        paths: (certificate: String, key: String)
    ) throws(AuthorityError) {
        let isKey = X509_check_private_key(parsed, key.pointer) == 1
        ERR_clear_error()
        guard isKey else { throw AuthorityError(.keyOfAnother, paths.key) }
        var begin = tm()
        var end = tm()
        guard X509_check_ca(parsed) == 1, let constraints = extensionValue(of: parsed, NID_name_constraints),
            CertificateDraft.extension(30, isCritical: true, constraints) == CertificateDraft.constraints(name),
            let identifier = extensionValue(of: parsed, NID_subject_key_identifier), identifier.count > 2,
            ASN1_TIME_to_tm(X509_get0_notBefore(parsed), &begin) == 1,
            ASN1_TIME_to_tm(X509_get0_notAfter(parsed), &end) == 1
        else { throw AuthorityError(.notXmpptapAuthority, paths.certificate) }
        self.name = name
        self.key = key
        uses = CertificateUses(authority: parsed)
        self.begin = Timestamp(seconds: timegm(&begin))
        self.end = Timestamp(seconds: timegm(&end))
        // Skips the tag and length of the octet string.
        keyIdentifier = Array(identifier.dropFirst(2))
        do throws(OpenSSLError) {
            certificate = try encoded("i2d_X509") { i2d_X509(parsed, $0) }
            subject = try encoded("i2d_X509_NAME") { i2d_X509_NAME(X509_get_subject_name(parsed), $0) }
            fingerprint = try Self.digest(certificate)
        } catch {
            throw AuthorityError(error, name)
        }
    }

    /// The certificate in PEM, with a final newline.
    package var pem: String {
        let text = Base64.encode(certificate)
        var lines = ["-----BEGIN CERTIFICATE-----"]
        var rest = text[...]
        while !rest.isEmpty {
            lines.append(String(rest.prefix(64)))
            rest = rest.dropFirst(64)
        }
        return (lines + ["-----END CERTIFICATE-----", ""]).joined(separator: "\n")
    }

    /// Checks the validity period; throws ``AuthorityError``.
    package func checkValidity(at now: Timestamp) throws(AuthorityError) {
        guard now <= end else { throw AuthorityError(.expired(end), "\(name)") }
        guard now >= begin else { throw AuthorityError(.notYetValid(begin), "\(name)") }
    }

    /// Signs a leaf certificate with a new key. The chain contains only the leaf, because clients have the authority's
    /// certificate.
    ///
    /// - Parameters:
    ///   - names: The names of the leaf, which the caller has checked; the first becomes the common name.
    ///   - uses: The roles of the leaf (default: a server).
    ///   - begin: The first second of its validity.
    ///   - end: The last second of its validity.
    func leaf(
        for names: [AlternativeName],
        uses: CertificateUses = .server,
        from begin: Timestamp,
        until end: Timestamp
    ) throws(OpenSSLError) -> TLSIdentity {
        let leafKey = try SigningKey()
        let publicKey = try leafKey.publicKeyInfo()
        let draft = CertificateDraft(
            issuer: subject,
            subject: CertificateDraft.name(Self.commonName(of: names.first)),
            begin: begin,
            end: end,
            publicKey: publicKey,
            extensions: try CertificateDraft.leafUses(uses) + [
                CertificateDraft.names(names.map(\.encoded)),
                CertificateDraft.subjectKey(Self.identifier(of: publicKey)),
                CertificateDraft.authorityKey(keyIdentifier),
            ]
        )
        let bytes = try draft.signed(by: key, serial: Self.random(16))
        let parsed = try made("d2i_X509") { parsedCertificate(bytes) }
        EVP_PKEY_up_ref(leafKey.pointer)
        do throws(TLSIdentityError) {
            return try TLSIdentity(leaf: parsed, chain: [], key: leafKey.pointer)
        } catch {
            throw OpenSSLError(call: "X509_check_private_key")
        }
    }

    /// The maximum length of a common name (RFC 5280 appendix A.1).
    private static let maximumCommonNameLength = 64

    /// Returns the name shown in lists of authorities. The suffix distinguishes a recreated authority from its
    /// predecessor.
    private static func commonName(_ name: CertificateName, _ identifier: [UInt8]) -> String {
        let (begin, end) = ("xmpptap CA for ", " \(identifier.prefix(4).hexadecimal)")
        let room = maximumCommonNameLength - begin.utf8.count - end.utf8.count
        return begin + "\(name)".prefix(room) + end
    }

    /// Returns the leaf's domain if it fits, for old clients that check the common name. Addresses are left out,
    /// because some clients read them as domains.
    private static func commonName(of name: AlternativeName?) -> String {
        guard case .domain(let domain) = name, domain.utf8.count <= maximumCommonNameLength else { return "xmpptap" }
        return domain
    }

    /// Returns 160 bits of the SHA-256 digest of the public key (RFC 7093 §2), which is the last 65 bytes of a P-256
    /// SubjectPublicKeyInfo.
    private static func identifier(of publicKey: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        try Array(digest(Array(publicKey.suffix(65))).prefix(20))
    }

    static func digest(_ bytes: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        let method = try FetchedDigest.of(.sha256).get().pointer
        return try output(HashAlgorithm.sha256.byteCount, "EVP_Digest") {
            EVP_Digest(bytes, bytes.count, $0, nil, method, nil)
        }
    }

    static func random(_ count: Int) throws(OpenSSLError) -> [UInt8] {
        try output(count, "RAND_bytes") { RAND_bytes($0, Int32(clamping: count)) }
    }
}

extension Timestamp {
    init(seconds: Int) { self.init(nanoseconds: Int64(clamping: Int128(seconds) * 1_000_000_000)) }

    /// The time without fractions of a second, which certificates do not support.
    var wholeSecond: Timestamp { Timestamp(nanoseconds: nanoseconds - nanoseconds % 1_000_000_000) }

    /// Returns the number of nanoseconds in `count` days.
    static func days(_ count: Int64) -> Int64 { count * 86_400 * 1_000_000_000 }

    static func + (time: Timestamp, nanoseconds: Int64) -> Timestamp {
        Timestamp(nanoseconds: time.nanoseconds &+ nanoseconds)
    }

    static func - (time: Timestamp, nanoseconds: Int64) -> Timestamp {
        Timestamp(nanoseconds: time.nanoseconds &- nanoseconds)
    }
}
