internal import TapRecord

/// A certificate before it is signed (RFC 5280 §4.1): who it is for, who vouches, and what its key may do.
struct CertificateDraft {
    /// The Name of who signs, in DER.
    var issuer: [UInt8]
    /// The Name of whom it is for, in DER.
    var subject: [UInt8]
    /// The first second at which it is valid.
    var begin: Timestamp
    /// The last second at which it is valid.
    var end: Timestamp
    /// The SubjectPublicKeyInfo of its key.
    var publicKey: [UInt8]
    /// Each made by ``extension(_:isCritical:_:)``.
    var extensions: [[UInt8]]

    /// The certificate in DER, signed.
    ///
    /// - Parameter serial: sixteen random bytes; their first two bits are set so that it is positive and keeps its length.
    func signed(by key: SigningKey, serial: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        var serial = serial
        if let first = serial.first { serial[0] = first & 0x7F | 0x40 }
        let body = DER.sequence(
            // Version 3, the only one with extensions.
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

    /// UTCTime until 2049, GeneralizedTime from then on (RFC 5280 §4.1.2.5).
    private static func time(_ time: Timestamp) -> [UInt8] {
        let digits = time.text.utf8.prefix(19).filter { 0x30...0x39 ~= $0 }
        let isShort = digits.lexicographicallyPrecedes("2050".utf8)
        return isShort
            ? DER.value(0x17, digits.dropFirst(2) + [UInt8(ascii: "Z")])
            : DER.value(0x18, digits + [UInt8(ascii: "Z")])
    }

    // MARK: Names

    /// A Name of an organisation, xmpptap, and a common name, of which RFC 5280 allows 64 characters.
    static func name(_ commonName: String) -> [UInt8] {
        func attribute(_ last: UInt8, _ text: String) -> [UInt8] {
            DER.value(0x31, DER.sequence(DER.identifier([0x55, 0x04, last]), DER.text(text)))
        }
        return DER.sequence(attribute(10, "xmpptap"), attribute(3, commonName))
    }

    // MARK: Extensions

    /// An extension of the arc id-ce, which is all of those written here.
    static func `extension`(_ last: UInt8, isCritical: Bool = false, _ value: [UInt8]) -> [UInt8] {
        DER.sequence(DER.identifier([0x55, 0x1D, last]), isCritical ? DER.yes : [], DER.octets(value))
    }

    /// What the key may do, for the authority: sign certificates of leaves, nothing below.
    static let authorityUses = [
        `extension`(19, isCritical: true, DER.sequence(DER.yes, DER.integer([0]))),
        `extension`(15, isCritical: true, DER.bits([0x04], unused: 2)),
        serverAuthentication,
    ]

    /// What the key may do, for a leaf: prove in a handshake who the server is.
    static let leafUses = [
        `extension`(19, isCritical: true, DER.sequence()),
        `extension`(15, isCritical: true, DER.bits([0x80], unused: 7)),
        serverAuthentication,
    ]

    private static let serverAuthentication = `extension`(
        37,
        DER.sequence(DER.identifier([0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01]))
    )

    /// The name of a certificate's own key.
    static func subjectKey(_ identifier: [UInt8]) -> [UInt8] { `extension`(14, DER.octets(identifier)) }

    /// The name of the key that signs.
    static func authorityKey(_ identifier: [UInt8]) -> [UInt8] {
        `extension`(35, DER.sequence(DER.tagged(0, identifier)))
    }

    /// Whom the certificate is for: the alternative names.
    static func names(_ names: [[UInt8]]) -> [UInt8] { `extension`(17, DER.sequence(of: names)) }

    /// What an authority may vouch for: the one name and, for a domain, what is below it. Names of the other kind that a
    /// client compares are forbidden altogether; a constraint on one kind alone would leave the other open.
    ///
    /// Names of XMPP in the form otherName are not constrained: clients would refuse the whole certificate, not knowing
    /// the kind (Go's do).
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
                    // The empty domain is above all others.
                    subtrees(1, [DER.tagged(2, [])])
                )
            }
        return `extension`(30, isCritical: true, value)
    }
}
