internal import TapCore
internal import TapNetwork
internal import TapSecurity

/// The plan for TLS interception, resolved from the flags.
struct InterceptPlan {
    /// The flags; nil if TLS is passed through.
    private let options: InterceptOptions?
    /// Domains for which a CA may be created, even for clients on other machines.
    private let domains: [String]
    private let allowRemote: Bool
    /// Whether the built-in server serves all clients.
    private let isBuiltInOnly: Bool
    /// Whether the built-in server needs TLS: it serves clients and TLS is intercepted.
    let securesServer: Bool
    /// Whether servers connect, and their certificates are verified.
    private let isForServers: Bool

    /// Resolves the flags.
    ///
    /// - Parameter plan: The listeners and their servers.
    init(
        _ options: InterceptOptions,
        _ plan: ProxyPlan,
        allowRemote: Bool,
        isForServers: Bool = false
    ) throws(Failure) {
        if allowRemote, options.tls == nil {
            throw .usage(
                "--allow-remote needs a choice: --tls intercept (sessions of other machines' clients are decrypted with "
                    + "a certificate of this machine) or --tls passthrough"
            )
        }
        for (flag, value, other, otherValue) in [
            ("--certificate", options.certificate, "--key", options.key),
            ("--upstream-certificate", options.upstreamCertificate, "--upstream-key", options.upstreamKey),
        ] where (value == nil) != (otherValue == nil) {
            throw .usage(
                value == nil ? "\(other) needs a certificate; add \(flag)" : "\(flag) needs a private key; add \(other)"
            )
        }
        try options.trust.check()
        if options.upstreamInsecure, let flag = Self.first(of: ["--upstream-ca", "--pin"], in: options) {
            throw .usage("--upstream-insecure disables the verification that \(flag) is for; leave one out")
        }
        if options.accounts != nil, options.channelBinding == .strip {
            throw .usage(
                "--channel-binding strip removes channel binding, --accounts makes it work; leave one out"
            )
        }
        if options.s2sLaunder, !isForServers { throw .usage("--s2s-launder needs --s2s; add it") }
        if isForServers, options.serverTls == .off,
            plan.listeners.contains(where: { ($0.upstream ?? plan.upstream)?.address?.isLoopback != true })
        {
            throw .usage(
                "--server-tls off: without TLS the receiving server is not verified, which --s2s allows on this machine only; "
                    + "leave one out"
            )
        }
        if isForServers, options.upstreamInsecure {
            throw .usage(
                "--upstream-insecure is for clients; with --s2s, a server that cannot be verified is relayed with an "
                    + "unverified certificate, or with --s2s-launder with a valid one"
            )
        }
        if isForServers, let flag = Self.first(of: ["--accounts", "--channel-binding"], in: options) {
            throw .usage("\(flag) is about logins of clients: leave out --s2s or \(flag)")
        }
        let upstreams = plan.listeners.compactMap { $0.upstream ?? plan.upstream }
        let isPassed = options.tls == .passthrough
        let inVain = ["--tls-min"] + Self.aboutServers + ["--certificate", "--keylog", "--client-tls", "--server-tls"]
        if isPassed,
            let flag = Self.first(of: inVain + ["--channel-binding", "--accounts", "--s2s-launder"], in: options)
        {
            throw .usage("\(flag) has no effect with --tls passthrough; leave it out")
        }
        try Self.checkLegs(options, allowRemote: allowRemote)
        self.options = isPassed ? nil : options
        securesServer = !isPassed && plan.needsServer
        let aboutServers = Self.aboutServers + ["--certificate", "--accounts"]
        if securesServer, upstreams.isEmpty, let flag = Self.first(of: aboutServers, in: options) {
            throw .usage("\(flag) has no effect on the built-in server; add --upstream")
        }
        if plan.needsServer, options.serverTls == .direct {
            throw .usage("--server-tls direct: the built-in server has no port for direct TLS; add --upstream")
        }
        self.allowRemote = allowRemote
        self.isForServers = isForServers
        isBuiltInOnly = plan.needsServer && upstreams.isEmpty
        domains = upstreams.flatMap { upstream -> [String] in
            if case .domains(let domains) = upstream { domains.map(\.name) } else { [] }
        }
    }

    /// Returns the first of these flags that was typed.
    private static func first(of flags: [String], in options: InterceptOptions) -> String? {
        flags.first { flag in
            switch flag {
            case "--tls-min": options.tlsMin != nil
            case "--upstream-ca": options.trust.anchors != nil
            case "--pin": !options.trust.pin.isEmpty
            case "--upstream-insecure": options.upstreamInsecure
            case "--upstream-certificate": options.upstreamCertificate != nil
            case "--certificate": options.certificate != nil
            case "--accounts": options.accounts != nil
            case "--keylog": options.keylog != nil
            case "--client-tls": options.clientTls != .auto
            case "--server-tls": options.serverTls != .auto
            case "--s2s-launder": options.s2sLaunder
            case "--channel-binding": options.channelBinding != .keep
            default: false
            }
        }
    }

    /// Returns the flag for the server's certificate that was typed, if any; sessions without TLS are then refused.
    private static func trustFlag(_ options: InterceptOptions) -> String? {
        first(of: ["--pin", "--upstream-ca"], in: options)
    }

    private static let aboutServers = ["--upstream-ca", "--pin", "--upstream-insecure", "--upstream-certificate"]

    /// Refuses contradictory flags for the two legs.
    private static func checkLegs(_ options: InterceptOptions, allowRemote: Bool) throws(Failure) {
        let isClientClear = options.clientTls == .off
        let isServerClear = options.serverTls == .off
        if isClientClear, allowRemote {
            throw .usage(
                "--client-tls off is only for clients on this machine: with --allow-remote, passwords would be sent in "
                    + "clear text; leave one out"
            )
        }
        if isClientClear, options.certificate != nil {
            throw .usage("--certificate has no effect with --client-tls off; leave it out")
        }
        if isServerClear, let flag = first(of: aboutServers, in: options) {
            throw .usage("\(flag) has no effect with --server-tls off; leave it out")
        }
        if isClientClear, isServerClear, let flag = first(of: ["--tls-min", "--keylog"], in: options) {
            throw .usage("\(flag) has no effect with --client-tls off and --server-tls off; leave it out")
        }
    }

    /// Applies the policies for TLS on both legs and for channel binding.
    func apply(to session: inout SessionOptions) {
        guard let options else { return }
        session.clientTLS = options.clientTls
        session.serverTLS = options.serverTls
        // `--pin` and `--upstream-ca` require TLS: without it, the server would not be verified.
        if options.serverTls == .auto, Self.trustFlag(options) != nil { session.serverTLS = .required }
        session.stripsBinding = options.channelBinding == .strip
    }

    /// Warnings for the user, one line each.
    func warnings(_ plan: ProxyPlan) -> [String] {
        guard let options else { return [] }
        var warnings: [String] = []
        if options.s2sLaunder {
            warnings.append(
                "--s2s-launder: any server that can connect can act as any domain towards the receiving server"
            )
        }
        if options.channelBinding == .strip {
            warnings.append(
                "--channel-binding strip: clients that support channel binding send the gs2 flag y, which the server must "
                    + "refuse (RFC 5802 §6; Prosody 0.12 does, ejabberd 23.01 does not); clients that verify the signed "
                    + "list of mechanisms abort (XEP-0474)"
            )
        }
        let upstreams = plan.listeners.compactMap { $0.upstream ?? plan.upstream }
        if options.serverTls == .off, let far = upstreams.first(where: { $0.address?.isLoopback != true }) {
            warnings.append(
                "--server-tls off: passwords and stanzas are sent to \(far) in clear text; anyone on the path can read them"
            )
        }
        return warnings
    }

    /// Opens the file given with `--keylog`; nil if none is given.
    func keyLog() throws(Failure) -> KeyLogFile? {
        try options?.keylog.map { path throws(Failure) in try KeyLogFile(path) }
    }

    /// Returns the TLS options for connections to servers.
    private func serverLeg(_ options: InterceptOptions) throws(Failure) -> ServerLegTLS {
        var server = try options.trust.verification()
        server.minimumVersion = options.tlsMin ?? .tls12
        server.isInsecure = options.upstreamInsecure
        do {
            server.identity = try Self.identity(options.upstreamCertificate, options.upstreamKey)
        } catch {
            throw .file("\(error)")
        }
        return server
    }

    /// Returns the check of the server that clients of `target` are connected to; nil if TLS is not intercepted.
    ///
    /// - Parameter proxy: The flags for listeners and servers.
    func check(
        _ target: ProxyTarget,
        _ proxy: ProxyOptions,
        _ proxyProtocol: ProxyProtocol
    ) throws(Failure) -> ServerCheck? {
        guard let options else { return nil }
        return ServerCheck(
            target: target,
            server: proxy.upstream,
            resolver: proxy.upstream == nil ? proxy.resolver : nil,
            proxyHeader: proxyProtocol.sends,
            way: options.serverTls == .off
                ? .clear : options.serverTls == .direct || options.clientTls == .direct ? .direct : .any,
            requiring: options.serverTls == .required
                ? "--server-tls required"
                : [.required, .direct].contains(options.clientTls)
                    ? "--client-tls \(options.clientTls.rawValue)" : Self.trustFlag(options),
            tls: try serverLeg(options)
        )
    }

    /// Returns the settings to make in the client. Creates the CA that the client must trust, if it does not exist.
    ///
    /// - Parameters:
    ///   - outcome: The result of the server's check.
    ///   - limit: The limit of authorities, as for ``interception(authorities:ephemeral:pin:limit:keyLog:clock:)``.
    func clientSetup(
        _ target: ProxyTarget,
        _ outcome: ServerCheck.Outcome,
        _ authorities: AuthorityFolderOption,
        limit: Int,
        clock: RunClock
    ) throws(Failure) -> ClientSetup {
        // If the server does not offer TLS, clients cannot use it either, unless the user disabled TLS on the server
        // leg only.
        guard let options, options.clientTls != .off, outcome.hasTLS || options.serverTls == .off else {
            return ClientSetup(target: target, authority: nil, security: self.options == nil ? nil : "without TLS")
        }
        let security = options.clientTls == .direct ? "direct TLS" : nil
        guard options.certificate == nil else {
            return ClientSetup(target: target, authority: nil, security: security)
        }
        let folder = try authorities.resolved()
        do throws(AuthorityError) {
            let name = try CertificateName(target.domain.name)
            let now = clock.now().time
            let provider = provider(folder, limit: limit) { _ in }
            let found = try provider.authority(covering: name, at: now)
            if let found { try found.checkValidity(at: now) }
            let made = found == nil ? try provider.makeAuthority(for: name, below: nil, at: now).authority : nil
            let authority = found?.name ?? made?.name ?? name
            let ready = ReadyAuthority(
                name: authority,
                certificate: folder.certificatePath(of: authority),
                flag: folder.flag,
                isNew: found == nil
            )
            return ClientSetup(target: target, authority: ready, security: security)
        } catch {
            throw Failure(error, in: folder)
        }
    }

    /// Loads the files that the flags name, and returns the interception; nil if TLS is passed through.
    ///
    /// - Parameters:
    ///   - authorities: The folder of the CAs.
    ///   - ephemeral: The CA of the built-in server, which also signs for the proxy in front of it.
    ///   - pin: The certificate that the user accepted.
    ///   - limit: Number of CAs at which no more are created on demand.
    ///   - keyLog: Receives the secrets of all connections.
    ///   - clock: The clock of the run.
    /// - Returns: The interception for the user's servers, and the one for the built-in server.
    func interception(
        authorities: AuthorityFolderOption,
        ephemeral: EphemeralAuthority?,
        pin: CertificatePin? = nil,
        limit: Int,
        keyLog: KeyLogFile? = nil,
        clock: RunClock
    ) throws(Failure) -> (own: Interception?, ephemeral: Interception?) {
        guard let options else { return (nil, nil) }
        if options.upstreamInsecure {
            Console.printDiagnostic(
                "warning: --upstream-insecure: server certificates are not verified; anyone on the path to the server can "
                    + "read and change the sessions, and clients cannot detect it"
            )
        }
        var server = try serverLeg(options)
        if let pin { server.pins.append(pin) }
        var client = ClientLegTLS()
        if isForServers {
            client.clientTrust = server.trust
            server.choosesIdentity = true
            // The initiating server decides about a receiving server that could not be verified: see PeerIdentities.
            server.isInsecure = true
        }
        client.minimumVersion = server.minimumVersion
        if let keyLog {
            server.keyLog = { keyLog.append($0) }
            client.keyLog = server.keyLog
        }
        do {
            var plain = ServerLegTLS()
            plain.minimumVersion = server.minimumVersion
            plain.keyLog = server.keyLog
            let housed = try ephemeral?.interception(plain, client)
            guard !isBuiltInOnly else { return (housed, nil) }
            let own = try Self.identity(options.certificate, options.key)
            var peers: PeerIdentities?
            if isForServers {
                let source: PeerIdentities.Source =
                    try server.identity.map { .own($0) }
                    ?? .minted(minter(authorities, clock, limit: limit, areVerified: !options.s2sLaunder))
                peers = PeerIdentities(source, ignoresFaults: options.s2sLaunder)
                // It depends on the initiating server whether this is shown.
                server.identity = nil
            }
            return (
                Interception(
                    serverLeg: try TLSContext(server),
                    clientLeg: try TLSContext(client),
                    identities: try own.map { .own($0) } ?? .minted(minter(authorities, clock, limit: limit)),
                    peers: peers
                ), housed
            )
        } catch let failure as Failure {
            throw failure
        } catch {
            throw .file("\(error)")
        }
    }

    /// Reads the accounts given with `--accounts`; nil if there are none.
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

    /// Creates the issuer of certificates, which also creates CAs on demand; `areVerified` if the names are those of
    /// verified certificates.
    private func minter(
        _ option: AuthorityFolderOption,
        _ clock: RunClock,
        limit: Int,
        areVerified: Bool = false
    ) throws(Failure) -> CertificateMinter {
        let folder = try option.resolved()
        for warning in AuthorityWarnings.all(folder, at: clock.now().time) {
            Console.printDiagnostic("warning: \(warning)")
        }
        return CertificateMinter(
            provider(folder, limit: limit, areVerified: areVerified) { made in
                Console.printStandardError(
                    "created a certificate authority for \(made.name) in \(folder.path); clients must trust it: "
                        + "run 'xmpptap ca export --domain \(made.name)\(folder.flag)'"
                )
            }
        )
    }

    /// Returns the provider of CAs. It creates CAs for the configured domains and, without --allow-remote, also for the
    /// domain of any verified server.
    private func provider(
        _ folder: AuthorityFolder,
        limit: Int,
        areVerified: Bool = false,
        whenMade: @escaping @Sendable (CertificateAuthority) -> Void
    ) -> AuthorityProvider {
        var policy = AuthorityProvider.Policy()
        policy.domains = domains.compactMap { try? CertificateName($0) }
        policy.mayMakeAny = !allowRemote || areVerified
        policy.limit = limit
        let host = Console.hostName
        policy.suffixes = PublicSuffixes(ownName: host)
        policy.ownNames.insert(String(host.lowercased().prefix { $0 != "." }))
        return AuthorityProvider(folder, policy, whenMade: whenMade)
    }
}
