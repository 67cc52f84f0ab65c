internal import XMPPCore

/// The name of a certificate or authority: a domain or an IP address.
package enum CertificateName: Hashable, Sendable {
    /// A domain in DNS form: lower case, A-labels (RFC 5890), without a trailing dot.
    case domain(String)
    /// An IP address, four or sixteen bytes.
    case address([UInt8])

    /// Parses the domain part of a JID, a TLS server name or an IP address; IPv6 addresses may have brackets.
    ///
    /// - Throws: ``AuthorityError`` if no certificate can have the name: an address with a zone, a domain too long for
    ///   the DNS, or text that is not a domain.
    package init(_ text: String) throws(AuthorityError) {
        if let bytes = AddressBytes.parse(text) {
            self = .address(bytes)
            return
        }
        func refusal(_ reason: String) -> AuthorityError { AuthorityError(.badName(reason), text) }
        let jid: JID
        do throws(JIDError) {
            jid = try JID(parsing: text)
        } catch {
            throw refusal("\(error)")
        }
        guard jid.isServer, jid.isBare else { throw refusal("it has more parts than a domain") }
        let domain = jid.asciiDomain
        guard !domain.hasPrefix("[") else { throw refusal("an address with a zone is not allowed") }
        let labels = domain.utf8.split(separator: UInt8(ascii: "."))
        guard domain.utf8.count <= Self.maximumDomainLength, labels.allSatisfy({ $0.count <= Self.maximumLabelLength })
        else {
            throw refusal("it is longer than a DNS name can be")
        }
        self = .domain(domain)
    }

    /// Returns whether an authority for this name may sign the other name: the same name, or a subdomain of this domain
    /// (RFC 5280 §4.2.1.10).
    package func covers(_ other: CertificateName) -> Bool {
        guard case .domain(let mine) = self, case .domain(let theirs) = other else { return self == other }
        return theirs == mine || theirs.hasSuffix(".\(mine)")
    }

    /// This name, followed by its parent domains, nearest first.
    var andAbove: [CertificateName] {
        guard case .domain(let domain) = self else { return [self] }
        let labels = domain.split(separator: ".")
        return labels.indices.map { .domain(labels[$0...].joined(separator: ".")) }
    }

    /// The limits of RFC 1035 §2.3.4, as text without the trailing dot.
    private static let maximumDomainLength = 253
    private static let maximumLabelLength = 63
}

extension CertificateName: CustomStringConvertible {
    /// The domain, or the address in its usual form: `192.168.1.1`, `2001:db8::1`. It contains no character with a
    /// special meaning in shells or file systems.
    package var description: String {
        switch self {
        case .domain(let domain): domain
        case .address(let bytes): AddressBytes.text(bytes)
        }
    }
}
