internal import ArgumentParser
internal import TapCore
internal import TapSecurity

/// The flags for TLS.
struct InterceptOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Decrypt TLS or pass it through (default: intercept).",
            discussion: """
                intercept: terminate TLS on both legs. Clients see a certificate signed by a CA of this machine, which \
                they must trust (see 'xmpptap ca'). The server's certificate is verified first. passthrough: relay TLS \
                without decrypting it. There is no default with --allow-remote.
                """,
            valueName: "intercept|passthrough"
        ),
        completion: .choices(Mode.self),
        transform: Mode.typed
    )
    var tls: Mode?

    @Option(
        help: ArgumentHelp(
            "TLS on the client leg (default: auto).",
            discussion: """
                auto: as the server leg, direct TLS or STARTTLS. required: as auto, and clients that continue without TLS \
                are refused. direct: direct TLS only. off: no TLS, on loopback addresses only; xmpptap negotiates \
                STARTTLS with the server itself and removes the feature from what clients see.
                """,
            valueName: "auto|required|direct|off"
        ),
        completion: .choices(LegTLS.self),
        transform: LegTLS.typed
    )
    var clientTls = LegTLS.auto

    @Option(
        help: ArgumentHelp(
            "TLS on the server leg (default: auto).",
            discussion: """
                auto: as the client leg; with --pin or --upstream-ca as required. required: as auto, and sessions without TLS are refused. direct: direct TLS, \
                whatever the client does. off: no TLS, whatever the client does. With direct and off, xmpptap offers \
                STARTTLS to clients itself, and they must use it.
                """,
            valueName: "auto|required|direct|off"
        ),
        completion: .choices(LegTLS.self),
        transform: LegTLS.typed
    )
    var serverTls = LegTLS.auto

    @Option(
        help: ArgumentHelp(
            "Relay or remove channel-binding offers (default: keep).",
            discussion: """
                Logins with channel binding fail when TLS is intercepted. keep: change nothing; the log predicts the \
                result of each login. strip: remove -PLUS mechanisms, channel-binding types and bound tokens from the \
                server's features; for tests only. Servers refuse a client that supports channel binding and sees no \
                offer; clients that verify the signed list of mechanisms (XEP-0474) abort.
                """,
            valueName: "keep|strip"
        ),
        completion: .choices(Binding.self),
        transform: Binding.typed
    )
    var channelBinding = Binding.keep

    @Option(
        help: ArgumentHelp(
            "Minimum TLS version, below 1.2 only for old software (default: 1.2).",
            valueName: "1.0|1.1|1.2|1.3"
        ),
        completion: .list(["1.0", "1.1", "1.2", "1.3"]),
        transform: { text throws(Failure) in
            guard let version = TLSVersion.allCases.first(where: { "\($0)" == "TLS \(text)" }) else {
                throw .usage("write 1.0, 1.1, 1.2 or 1.3")
            }
            return version
        }
    )
    var tlsMin: TLSVersion?

    @OptionGroup var trust: ServerTrustOptions

    @Flag(help: "Accept any server certificate; for tests only.")
    var upstreamInsecure = false

    @Option(file: "Client certificate for the server leg; with --upstream-key.", completion: .certificates)
    var upstreamCertificate: String?

    @Option(file: "Private key of --upstream-certificate.", completion: .certificates)
    var upstreamKey: String?

    @Flag(
        name: .customLong("s2s-launder"),
        help: ArgumentHelp(
            "Vouch for servers whose certificate is not valid; for tests only.",
            discussion: """
                With --s2s: the receiving server is shown a certificate for the domain that the initiating server names, \
                even if that server has shown none, or an expired or foreign one.
                """
        )
    )
    var s2sLaunder = false

    @Option(
        file: "Present the server's own certificate to clients; with --key.",
        discussion: "Sessions are refused if the server presents a different certificate.",
        completion: .certificates
    )
    var certificate: String?

    @Option(file: "Private key of --certificate.", completion: .certificates)
    var key: String?

    @Option(
        file: "Accounts whose SASL logins xmpptap performs itself on both legs.",
        discussion: """
            This makes logins with channel binding (SCRAM-...-PLUS) work. Each line has an address and the name of its \
            password file, which only you may read: juliet@example.org juliet.password. Instead of the password the \
            file can contain stored keys, SCRAM-SHA-1$ITERATIONS:SALT$STOREDKEY:SERVERKEY (RFC 5803), one mechanism \
            per line. Logins of other accounts are relayed unchanged.
            """
    )
    var accounts: String?

    @Option(file: "Append the TLS secrets of both legs, for Wireshark (SSLKEYLOGFILE).")
    var keylog: String?

    /// The flag by which the server leg must have TLS; nil if there is none.
    var flagRequiringServerTLS: String? {
        switch serverTls {
        case .required, .direct: "--server-tls \(serverTls.rawValue)"
        case .auto, .off: trust.anchors != nil ? "--upstream-ca" : trust.pin.isEmpty ? nil : "--pin"
        }
    }

    /// The treatment of the server's channel-binding offers.
    enum Binding: String, CaseIterable {
        case keep
        /// Remove them from the server's features.
        case strip
    }

    /// The treatment of TLS.
    enum Mode: String, CaseIterable {
        /// Terminate it on both legs, and decrypt it.
        case intercept
        /// Relay it without decryption.
        case passthrough
    }
}
