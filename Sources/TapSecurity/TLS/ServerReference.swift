package import XMPPCore

/// The identity that a server's certificate must match: the domain of the JIDs that it serves, never the host name it
/// was found at (RFC 6120 §13.7.2, RFC 9525).
///
/// A certificate matches if one of its subject alternative names does: DNS-ID or SRV-ID, which may have `*` as the
/// whole leftmost label, XmppAddr, or the IP address if the domain is an IP literal. The common name never counts.
package struct ServerReference: Sendable, Hashable {
    /// What SRV-IDs of a service for clients begin with, over STARTTLS and direct TLS.
    private static let services = ["_xmpp-client.", "_xmpps-client."]

    /// As it was asked for.
    package let domain: String
    /// The domain as SNI names it: A-labels, lower case, no dot at the end; nil for an IP literal.
    package let hostName: String?

    /// The domain in the form in which XMPP compares it.
    private let prepared: String
    private let address: [UInt8]?

    /// A reference to the domain of a JID, an IP literal being one too.
    ///
    /// - Parameter domain: As in the stream's `to`; nothing that has not been prepared needs to be.
    /// - Throws: ``XMPPCore/JIDError`` if it is not a domain.
    package init(domain: String) throws(JIDError) {
        let jid = try JID(local: nil, domain: domain, resource: nil)
        self.domain = domain
        prepared = jid.normalized.domain
        address = AddressBytes.parse(prepared)
        hostName = address == nil ? jid.asciiDomain : nil
    }

    /// Whether one of the names is the reference's.
    package func matches(_ names: CertificateNames) -> Bool {
        if names.jids.contains(where: { matches(jid: $0) }) { return true }
        guard let hostName else { return names.addresses.contains { $0 == address } }
        return names.hosts.contains { Self.matches(host: $0, hostName) }
            || names.services.contains { name in
                Self.services.contains { prefix in
                    let label = name.prefix(prefix.utf8.count)
                    return Self.lowered(label) == Self.lowered(Substring(prefix))
                        && Self.matches(host: String(name.dropFirst(prefix.utf8.count)), hostName)
                }
            }
    }

    /// Whether both are the same domain, in whatever form they were asked for.
    func isSameDomain(as other: ServerReference) -> Bool { prepared == other.prepared }

    private func matches(jid text: String) -> Bool {
        guard let jid = JID(text), jid.isServer, jid.isBare else { return false }
        return jid.normalized.domain == prepared
    }

    /// Compares without regard to the case of ASCII letters; `*` as the whole leftmost label matches one label.
    private static func matches(host presented: String, _ reference: String) -> Bool {
        var presented = lowered(presented[...])
        if presented.last == UInt8(ascii: ".") { presented.removeLast() }
        let reference = lowered(reference[...])
        guard presented.starts(with: "*.".utf8) else { return !presented.isEmpty && presented == reference }
        guard let dot = reference.firstIndex(of: UInt8(ascii: ".")), dot > 0 else { return false }
        let rest = presented.dropFirst()
        // A star for a whole top-level domain is not taken (`*.org`).
        return rest.dropFirst().contains(UInt8(ascii: ".")) && rest == reference[dot...]
    }

    private static func lowered(_ text: Substring) -> [UInt8] {
        text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }
}
