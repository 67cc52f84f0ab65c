internal import TapRecord

/// A certificate before signing (RFC 5280 §4.1).
struct CertificateDraft {
    /// The issuer Name in DER.
    var issuer: [UInt8]
    /// The subject Name in DER.
    var subject: [UInt8]
    /// The first second of its validity.
    var begin: Timestamp
    /// The last second of the certificate's validity.
    var end: Timestamp
    /// The SubjectPublicKeyInfo in DER.
    var publicKey: [UInt8]
    /// The extensions, each created by ``extension(_:isCritical:_:)``.
    var extensions: [[UInt8]]

    /// Returns the signed certificate in DER.
    ///
    /// - Parameter serial: Sixteen random bytes; the first two bits are set to make the number positive and of fixed
    ///   length.
    func signed(by key: SigningKey, serial: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        var serial = serial
        if let first = serial.first { serial[0] = first & 0x7F | 0x40 }
        let body = DER.sequence(
            // Version 3, which is required for extensions.
            DER.tagged(0, constructed: true, DER.integer([2])),
            DER.integer(serial),
            Self.signatureAlgorithm,
            issuer,
            DER.sequence(Self.time(begin), Self.time(end)),
            subject,
            publicKey,
            DER.tagged(3, constructed: true, DER.sequence(of: extensions))
        )
        return try DER.sequence(body, Self.signatureAlgorithm, DER.bits(key.signature(over: body)))
    }

    /// ecdsa-with-SHA256 (RFC 5758 §3.2).
    private static let signatureAlgorithm = DER.sequence(
        DER.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02])
    )

    /// Returns a UTCTime until 2049, and a GeneralizedTime afterwards (RFC 5280 §4.1.2.5).
    private static func time(_ time: Timestamp) -> [UInt8] {
        let digits = time.text.utf8.prefix(19).filter { 0x30...0x39 ~= $0 }
        let isShort = digits.lexicographicallyPrecedes("2050".utf8)
        return isShort
            ? DER.value(0x17, digits.dropFirst(2) + [UInt8(ascii: "Z")])
            : DER.value(0x18, digits + [UInt8(ascii: "Z")])
    }

    // MARK: Names

    /// Returns a Name with the organisation xmpptap and a common name of at most 64 characters (RFC 5280).
    static func name(_ commonName: String) -> [UInt8] {
        func attribute(_ last: UInt8, _ text: String) -> [UInt8] {
            DER.value(0x31, DER.sequence(DER.identifier([0x55, 0x04, last]), DER.text(text)))
        }
        return DER.sequence(attribute(10, "xmpptap"), attribute(3, commonName))
    }

    // MARK: Extensions

    /// Returns an extension of the arc id-ce, to which all extensions used here belong.
    static func `extension`(_ last: UInt8, isCritical: Bool = false, _ value: [UInt8]) -> [UInt8] {
        DER.sequence(DER.identifier([0x55, 0x1D, last]), isCritical ? DER.yes : [], DER.octets(value))
    }

    /// Key usage of an authority: signs leaf certificates for both roles, but no further authorities.
    static let authorityUses = [
        `extension`(19, isCritical: true, DER.sequence(DER.yes, DER.integer([0]))),
        `extension`(15, isCritical: true, DER.bits([0x04], unused: 2)),
        extendedUses(.both),
    ]

    /// Returns the key usage of a leaf: authentication in handshakes, in these roles.
    static func leafUses(_ uses: CertificateUses) -> [[UInt8]] {
        [
            `extension`(19, isCritical: true, DER.sequence()),
            `extension`(15, isCritical: true, DER.bits([0x80], unused: 7)),
            extendedUses(uses),
        ]
    }

    private static func extendedUses(_ uses: CertificateUses) -> [UInt8] {
        func purpose(_ last: UInt8) -> [UInt8] {
            DER.identifier([0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, last])
        }
        var purposes: [[UInt8]] = []
        if uses.contains(.server) { purposes.append(purpose(1)) }
        if uses.contains(.client) { purposes.append(purpose(2)) }
        return `extension`(37, DER.sequence(of: purposes))
    }

    /// Returns the identifier of the certificate's own key.
    static func subjectKey(_ identifier: [UInt8]) -> [UInt8] { `extension`(14, DER.octets(identifier)) }

    /// Returns the identifier of the signing key.
    static func authorityKey(_ identifier: [UInt8]) -> [UInt8] {
        `extension`(35, DER.sequence(DER.tagged(0, identifier)))
    }

    /// Returns the subject alternative names.
    static func names(_ names: [[UInt8]]) -> [UInt8] { `extension`(17, DER.sequence(of: names)) }

    /// Returns the name constraints of an authority: the name itself and, for a domain, its subdomains. The other kind
    /// of name that clients check is excluded completely, because a constraint on one kind leaves the others
    /// unconstrained.
    ///
    /// XMPP names of the form otherName are not constrained, because clients that do not know the kind, such as Go's,
    /// would reject the certificate.
    static func constraints(_ name: CertificateName) -> [UInt8] {
        func subtrees(_ number: UInt8, _ bases: [[UInt8]]) -> [UInt8] {
            DER.tagged(number, constructed: true, Array(bases.map { DER.sequence($0) }.joined()))
        }
        let value =
            switch name {
            case .domain(let domain):
                DER.sequence(
                    subtrees(0, [DER.tagged(2, Array(domain.utf8))]),
                    subtrees(
                        1,
                        [DER.tagged(7, .init(repeating: 0, count: 8)), DER.tagged(7, .init(repeating: 0, count: 32))]
                    )
                )
            case .address(let bytes):
                DER.sequence(
                    subtrees(0, [DER.tagged(7, bytes + .init(repeating: 0xFF, count: bytes.count))]),
                    // The empty domain includes all domains.
                    subtrees(1, [DER.tagged(2, [])])
                )
            }
        return `extension`(30, isCritical: true, value)
    }
}
