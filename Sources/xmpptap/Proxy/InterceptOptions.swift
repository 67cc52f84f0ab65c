internal import ArgumentParser
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
            "Append the secrets of every TLS connection, of both legs, for Wireshark; whoever reads it can read them.",
            valueName: "file"
        ),
        completion: .file()
    )
    var keylog: String?

    /// What is done about TLS.
    enum Mode: String {
        /// It is ended on both legs, and what it carries is read.
        case intercept
        /// It is relayed as it comes, and cannot be read.
        case passthrough
    }
}
