package import NIOCore
package import TapCore
package import TapDiagnosis
package import TapRecord
package import TapSecurity
package import XMPPCore

/// Asks a server itself, as a client would: finds it, begins TLS, looks at its certificate and at what it offers, logs in
/// and binds, enables stream management and pings. It sends no presence and no messages.
package struct Probe: Sendable {
    /// What to probe, and how.
    package let plan: ProbePlan

    private let run: Run
    private let clock: RunClock
    private let dispatcher: RecordDispatcher
    private let cryptography: any Cryptography

    /// Creates a probe; its session is recorded like any other.
    ///
    /// - Parameters:
    ///   - run: The run that numbers records and sessions.
    ///   - clock: The clock of that run.
    ///   - recorder: The dispatcher of the records.
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

    /// Runs the probe to its end. A failing server is a result of the report, not an error.
    ///
    /// - Parameters:
    ///   - group: The event loops; the probe uses one of them.
    ///   - tell: Called with each step as soon as it is complete, on that loop.
    /// - Throws: ``TLSContextError`` if the trusted certificates cannot be read, ``EndpointError`` and ``JIDError`` if
    ///   the account's domain is invalid, ``ProbeError`` if the address of the given name server is unknown, and errors
    ///   of the cryptographic library.
    package func report(
        on group: any EventLoopGroup,
        tell: @escaping @Sendable (ProbeReport.Step) -> Void = { _ in }
    ) async throws -> ProbeReport {
        var options = plan.tls
        // Whether the certificate is refused is judged here: what else there is to see is seen all the same.
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
                    tell: tell
                ),
                ProbeWatch(
                    run: run,
                    clock: clock,
                    dispatcher: dispatcher,
                    redaction: plan.redaction,
                    advice: plan.advice,
                    upstream: plan.via?.description ?? plan.account.domain
                ),
                on: loop
            )
            return driver.begin()
        }.get()
    }
}

/// Why there is nothing to probe.
package struct ProbeError: Error, Sendable, CustomStringConvertible {
    /// One line for people.
    package let description: String
}

/// What to probe, and how.
package struct ProbePlan: Sendable {
    /// The account to check, a bare JID; the probe logs in if there is a ``password``.
    package var account: JID
    /// Its password in clear; nil looks at what the server offers, and goes no further.
    package var password: String?
    /// Connected to instead of the servers that the domain's records name.
    package var via: Endpoint?
    /// The name server; nil uses the system's.
    package var resolver: Endpoint?
    /// The header that the server expects first; nil sends none.
    package var proxyHeader: ProxyProtocol.Version?
    /// Whether the domain's other service is looked at as well, if it has one; default yes.
    package var checksAlternative = true
    /// Whether TLS is used if the server offers it; default yes.
    package var usesTLS = true
    /// TLS from the first byte on, and no STARTTLS. Default: according to the domain's SRV records; STARTTLS with
    /// ``via``.
    package var isDirect = false
    /// Whether to use channel binding if both sides support it; default yes.
    package var bindsChannel = true
    /// How TLS is spoken. A certificate that is refused never gets the password, but is looked at all the same.
    package var tls = ServerLegTLS()
    /// How long each step may take; default 10 seconds.
    package var timeout = TimeAmount.seconds(10)
    /// Redaction of the logs.
    package var redaction = RedactionPolicy.secrets
    /// The advice shown if the login fails; nil omits it.
    package var advice: Advice?

    /// A probe of an account's server without a password, with the defaults of each.
    package init(account: JID) { self.account = account.bare }
}
