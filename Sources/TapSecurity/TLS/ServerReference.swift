package import XMPPCore

/// The identity that a server's certificate must match: the domain of the JIDs that it serves, never the host name
/// under which it was found (RFC 6120 §13.7.2, RFC 9525).
///
/// A certificate matches if one of its subject alternative names does: DNS-ID or SRV-ID, which may have `*` as the
/// whole leftmost label, XmppAddr, or the IP address if the domain is an IP literal. The common name never counts.
package struct ServerReference: Sendable, Hashable {
    /// The peers of the service that the certificate is for.
    package enum Service: String, Sendable, Hashable {
        /// Clients connect to the service.
        case clients
        /// Servers connect to the service, or the certificate is that of a server that connects to another.
        case servers

        /// The prefixes of SRV-IDs of the service, over STARTTLS and direct TLS.
        fileprivate var prefixes: [String] {
            switch self {
            case .clients: ["_xmpp-client.", "_xmpps-client."]
            case .servers: ["_xmpp-server.", "_xmpps-server."]
            }
        }
    }

    /// The domain as it was given.
    package let domain: String
    /// The domain for SNI: A-labels, lower case, without a trailing dot; nil for an IP literal.
    package let hostName: String?

    /// The domain in the form in which XMPP compares domains.
    private let prepared: String
    private let address: [UInt8]?
    private let service: Service
    /// Other references: a certificate for one of them matches, too.
    private var alternatives: [ServerReference] = []

    /// Creates a reference to the domain of a JID, which may be an IP literal.
    ///
    /// - Parameters:
    ///   - domain: The domain as in the stream's `to`, or in the `from` of a server; it need not be prepared.
    ///   - service: The peers of the service (default: clients).
    /// - Throws: ``XMPPCore/JIDError`` if the text is not a domain.
    package init(domain: String, service: Service = .clients) throws(JIDError) {
        let jid = try JID(local: nil, domain: domain, resource: nil)
        self.domain = domain
        self.service = service
        prepared = jid.normalized.domain
        address = AddressBytes.parse(prepared)
        hostName = address == nil ? jid.asciiDomain : nil
    }

    /// Returns a reference that also accepts the names of another domain: a WebSocket that was found by host-meta may
    /// show a certificate for the XMPP domain (XEP-0156).
    package func accepting(_ other: ServerReference) -> ServerReference {
        var reference = self
        reference.alternatives.append(other)
        return reference
    }

    /// Returns whether one of the names matches the reference.
    package func matches(_ names: CertificateNames) -> Bool {
        matchesDomain(names) || alternatives.contains { $0.matchesDomain(names) }
    }

    private func matchesDomain(_ names: CertificateNames) -> Bool {
        if names.jids.contains(where: { matches(jid: $0) }) { return true }
        guard let hostName else { return names.addresses.contains { $0 == address } }
        return names.hosts.contains { Self.matches(host: $0, hostName) }
            || names.services.contains { name in
                service.prefixes.contains { prefix in
                    let label = name.prefix(prefix.utf8.count)
                    return Self.lowered(label) == Self.lowered(Substring(prefix))
                        && Self.matches(host: String(name.dropFirst(prefix.utf8.count)), hostName)
                }
            }
    }

    /// Returns whether both references have the same domain, regardless of how it is written.
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
        // A wildcard for a whole top-level domain, such as `*.org`, does not match.
        return rest.dropFirst().contains(UInt8(ascii: ".")) && rest == reference[dot...]
    }

    private static func lowered(_ text: Substring) -> [UInt8] {
        text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }
}
