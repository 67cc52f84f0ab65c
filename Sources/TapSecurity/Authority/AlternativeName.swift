internal import COpenSSL

/// A subject alternative name of a server certificate (RFC 5280 §4.2.1.6) of a kind that XMPP clients check.
enum AlternativeName: Hashable {
    /// A domain; its leftmost label may be `*`.
    case domain(String)
    case address([UInt8])
    /// A service of a domain (SRV-ID, RFC 4985): `_xmpp-client.example.org`.
    case service(String)
    /// An XMPP domain (RFC 6120 §13.7.1.4), with U-labels.
    case xmpp(String)

    /// Creates a dNSName or iPAddress.
    init(_ name: CertificateName) {
        switch name {
        case .domain(let domain): self = .domain(domain)
        case .address(let bytes): self = .address(bytes)
        }
    }

    /// The name that a CA must cover to sign this name; `nil` if the name is not supported.
    var owner: CertificateName? {
        switch self {
        case .domain(let text):
            guard let name = Self.domain(text.hasPrefix("*.") ? text.dropFirst(2) : text[...]) else { return nil }
            return name
        case .address(let bytes): return bytes.count == 4 || bytes.count == 16 ? .address(bytes) : nil
        case .service(let text):
            let end = text.firstIndex(of: ".") ?? text.endIndex
            let service = text[..<end].dropFirst().utf8
            guard text.hasPrefix("_"), end < text.endIndex, !service.isEmpty,
                service.allSatisfy({ Self.isServiceByte($0) })
            else { return nil }
            return Self.domain(text[text.index(after: end)...])
        case .xmpp(let text): return try? CertificateName(text)
        }
    }

    /// The name as a GeneralName in DER.
    var encoded: [UInt8] {
        switch self {
        case .domain(let text): DER.tagged(2, Array(text.utf8))
        case .address(let bytes): DER.tagged(7, bytes)
        case .service(let text): Self.other(Self.serviceName, DER.value(0x16, Array(text.utf8)))
        case .xmpp(let text): Self.other(Self.xmppAddress, DER.text(text))
        }
    }

    // MARK: Reading

    /// Returns at most `limit` names of a certificate in DER, grouped by kind; empty if the certificate cannot be
    /// parsed or has none.
    static func names(ofCertificate certificate: [UInt8], limit: Int) -> [AlternativeName] {
        defer { ERR_clear_error() }
        guard let parsed = parsedCertificate(certificate) else { return [] }
        defer { X509_free(parsed) }
        let found = CertificateNames(parsed)
        var names = found.hosts.prefix(limit).map { AlternativeName.domain($0.lowercased()) }
        names += found.addresses.prefix(limit - names.count).map { .address($0) }
        names += found.services.prefix(limit - names.count).map { .service($0.lowercased()) }
        names += found.jids.prefix(limit - names.count).map { .xmpp($0) }
        return names
    }

    /// id-on-dnsSRV, 1.3.6.1.5.5.7.8.7.
    private static let serviceName: [UInt8] = [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x08, 0x07]
    /// id-on-xmppAddr, 1.3.6.1.5.5.7.8.5.
    private static let xmppAddress: [UInt8] = [0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x08, 0x05]

    private static func other(_ kind: [UInt8], _ value: [UInt8]) -> [UInt8] {
        DER.tagged(0, constructed: true, DER.identifier(kind) + DER.tagged(0, constructed: true, value))
    }

    /// Returns the domain if the text has the form that certificates use (lower case, A-labels); nil otherwise, and for
    /// IP addresses.
    private static func domain(_ text: Substring) -> CertificateName? {
        guard let name = try? CertificateName(String(text)), name == .domain(String(text)) else { return nil }
        return name
    }

    private static func isServiceByte(_ byte: UInt8) -> Bool {
        0x61...0x7A ~= byte || 0x30...0x39 ~= byte || byte == UInt8(ascii: "-")
    }
}

/// Returns the DER content of a certificate's extension; nil if the certificate does not contain it.
func extensionValue(of certificate: OpaquePointer, _ kind: Int32) -> [UInt8]? {
    let position = X509_get_ext_by_NID(certificate, kind, -1)
    guard position >= 0, let found = X509_get_ext(certificate, position), let value = X509_EXTENSION_get_data(found),
        let start = ASN1_STRING_get0_data(value)
    else { return nil }
    return Array(UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(value))))
}
