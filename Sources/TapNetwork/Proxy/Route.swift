internal import NIOCore

/// How the sessions of one listener come to their server.
enum Route: Sendable {
    /// All to the same one.
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

    /// Where clients are sent to, as a record tells it.
    var words: String {
        switch self {
        case .endpoint(let dialer): dialer.endpoint.description
        case .domains(let dialer): "a server of \(dialer.domains.map(\.name).joined(separator: " or "))"
        }
    }
}
