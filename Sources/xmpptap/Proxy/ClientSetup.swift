internal import TapNetwork
internal import TapSecurity
internal import XMPPCore

/// The settings to make in the client, as lines to copy.
struct ClientSetup {
    let target: ProxyTarget
    /// The CA that the client must trust; nil if the client does not get a certificate of xmpptap.
    let authority: ReadyAuthority?
    /// How the client must connect, in the terms of clients' settings; nil if STARTTLS and direct TLS are possible.
    let security: String?

    /// Returns the lines for the listener at `endpoint`, whose connections begin with `entry`.
    func lines(at endpoint: Endpoint, _ entry: ListenSpec.Entry) -> [String] {
        let account = target.jid.local == nil ? "user@\(target.jid)" : "\(target.jid)"
        let security = security.map { ", \($0)" } ?? ""
        var lines: [String] = []
        if let authority, authority.isNew {
            lines.append("created a certificate authority for \(authority.name) on this machine")
        }
        let place = "\(endpoint.hostForClients) port \(endpoint.port)"
        let step =
            switch entry {
            case .stream: "point the client at \(place)"
            case .request: "set the client's SOCKS5 or HTTP proxy to \(place)"
            case .redirect: "redirect the client's connections to port \(endpoint.port) (xmpptap help transparent)"
            }
        lines.append("\(step)\(security); its JID stays \(account)")
        guard let authority else { return lines }
        let file = AuthorityFolder.word(authority.certificate)
        lines.append("for TLS the client must trust \(authority.certificate):")
        for client in ClientTrust.all {
            let steps = client.steps(file: file, authority: "\(authority.name)")
            // Clients that need more steps are described in the output of 'ca export'.
            guard !client.takesDER, steps.count == 1 else { continue }
            lines.append("  \(client.name.padded(to: 12)) \(steps[0])")
        }
        lines.append("  \("others".padded(to: 12)) xmpptap ca export --domain \(authority.name)\(authority.flag)")
        return lines
    }
}

/// A CA that exists before the first client connects.
struct ReadyAuthority {
    let name: CertificateName
    /// The path of the CA's certificate.
    let certificate: String
    /// The `--ca-dir` argument in commands; empty for the default folder.
    let flag: String
    /// Whether the CA has just been created.
    let isNew: Bool
}

extension Endpoint {
    /// The host as the user has to enter it in a client.
    var hostForClients: String {
        switch host {
        case "127.0.0.1", "::1": "localhost"
        // The wildcard addresses.
        case "0.0.0.0", "::": "this machine's address,"
        default: host
        }
    }
}
