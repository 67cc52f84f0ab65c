internal import NIOCore
internal import XMPPCore

/// Where clients are sent to.
package enum Upstream: Sendable, Hashable {
    /// One server, given by name or address.
    case endpoint(Endpoint)
    /// The domains that a client may ask for; their servers are found in the DNS.
    case domains([Domain])

    /// A domain of XMPP, prepared.
    package struct Domain: Sendable, Hashable {
        /// The text as typed.
        package let name: String
        /// As the DNS has it: in lower case, labels of other scripts as A-labels (RFC 5890).
        package let ascii: String
        /// The address of its server; nil looks it up in the DNS.
        package var server: Endpoint?

        /// Reads the domain part of a JID.
        package init(_ text: String) throws(EndpointError) {
            func error(_ reason: String) -> EndpointError { EndpointError(code: .badDomain(reason), text: text) }
            let jid: JID
            do throws(JIDError) {
                jid = try JID(parsing: text)
            } catch {
                throw EndpointError(code: .badDomain("\(error)"), text: text)
            }
            guard jid.isServer, jid.isBare else { throw error("it has more parts") }
            name = text
            ascii = jid.asciiDomain
        }

        /// Whether the `to` of a header, or the server name of a ClientHello, is this domain.
        func matches(_ text: String) -> Bool {
            guard let jid = Address(text).jid, jid.isServer, jid.isBare else { return false }
            return jid.asciiDomain == ascii
        }
    }

    /// Reads `HOST[:PORT]` or `domain:NAME`; several names with commas between them.
    init(_ text: String) throws(EndpointError) {
        let prefix = "domain:"
        if text.hasPrefix(prefix) {
            var domains: [Domain] = []
            let names = text.dropFirst(prefix.count).split(separator: ",", omittingEmptySubsequences: false)
            for name in names { domains.append(try Domain(String(name))) }
            self = .domains(domains)
        } else {
            self = .endpoint(try Endpoint.server(text))
        }
    }

    /// The single server, if there is one for whatever domain.
    package var endpoint: Endpoint? { if case .endpoint(let endpoint) = self { endpoint } else { nil } }

    /// The address of the single server; nil if servers are looked up.
    package var address: Endpoint? {
        switch self {
        case .endpoint(let endpoint): endpoint
        case .domains(let domains): domains.count == 1 ? domains[0].server : nil
        }
    }
}

extension Upstream: CustomStringConvertible {
    /// As it could have been typed; several domains with commas between them.
    package var description: String {
        switch self {
        case .endpoint(let endpoint): endpoint.description
        case .domains(let domains): "domain:" + domains.map(\.name).joined(separator: ",")
        }
    }
}

/// How the sessions of one listener come to their server.
enum Route: Sendable {
    case endpoint(Dialer)
    /// Each to one of the domain that its client names.
    case domains(DomainDialer)

    init(_ upstream: Upstream, timeout: TimeAmount, names: NameResolver, own: OwnAddresses) {
        switch upstream {
        case .endpoint(let endpoint): self = .endpoint(Dialer(endpoint, timeout: timeout))
        case .domains(let domains):
            self = .domains(DomainDialer(domains: domains, names: names, timeout: timeout, own: own))
        }
    }

    /// The server of the clients, as records name it.
    var words: String {
        switch self {
        case .endpoint(let dialer): dialer.endpoint.description
        case .domains(let dialer):
            if let address = Upstream.domains(dialer.domains).address {
                "\(address)"
            } else {
                "a server of \(dialer.domains.map(\.name).joined(separator: " or "))"
            }
        }
    }
}
