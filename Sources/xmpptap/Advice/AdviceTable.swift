internal import TapDiagnosis
internal import TapSecurity

/// What to try where a login fails: all words that name flags, subcommands or settings of servers.
///
/// Each is an imperative in lower case without a final stop.
enum AdviceTable {
    static func words(for remedy: Remedy) -> String {
        switch remedy {
        case .usual(let cause): words(for: cause)
        case .checkOwnAccount: "check the account in --accounts, and the server's answer in the records above"
        case .comparePassword: "compare the client's password with the one in --accounts"
        case .changeBindingType:
            "let the client use an offered channel-binding type or PLAIN, or use a newer client with tls-exporter "
                + "(RFC 9266)"
        case .addKey(let mechanism): "add the password, or a stored key for \(mechanism), to the account's file"
        case .tryOtherPort:
            "check the server's log; if the port expects direct TLS, use the port for STARTTLS (usually 5222) or "
                + "--server-tls direct"
        case .checkServerPort: "the server does not use TLS on this port; check the port"
        case .checkClientPort: "the client sent plaintext too early, or uses the wrong port"
        case .lowerVersionForClient: "lower the minimum version with --tls-min, if the client has no newer one"
        case .lowerVersionForServer: "an old server may need --tls-min 1.0"
        case .trustIssuer: "trust its issuer, or the certificate itself, with --upstream-ca FILE"
        case .renewCertificate: "renew it on the server, and check the clocks of both machines"
        case .nameDomain: "the certificate must name the domain of the JID, not the server's host name"
        case .overlookFaults: "for tests only: --upstream-insecure"
        case .nameServer(let naming, nil): "let the client \(words(for: naming))"
        case .nameServer(let naming, .domain?):
            "let the client \(words(for: naming)), or use --upstream-domain DOMAIN instead of --upstream"
        case .nameServer(let naming, .host(let host, let port)?):
            "let the client \(words(for: naming)), or use the name in the upstream's certificate: "
                + "--upstream \(host):\(port)"
        case .checkClientLog:
            "this is the server's own certificate (--certificate); check the client's log for the reason"
        case .trustAuthority(let domain, let folder, let missing, let isUntold):
            trust(domain, folder, missing, isUntold: isUntold)
        }
    }

    private static func words(for naming: Remedy.ClientNaming) -> String {
        switch naming {
        case .serverName: "send SNI"
        case .header: "name the domain in its stream header (to)"
        }
    }

    private static func trust(
        _ domain: String,
        _ folder: String?,
        _ missing: Remedy.ClientNaming?,
        isUntold: Bool
    ) -> String {
        let flag = folder.map { AuthorityFolder($0).flag } ?? ""
        var advice =
            "let the client trust the certificate authority for \(domain): 'xmpptap ca export --domain "
            + "\(domain)\(flag)' prints it with instructions for each client"
        if let missing {
            advice +=
                "; if it expects a name that the certificate lacks, let it \(words(for: missing)), or use a --ca-dir with "
                + "an authority for that name alone"
        }
        guard isUntold else { return advice }
        return advice
            + "; Android apps accept a user-installed authority only if they opt in; on iOS, enable full trust for it; a "
            + "client with certificate pinning, DANE or POSH needs the server's own certificate (--certificate, --key) "
            + "or --tls passthrough"
    }
}
