package import NIOCore
package import TapCore
package import TapDiagnosis
package import TapRecord
package import TapSecurity
package import XMPPCore

/// Checks a server as a client would: finds it, starts TLS, examines its certificate and features, logs in, binds a
/// resource, enables stream management and pings it. It sends no presence and no messages.
package struct Probe: Sendable {
    /// The account to probe, and the options of the probe.
    package let plan: ProbePlan

    private let run: Run
    private let clock: RunClock
    private let dispatcher: RecordDispatcher
    private let cryptography: any Cryptography

    /// Creates a probe; its session is recorded like that of any client.
    ///
    /// - Parameters:
    ///   - run: The run that numbers records and sessions.
    ///   - clock: The clock of that run.
    ///   - dispatcher: The dispatcher of the records.
    ///   - cryptography: Digests and random bytes.
    package init(
        _ plan: ProbePlan,
        run: Run,
        clock: RunClock,
        dispatcher: RecordDispatcher,
        cryptography: any Cryptography
    ) {
        self.plan = plan
        self.run = run
        self.clock = clock
        self.dispatcher = dispatcher
        self.cryptography = cryptography
    }

    /// Runs the probe to its end. A failing server is a result in the report, not an error.
    ///
    /// - Parameters:
    ///   - group: The event loops; the probe uses one of them.
    ///   - onStep: Called on that event loop with each step, as soon as it is complete.
    /// - Throws: ``TLSContextError`` if the trusted certificates cannot be read, ``EndpointError`` and ``JIDError`` if
    ///   the account's domain is invalid, ``ProbeError`` if the name server's address cannot be resolved, and errors of
    ///   the cryptographic library.
    package func report(
        on group: any EventLoopGroup,
        onStep: @escaping @Sendable (ProbeReport.Step) -> Void = { _ in }
    ) async throws -> ProbeReport {
        var options = plan.tls
        // The report judges the certificate. The handshake must succeed even if it is not trusted, so that the rest can
        // be examined.
        options.isInsecure = true
        let tls = try TLSContext(options)
        let reference = try ServerReference(domain: plan.account.domain)
        let domain = try Upstream.Domain(plan.account.domain)
        let nonce = try SCRAMMechanism.makeNonce(cryptography)
        let resolver = try plan.resolver.map { endpoint throws(ProbeError) in
            guard let address = endpoint.resolved else {
                throw ProbeError(description: "cannot resolve the DNS server \(endpoint)")
            }
            return address
        }
        if case .hostMeta(nil)? = plan.web { _ = try HTTPSAddress(for: plan.account.domain) }
        let loop = group.next()
        return try await loop.flatSubmit {
            let driver = ProbeDriver(
                plan,
                ProbeDriver.Tools(
                    tls: tls,
                    reference: reference,
                    domain: domain,
                    names: NameResolver(ServiceResolver(server: resolver)),
                    nonce: nonce,
                    cryptography: cryptography,
                    onStep: onStep
                ),
                ProbeWatch(
                    run: run,
                    clock: clock,
                    dispatcher: dispatcher,
                    redaction: plan.redaction,
                    advice: plan.advice,
                    upstream: plan.upstream
                ),
                on: loop
            )
            return driver.begin()
        }.get()
    }
}

/// The reason why a probe cannot start.
package struct ProbeError: Error, Sendable, CustomStringConvertible {
    /// One line for users.
    package let description: String
}

/// The account to probe, and the options of the probe.
package struct ProbePlan: Sendable {
    /// The account to check, as a bare JID; the probe logs in if there is a ``password``.
    package var account: JID
    /// The password in clear text; if nil, the probe only examines what the server offers before the login.
    package var password: String?
    /// The server to connect to, instead of those in the domain's SRV records.
    package var via: Endpoint?
    /// The WebSocket to connect to, instead of a TCP port.
    package var web: Web?
    /// The name server; nil uses those of the system.
    package var resolver: Endpoint?
    /// The version of the PROXY header to send first; nil sends none.
    package var proxyHeader: ProxyProtocol.Version?
    /// Whether to check the domain's other service too (STARTTLS or direct TLS), if there is one; default true.
    package var checksAlternative = true
    /// Whether to use TLS if the server offers it; default true.
    package var usesTLS = true
    /// Whether to use direct TLS only. By default, the domain's SRV records decide; with ``via``, STARTTLS is used.
    package var isDirect = false
    /// Whether to use channel binding if both sides support it; default true.
    package var bindsChannel = true
    /// TLS options. A server with an untrusted certificate is examined, but does not get the password.
    package var tls = ServerLegTLS()
    /// Time limit of each step; default 10 seconds.
    package var timeout = TimeAmount.seconds(10)
    /// Redaction of the logs.
    package var redaction = RedactionPolicy.secrets
    /// The advice shown if the login fails; nil omits it.
    package var advice: Advice?

    /// How the WebSocket is found.
    package enum Web: Sendable {
        case url(WebServer)
        /// By host-meta (XEP-0156) at this address; nil means the domain.
        case hostMeta(HTTPSAddress?)
    }

    /// The server for records.
    fileprivate var upstream: String {
        if case .url(let server)? = web { return server.description }
        return via?.description ?? account.domain
    }

    /// Creates a plan for an account's server, without a password and with default options.
    package init(account: JID) { self.account = account.bare }
}
