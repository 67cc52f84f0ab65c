internal import COpenSSL
internal import Glibc

/// The subject alternative names of a certificate that can identify an XMPP service, each kind in the certificate's
/// order; invalid UTF-8 is replaced.
package struct CertificateNames: Sendable, Hashable {
    /// DNS-ID: `example.org`, `*.example.org`.
    package var hosts: [String] = []
    /// SRV-ID (RFC 4985): `_xmpp-client.example.org`.
    package var services: [String] = []
    /// XmppAddr (RFC 6120 §13.7.1.4): a JID, mostly a domain.
    package var jids: [String] = []
    /// IP addresses, 4 or 16 bytes each.
    package var addresses: [[UInt8]] = []

    /// Creates an empty list of names.
    package init() {}

    /// All names in human-readable form: an SRV-ID unchanged, an XmppAddr as `xmpp:…`, an address as `IP:…`.
    package var all: [String] {
        hosts + services + jids.map { "xmpp:" + $0 } + addresses.map { "IP:" + AddressBytes.text($0) }
    }

    /// Reads an `X509 *`, without keeping a reference to it.
    init(_ certificate: OpaquePointer) {
        guard let list = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return }
        let names = OpaquePointer(list)
        defer { GENERAL_NAMES_free(names) }
        for index in 0..<max(0, OPENSSL_sk_num(names)) {
            guard let name = OPENSSL_sk_value(names, index) else { continue }
            append(name.assumingMemoryBound(to: GENERAL_NAME.self))
        }
    }

    private mutating func append(_ name: UnsafePointer<GENERAL_NAME>) {
        var type: Int32 = 0
        guard let value = GENERAL_NAME_get0_value(name, &type) else { return }
        switch type {
        case GEN_DNS: hosts.append(Self.text(value.assumingMemoryBound(to: ASN1_STRING.self)))
        case GEN_IPADD: addresses.append(Self.bytes(value.assumingMemoryBound(to: ASN1_STRING.self)))
        case GEN_OTHERNAME:
            var kind: OpaquePointer?
            var content: UnsafeMutablePointer<ASN1_TYPE>?
            guard GENERAL_NAME_get0_otherName(name, &kind, &content) == 1, let content else { return }
            switch (OBJ_obj2nid(kind), content.pointee.type) {
            case (NID_SRVName, V_ASN1_IA5STRING): services.append(Self.text(content.pointee.value.asn1_string))
            case (NID_XmppAddr, V_ASN1_UTF8STRING): jids.append(Self.text(content.pointee.value.asn1_string))
            default: break
            }
        default: break
        }
    }

    private static func bytes(_ string: UnsafePointer<ASN1_STRING>?) -> [UInt8] {
        guard let string, let start = ASN1_STRING_get0_data(string) else { return [] }
        return Array(UnsafeBufferPointer(start: start, count: max(0, Int(ASN1_STRING_length(string)))))
    }

    private static func text(_ string: UnsafePointer<ASN1_STRING>?) -> String {
        String(decoding: bytes(string), as: UTF8.self)
    }
}

/// Converts IP addresses between text and the bytes in certificates.
enum AddressBytes {
    /// Returns the 4 or 16 bytes of an address; an IPv6 address may be in brackets. Returns nil if the text is not an
    /// address.
    static func parse(_ text: String) -> [UInt8]? {
        var text = Substring(text)
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, String(text), &bytes) == 1 { return Array(bytes.prefix(4)) }
        return inet_pton(AF_INET6, String(text), &bytes) == 1 ? bytes : nil
    }

    /// Returns an address in its usual notation; bytes of another length in hexadecimal.
    static func text(_ bytes: [UInt8]) -> String {
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard bytes.count == 4 || bytes.count == 16 else {
            return bytes.map { String($0, radix: 16) }.joined(separator: ":")
        }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "?" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
