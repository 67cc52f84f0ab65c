internal import XMPPCore

/// The name of a certificate or CA: a domain, or an IP address used as one.
public enum CertificateName: Hashable, Sendable {
    /// A domain as the DNS has it: in lower case, labels of other scripts as A-labels (RFC 5890), no dot at the end.
    case domain(String)
    /// An IP address, four or sixteen bytes.
    case address([UInt8])

    /// Reads a domain part of a JID, a server name of TLS, or an address; an IPv6 address with or without its brackets.
    ///
    /// - Throws: ``AuthorityError`` for what no certificate can name: an address with a zone, a domain that is too long
    ///   for the DNS, and what is no domain at all.
    public init(_ text: String) throws(AuthorityError) {
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
        guard domain.utf8.count <= Self.longestDomain, labels.allSatisfy({ $0.count <= Self.longestLabel }) else {
            throw refusal("it is longer than a DNS name can be")
        }
        self = .domain(domain)
    }

    /// Whether an authority for this name may vouch for the other: the same name, or a subdomain of this domain
    /// (RFC 5280 §4.2.1.10).
    public func covers(_ other: CertificateName) -> Bool {
        guard case .domain(let mine) = self, case .domain(let theirs) = other else { return self == other }
        return theirs == mine || theirs.hasSuffix(".\(mine)")
    }

    /// This name, and for a domain those above it, the nearest first.
    var andAbove: [CertificateName] {
        guard case .domain(let domain) = self else { return [self] }
        let labels = domain.split(separator: ".")
        return labels.indices.map { .domain(labels[$0...].joined(separator: ".")) }
    }

    /// RFC 1035 §2.3.4, in text and without the dot at the end.
    private static let longestDomain = 253
    private static let longestLabel = 63
}

extension CertificateName: CustomStringConvertible {
    /// The domain, or the address in its usual form: `192.168.1.1`, `2001:db8::1`. Holds no character that means
    /// something to a shell or a file system.
    public var description: String {
        switch self {
        case .domain(let domain): domain
        case .address(let bytes): AddressBytes.text(bytes)
        }
    }
}
