internal import NIOCore
internal import TapSecurity
internal import XMPPCore

/// Looks for the certificates that a domain publishes for its servers by HTTPS (POSH, RFC 7711 §3).
enum PublishedCertificates {
    private static let path = "/.well-known/posh/xmpp-server.json"

    /// Gets the file of a domain; if there is one, calls `warn` with a line for users, on the event loop.
    static func find(
        _ domain: String,
        timeout: TimeAmount,
        on loop: any EventLoop,
        warn: @escaping @Sendable (String) -> Void
    ) {
        loop.execute {
            // The faults of the certificate are checked by WebFetch.
            var tls = ServerLegTLS()
            tls.isInsecure = true
            guard let context = try? TLSContext(tls), let reference = try? ServerReference(domain: domain),
                let address = try? HTTPSAddress("https://\(domain)\(path)")
            else { return }
            let options = WebFetch.Options(tls: context, domain: reference, timeout: timeout)
            WebFetch.get(address, options, on: loop) { result in
                guard case .success(let file) = result, file.body.contains(UInt8(ascii: "{")) else { return }
                warn(
                    "\(file.address) publishes the certificates of \(domain) (POSH): servers that check them refuse the "
                        + "certificate that xmpptap shows"
                )
            }
        }
    }
}
