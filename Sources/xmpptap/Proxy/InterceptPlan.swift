internal import TapCore
internal import TapNetwork
internal import TapSecurity

/// How TLS is ended, as it was asked for.
struct InterceptPlan {
    /// Nil where TLS is passed through.
    private let options: InterceptOptions?
    /// Domains for which an authority may be made, wherever clients are.
    private let domains: [String]
    private let allowRemote: Bool
    /// All clients are served by the built-in server.
    private let isBuiltInOnly: Bool
    /// The built-in server is to have TLS: it serves all clients, and theirs is ended.
    let securesServer: Bool

    /// Resolves what was typed.
    ///
    /// - Parameter plan: Who serves the clients.
    init(_ options: InterceptOptions, _ plan: ProxyPlan, allowRemote: Bool) throws(Failure) {
        if allowRemote, options.tls == nil {
            throw .usage(
                "--allow-remote: say what to do about TLS: --tls intercept (other machines' clients are shown a "
                    + "certificate of this one, and their sessions are read) or --tls passthrough"
            )
        }
        for (flag, value, other, otherValue) in [
            ("--certificate", options.certificate, "--key", options.key),
            ("--upstream-certificate", options.upstreamCertificate, "--upstream-key", options.upstreamKey),
        ] where (value == nil) != (otherValue == nil) {
            throw .usage(value == nil ? "\(other) belongs to a certificate; add \(flag)" : "\(flag): add \(other)")
        }
        if options.upstreamInsecure, options.upstreamCa != nil {
            throw .usage("--upstream-insecure verifies nothing, --upstream-ca says by what to verify; leave one out")
        }
        if options.accounts != nil, options.channelBinding == .strip {
            throw .usage(
                "--channel-binding strip shows what clients do without, --accounts lets them log in with it; leave one out"
            )
        }
        let upstreams = plan.listeners.compactMap { $0.upstream ?? plan.upstream }
        let isPassed = options.tls == .passthrough
        if isPassed, let flag = Self.flagInVain(options) {
            throw .usage("\(flag) is about TLS that is ended here; with --tls passthrough leave it out")
        }
        try Self.checkLegs(options, allowRemote: allowRemote)
        self.options = isPassed ? nil : options
        securesServer = !isPassed && plan.needsServer
        if securesServer, upstreams.isEmpty, let flag = Self.flagAboutServers(options) {
            throw .usage("\(flag) is about servers of your own, and the built-in one alone is used; add --upstream")
        }
        if plan.needsServer, options.serverTls == .direct {
            throw .usage("--server-tls direct: the built-in server has no port that begins with TLS; add --upstream")
        }
        self.allowRemote = allowRemote
        isBuiltInOnly = plan.needsServer && upstreams.isEmpty
        domains = upstreams.flatMap { upstream -> [String] in
            if case .domains(let domains) = upstream { domains.map(\.name) } else { [] }
        }
    }

    private static func flagAboutServers(_ options: InterceptOptions) -> String? {
        let given: [(String, Bool)] = [
            ("--upstream-ca", options.upstreamCa != nil), ("--upstream-insecure", options.upstreamInsecure),
            ("--upstream-certificate", options.upstreamCertificate != nil),
            ("--certificate", options.certificate != nil), ("--accounts", options.accounts != nil),
        ]
        return given.first { $0.1 }?.0
    }

    private static func flagInVain(_ options: InterceptOptions) -> String? {
        let given: [(String, Bool)] = [
            ("--tls-min", options.tlsMin != nil), ("--upstream-ca", options.upstreamCa != nil),
            ("--upstream-insecure", options.upstreamInsecure), ("--certificate", options.certificate != nil),
            ("--upstream-certificate", options.upstreamCertificate != nil), ("--keylog", options.keylog != nil),
            ("--client-tls", options.clientTls != .auto), ("--server-tls", options.serverTls != .auto),
            ("--channel-binding", options.channelBinding != .keep),
            ("--accounts", options.accounts != nil),
        ]
        return given.first { $0.1 }?.0
    }

    /// Refuses what cannot be meant of the two legs.
    private static func checkLegs(_ options: InterceptOptions, allowRemote: Bool) throws(Failure) {
        let isClientClear = options.clientTls == .off
        let isServerClear = options.serverTls == .off
        if isClientClear, allowRemote {
            throw .usage(
                "--client-tls off is for clients of this machine: with --allow-remote others' passwords would pass in "
                    + "clear; leave one out"
            )
        }
        if isClientClear, options.certificate != nil {
            throw .usage("--certificate is what clients are shown, and with --client-tls off they are shown none")
        }
        let aboutServers: [(String, Bool)] = [
            ("--upstream-ca", options.upstreamCa != nil), ("--upstream-insecure", options.upstreamInsecure),
            ("--upstream-certificate", options.upstreamCertificate != nil),
        ]
        if isServerClear, let flag = aboutServers.first(where: { $0.1 })?.0 {
            throw .usage("\(flag) is about servers' TLS, and with --server-tls off there is none; leave one out")
        }
        let aboutTLS = [("--tls-min", options.tlsMin != nil), ("--keylog", options.keylog != nil)]
        if isClientClear, isServerClear, let flag = aboutTLS.first(where: { $0.1 })?.0 {
            throw .usage("\(flag) is about TLS, and with --client-tls off and --server-tls off there is none")
        }
    }

    /// How TLS begins and what is done about channel binding, for the sessions.
    func apply(to session: inout SessionOptions) {
        guard let options else { return }
        session.clientTLS = options.clientTls
        session.serverTLS = options.serverTls
        session.stripsBinding = options.channelBinding == .strip
    }

    /// What the user should know, one line each.
    func warnings(_ plan: ProxyPlan) -> [String] {
        guard let options else { return [] }
        var warnings: [String] = []
        if options.channelBinding == .strip {
            warnings.append(
                "--channel-binding strip: clients that have channel binding say y, which a server that offers it has to "
                    + "refuse (RFC 5802 §6; Prosody 0.12 does, ejabberd 23.01 does not); clients that check the list of "
                    + "mechanisms that the server signs abort (XEP-0474)"
            )
        }
        let upstreams = plan.listeners.compactMap { $0.upstream ?? plan.upstream }
        if options.serverTls == .off, let far = upstreams.first(where: { $0.endpoint?.isLoopback != true }) {
            warnings.append(
                "--server-tls off: passwords and all that follows go to \(far) in clear; whoever is between can read them"
            )
        }
        return warnings
    }

    /// Reads the files that were named; nil where TLS is passed through.
    ///
    /// - Parameters:
    ///   - house: What vouches for the built-in server and is to vouch for the proxy before it.
    ///   - limit: Authorities from which on none is made on demand.
    /// - Returns: How TLS is ended before servers of the user's own, and before the built-in one.
    func interception(
        authorities: AuthorityFolderOption,
        ephemeral: EphemeralAuthority?,
        limit: Int,
        clock: RunClock
    ) throws(Failure) -> (own: Interception?, ephemeral: Interception?) {
        guard let options else { return (nil, nil) }
        if options.upstreamInsecure {
            Console.complain(
                "warning: --upstream-insecure: servers are not verified; anybody between this proxy and them can read and "
                    + "change the sessions, and their clients cannot tell"
            )
        }
        var server = ServerLegTLS()
        var client = ClientLegTLS()
        server.minimumVersion = options.tlsMin ?? .tls12
        client.minimumVersion = server.minimumVersion
        server.isInsecure = options.upstreamInsecure
        if let file = options.upstreamCa { server.trust = .file(file) }
        if let path = options.keylog {
            let file = try KeyLogFile(path)
            server.keyLog = { file.append($0) }
            client.keyLog = server.keyLog
        }
        do {
            var plain = ServerLegTLS()
            plain.minimumVersion = server.minimumVersion
            plain.keyLog = server.keyLog
            let housed = try ephemeral?.interception(plain, client)
            guard !isBuiltInOnly else { return (housed, nil) }
            server.identity = try Self.identity(options.upstreamCertificate, options.upstreamKey)
            let own = try Self.identity(options.certificate, options.key)
            return (
                Interception(
                    serverLeg: try TLSContext(server),
                    clientLeg: try TLSContext(client),
                    identities: try own.map { .own($0) } ?? .minted(minter(authorities, clock, limit: limit))
                ), housed
            )
        } catch let failure as Failure {
            throw failure
        } catch {
            throw .file("\(error)")
        }
    }

    /// Reads the accounts whose logins are ended here; nil where none are.
    func authenticator(_ cryptography: OpenSSLCryptography) throws(Failure) -> AccountStore? {
        guard let options, let path = options.accounts else { return nil }
        do {
            return try AccountStore(
                AccountsFile(path: path).accounts,
                hasCertificate: options.upstreamCertificate != nil,
                cryptography: cryptography
            )
        } catch {
            throw .file("--accounts: \(error)")
        }
    }

    private static func identity(_ certificate: String?, _ key: String?) throws -> TLSIdentity? {
        guard let certificate, let key else { return nil }
        return try TLSIdentity(certificateFile: certificate, keyFile: key)
    }

    /// Makes certificates, and the authorities they need: for the domains that were named, and on a listener of this
    /// machine alone for any that a verified server has.
    private func minter(
        _ option: AuthorityFolderOption,
        _ clock: RunClock,
        limit: Int
    ) throws(Failure) -> CertificateMinter {
        let folder = try option.resolved()
        let outdated = OutdatedAuthorities.warnings(folder, at: clock.now().time)
        for warning in TrustedEverywhere.warnings(folder) + outdated { Console.complain("warning: \(warning)") }
        var policy = AuthorityProvider.Policy()
        policy.domains = domains.compactMap { try? CertificateName($0) }
        policy.mayMakeAny = !allowRemote
        policy.limit = limit
        let host = Console.hostName
        policy.suffixes = PublicSuffixes(ownName: host)
        policy.ownNames.insert(String(host.lowercased().prefix { $0 != "." }))
        return CertificateMinter(
            AuthorityProvider(folder, policy) { made in
                Console.tell(
                    "created a certificate authority for \(made.name) in \(folder.path); clients must trust it: "
                        + "run 'xmpptap ca export --domain \(made.name)\(folder.flag)'"
                )
            }
        )
    }
}
