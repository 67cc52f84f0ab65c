internal import ArgumentParser
internal import TapSecurity

struct AuthorityCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Manage the certificate authorities that clients must trust.",
        discussion: """
            To decrypt a client's TLS, xmpptap presents a certificate that it issues itself. The client must trust the \
            certificate authority (CA) that signs it. Each CA is created on this machine. It can sign certificates for \
            one domain and its subdomains only. Anyone with the CA's key can read the traffic of clients that trust it: \
            keep the key on this machine, and remove the CA from the client when you are done.

            Examples: read the session of a client of example.org, and remove the CA afterwards.

              xmpptap ca create --domain example.org
              xmpptap ca export --domain example.org > xmpptap-example.org.pem
              xmpptap ca remove --domain example.org

            The second command also explains how to trust the file in slixmpp, go-sendxmpp, profanity, Gajim, \
            Conversations, iOS and Java.
            """,
        subcommands: [Create.self, Show.self, Export.self, Remove.self]
    )

    struct Create: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "create",
            abstract: "Create the CA for a domain, if there is none yet.",
            discussion: """
                The CA is valid for one year. Its key stays in the folder and only you can read it. A public suffix, \
                under which anyone can register domains, requires --allow-public-suffix.

                Examples:

                  xmpptap ca create --domain example.org
                  xmpptap ca create --domain 192.168.1.1 --ca-dir ./ca
                  xmpptap ca create --domain test --allow-public-suffix
                """
        )

        @Option(
            help: ArgumentHelp("Domain part of the accounts' JIDs.", valueName: "domain"),
            transform: { text throws(AuthorityError) in try CertificateName(text) }
        )
        var domain: CertificateName

        @Flag(help: "Allow a public suffix, such as com or co.uk.")
        var allowPublicSuffix = false

        @OptionGroup var folder: AuthorityFolderOption
        @OptionGroup var config: ConfigOption

        func run() throws {
            try AuthorityManager(folder: folder.resolved()).create(domain, allowsPublicSuffix: allowPublicSuffix)
        }
    }

    struct Show: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show the CAs: domain, validity, fingerprint.",
            discussion: """
                The exit code is 1 if a CA cannot be used: it has expired, it cannot be read, or other users can read \
                its key.

                Examples:

                  xmpptap ca show
                  xmpptap ca show --domain example.org
                  xmpptap ca show --json | jq -r .fingerprint
                """
        )

        @Option(
            help: ArgumentHelp("Show only the CA for this domain.", valueName: "domain"),
            transform: { text throws(AuthorityError) in try CertificateName(text) }
        )
        var domain: CertificateName?

        @Flag(help: "Print JSON, one object per line.")
        var json = false

        @OptionGroup var colour: ColourOption
        @OptionGroup var folder: AuthorityFolderOption
        @OptionGroup var config: ConfigOption

        func run() throws {
            try AuthorityManager(folder: folder.resolved()).show(domain, isJSON: json, .ofOutput(colour.color))
        }
    }

    struct Export: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Print the CA certificate, and how to make a client trust it.",
            discussion: """
                The certificate goes to standard output, the instructions to standard error. It contains no secret.

                Examples:

                  xmpptap ca export > xmpptap-example.org.pem
                  xmpptap ca export --domain example.org --der > xmpptap-example.org.crt
                  xmpptap ca export --ca-dir ./ca > tap.pem
                """
        )

        /// The encoding of the certificate.
        enum Form: String, EnumerableFlag {
            /// PEM, which most programs expect.
            case pem
            case der

            static func help(for value: Form) -> ArgumentHelp? {
                switch value {
                case .pem: "Write PEM, which most programs expect (default)."
                case .der: "Write DER, which some phones expect."
                }
            }
        }

        @Option(
            help: ArgumentHelp("Domain of the CA; required if there are several.", valueName: "domain"),
            transform: { text throws(AuthorityError) in try CertificateName(text) }
        )
        var domain: CertificateName?

        @Flag(exclusivity: .exclusive)
        var form = Form.pem

        @OptionGroup var folder: AuthorityFolderOption
        @OptionGroup var config: ConfigOption

        func run() throws {
            try AuthorityManager(folder: folder.resolved()).export(domain, isDER: form == .der)
        }
    }

    struct Remove: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove a CA and its key.",
            discussion: """
                Clients that trust the CA keep trusting it: remove it from them too.

                Examples:

                  xmpptap ca remove
                  xmpptap ca remove --domain example.org
                  xmpptap ca remove --domain example.org --ca-dir ./ca
                """
        )

        @Option(
            help: ArgumentHelp("Domain of the CA; required if there are several.", valueName: "domain"),
            transform: { text throws(AuthorityError) in try CertificateName(text) }
        )
        var domain: CertificateName?

        @OptionGroup var folder: AuthorityFolderOption
        @OptionGroup var config: ConfigOption

        func run() throws {
            try AuthorityManager(folder: folder.resolved()).remove(domain)
        }
    }
}
