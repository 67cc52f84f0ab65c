internal import ArgumentParser
internal import TapCore
internal import TapSecurity

/// The flags about TLS.
struct InterceptOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What to do about TLS: end it on both legs and read what it carries, or pass it through.",
            discussion: """
                intercept, the default, shows clients a certificate of an authority of this machine's own, which they have \
                to trust (see 'xmpptap ca'); the server's certificate is verified first. passthrough relays TLS untouched \
                and unread. With --allow-remote it has to be said which.
                """,
            valueName: "intercept|passthrough"
        ),
        transform: { text throws(Failure) in
            guard let mode = Mode(rawValue: text) else { throw .usage("write intercept or passthrough") }
            return mode
        }
    )
    var tls: Mode?

    @Option(
        help: ArgumentHelp(
            "How TLS begins with clients.",
            discussion: """
                auto, the default: as on the server's side. required: as with auto, and who goes on without is refused. \
                direct: from the first byte on. off: never, on loopback addresses alone; the server is asked for TLS from \
                here, and its offer is taken out of what clients see.
                """,
            valueName: "auto|required|direct|off"
        ),
        transform: InterceptOptions.leg
    )
    var clientTls = LegTLS.auto

    @Option(
        help: ArgumentHelp(
            "How TLS begins with servers.",
            discussion: """
                auto, the default: as clients begin it. required: as with auto, and a session without is refused. direct: \
                from the first byte on, and off: never; both whatever clients do: those that ask for TLS in their stream \
                are answered here, and have to.
                """,
            valueName: "auto|required|direct|off"
        ),
        transform: InterceptOptions.leg
    )
    var serverTls = LegTLS.auto

    @Option(
        help: ArgumentHelp(
            "What to do about logins that are bound to their TLS connection, which cannot work where TLS is ended.",
            discussion: """
                keep, the default: nothing; the log tells what will come of each login. strip, for tests alone: -PLUS \
                mechanisms, the types of channel binding and bound tokens are taken out of what servers offer. A client \
                that has channel binding notices and is refused by the server; so is one that checks what the server signs \
                (XEP-0474).
                """,
            valueName: "keep|strip"
        ),
        transform: { text throws(Failure) in
            guard let mode = Binding(rawValue: text) else { throw .usage("write keep or strip") }
            return mode
        }
    )
    var channelBinding = Binding.keep

    @Option(
        help: ArgumentHelp(
            "The lowest version of TLS that is spoken (default: 1.2); below 1.2 for old servers and clients alone.",
            valueName: "1.0|1.1|1.2|1.3"
        ),
        transform: { text throws(Failure) in
            guard let version = TLSVersion.allCases.first(where: { "\($0)" == "TLS \(text)" }) else {
                throw .usage("write 1.0, 1.1, 1.2 or 1.3")
            }
            return version
        }
    )
    var tlsMin: TLSVersion?

    @Option(
        help: ArgumentHelp(
            "Trust servers whose certificate these vouch for, or is among them, and no others (default: the system's roots).",
            valueName: "file"
        ),
        completion: .file()
    )
    var upstreamCa: String?

    @Flag(
        help: "Go on where the server's certificate is refused, and say so in each session's records. For tests alone."
    )
    var upstreamInsecure = false

    @Option(
        help: ArgumentHelp(
            "The certificate to show to servers that ask for one, with --upstream-key.",
            valueName: "file"
        ),
        completion: .file()
    )
    var upstreamCertificate: String?

    @Option(help: ArgumentHelp("Its private key.", valueName: "file"), completion: .file())
    var upstreamKey: String?

    @Option(
        help: ArgumentHelp(
            "Show clients this certificate, the server's own, instead of making one; with --key.",
            discussion: "Sessions whose server shows another one are refused.",
            valueName: "file"
        ),
        completion: .file()
    )
    var certificate: String?

    @Option(help: ArgumentHelp("Its private key.", valueName: "file"), completion: .file())
    var key: String?

    @Option(
        help: ArgumentHelp(
            "Log in for these accounts: the client to this program, and this program to the server.",
            discussion: """
                So that logins bound to TLS (SCRAM-...-PLUS) work although TLS ends here. A line is an address and the file \
                with its password, which nobody else may read: juliet@example.org juliet.password. Instead of the password \
                the file may hold what a server has stored of it, SCRAM-SHA-1$ITERATIONS:SALT$STOREDKEY:SERVERKEY \
                (RFC 5803), one mechanism a line. Logins of other accounts pass as they are, where they are not bound.
                """,
            valueName: "file"
        ),
        completion: .file()
    )
    var accounts: String?

    @Option(
        help: ArgumentHelp(
            "Append the secrets of every TLS connection, of both legs, for Wireshark; whoever reads it can read them.",
            valueName: "file"
        ),
        completion: .file()
    )
    var keylog: String?

    private static func leg(_ text: String) throws(Failure) -> LegTLS {
        guard let leg = LegTLS(rawValue: text) else { throw .usage("write auto, required, direct or off") }
        return leg
    }

    /// What is done about channel binding.
    enum Binding: String {
        /// Nothing.
        case keep
        /// It is taken out of what servers offer.
        case strip
    }

    /// What is done about TLS.
    enum Mode: String {
        /// It is ended on both legs, and what it carries is read.
        case intercept
        /// It is relayed as it comes, and cannot be read.
        case passthrough
    }
}
