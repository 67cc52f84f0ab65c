internal import TapNetwork
internal import XMPPCore

/// The account or domain given as the argument of `proxy`.
struct ProxyTarget: Equatable {
    /// The bare JID, or the domain.
    let jid: JID
    let domain: Upstream.Domain

    /// Parses an account or a domain. A resource is ignored: the client chooses it.
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

    /// Returns the server or domain that clients are connected to.
    ///
    /// - Parameter server: The server of the domain; nil looks it up.
    func upstream(at server: Endpoint?) -> Upstream {
        var domain = domain
        domain.server = server
        return .domains([domain])
    }
}
