internal import NIOCore
internal import TapRecord
internal import XMPPCore

/// The server or servers that clients are connected to.
package enum Upstream: Sendable, Hashable {
    /// One server, given by host name or IP address.
    case endpoint(Endpoint)
    /// The domains that clients may use; their servers are found in the DNS.
    case domains([Domain])

    /// An XMPP domain, prepared.
    package struct Domain: Sendable, Hashable {
        /// The domain as typed.
        package let name: String
        /// The domain as in the DNS: in lower case, with A-labels for internationalized labels (RFC 5890).
        package let ascii: String
        /// The address of its server; nil looks it up in the DNS.
        package var server: Endpoint?

        /// Parses the domain part of a JID.
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

        /// Returns whether a stream header's `to`, or the server name of a ClientHello, is this domain.
        func matches(_ text: String) -> Bool {
            guard let jid = Address(text).jid, jid.isServer, jid.isBare else { return false }
            return jid.asciiDomain == ascii
        }
    }

    /// Parses `HOST[:PORT]` or `domain:NAME`; several names are separated by commas.
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

    /// The single server, if one is given for all domains; otherwise nil.
    package var endpoint: Endpoint? { if case .endpoint(let endpoint) = self { endpoint } else { nil } }

    /// The address of the single server; nil if servers are found in the DNS.
    package var address: Endpoint? {
        switch self {
        case .endpoint(let endpoint): endpoint
        case .domains(let domains): domains.count == 1 ? domains[0].server : nil
        }
    }
}

extension Upstream: CustomStringConvertible {
    /// The text form that the initialiser accepts.
    package var description: String {
        switch self {
        case .endpoint(let endpoint): endpoint.description
        case .domains(let domains): "domain:" + domains.map(\.name).joined(separator: ",")
        }
    }
}

/// How the sessions of one listener connect to their server.
enum Route: Sendable {
    case endpoint(Dialer)
    /// To a server of the domain that the client names.
    case domains(DomainDialer)
    /// By the connection of a request for a WebSocket.
    case web(WebServer)
    /// To the target that the client has named to xmpptap as a proxy; the connection is established.
    case target(ReachedTarget)

    init(_ upstream: Upstream, timeout: TimeAmount, names: NameResolver, own: OwnAddresses) {
        switch upstream {
        case .endpoint(let endpoint): self = .endpoint(Dialer(endpoint, timeout: timeout))
        case .domains(let domains):
            self = .domains(DomainDialer(domains: domains, names: names, timeout: timeout, own: own))
        }
    }

    /// The server or domains, as text for records.
    var description: String {
        switch self {
        case .endpoint(let dialer): dialer.endpoint.description
        case .web(let server): server.description
        case .domains(let dialer):
            if let address = Upstream.domains(dialer.domains).address {
                "\(address)"
            } else {
                "a server of \(dialer.domains.map(\.name).joined(separator: " or "))"
            }
        case .target(let target): target.request.target
        }
    }

    /// The client's request for a target; nil if it made none.
    var request: Record.Beginning.Request? { if case .target(let target) = self { target.request } else { nil } }

    /// Whether sessions are relayed without decoding.
    var isBlind: Bool { if case .target(let target) = self { target.isBlind } else { false } }
}
