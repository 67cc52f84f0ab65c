internal import TapNetwork
internal import XMPPCore

/// The account, or only its domain, that `proxy` was started for.
struct ProxyTarget: Equatable {
    /// The bare JID, or the domain.
    let jid: JID
    let domain: Upstream.Domain

    /// Reads an account or a domain. A resource is ignored: the client chooses it.
    init(_ text: String) throws(Failure) {
        do throws(JIDError) {
            jid = try JID(parsing: text).bare
        } catch {
            let isEndpoint = text.contains(":") && (try? Endpoint.server(text)) != nil
            throw .usage(
                "\(Console.escaped(text)) is not an account or a domain (\(error)); write one, as in juliet@example.org"
                    + (isEndpoint ? ", and the server's address with --upstream \(text)" : "")
            )
        }
        do throws(EndpointError) {
            domain = try Upstream.Domain(jid.domain)
        } catch {
            throw .usage("\(error)")
        }
    }

    /// Where clients are connected to.
    ///
    /// - Parameter server: The domain's server; nil looks it up.
    func upstream(at server: Endpoint?) -> Upstream {
        var domain = domain
        domain.server = server
        return .domains([domain])
    }
}
