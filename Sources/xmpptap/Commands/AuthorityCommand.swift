internal import ArgumentParser
internal import TapSecurity

/// `xmpptap ca`.
struct AuthorityCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Make, show, export and remove the authorities that clients have to trust.",
        discussion: """
            To read what a client sends by TLS, the tap shows it a certificate of its own, and the client has to trust \
            the authority that signs it. Each authority is made on this machine and may vouch for one domain and what \
            is below it, for nothing else. Whoever has its key can read the traffic of that domain's clients that trust \
            it: keep it here, and remove the trust when you are done.

            Example: a client of example.org shall be read.

              xmpptap ca create --domain example.org
              xmpptap ca export --domain example.org > xmpptap-example.org.pem

            The second command also says how to trust the file in slixmpp, go-sendxmpp, profanity, Gajim, \
            Conversations, on iOS and in Java.
            """,
        subcommands: [Create.self, Show.self, Export.self, Remove.self]
    )

    /// `xmpptap ca create`.
    struct Create: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "create",
            abstract: "Make the authority for a domain, unless there is one.",
            discussion: """
                It is valid for a year. Its key stays in the folder, readable by you alone. For a public suffix, under \
                which strangers register domains, it is made only with --allow-public-suffix.

                Examples:

                  xmpptap ca create --domain example.org
                  xmpptap ca create --domain 192.168.1.1 --ca-dir ./ca
                """
        )

        @Option(
            help: ArgumentHelp("What it may vouch for: the domain part of the JIDs.", valueName: "domain"),
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

    /// `xmpptap ca show`.
    struct Show: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show the authorities: for what, until when, their fingerprints.",
            discussion: """
                The exit code is 1 if one of them cannot be used: it has expired, cannot be read, or others can read \
                its key.

                Examples:

                  xmpptap ca show
                  xmpptap ca show --json | jq -r .fingerprint
                """
        )

        @Option(
            help: ArgumentHelp("Only the one for this domain.", valueName: "domain"),
            transform: { text throws(AuthorityError) in try CertificateName(text) }
        )
        var domain: CertificateName?

        @Flag(help: "Print JSON, one object a line.")
        var json = false

        @OptionGroup var folder: AuthorityFolderOption
        @OptionGroup var config: ConfigOption

        func run() throws {
            try AuthorityManager(folder: folder.resolved()).show(domain, isJSON: json)
        }
    }

    /// `xmpptap ca export`.
    struct Export: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Print the certificate to trust, and how to trust it.",
            discussion: """
                The certificate goes to standard output, the words to standard error. It holds no secret.

                Examples:

                  xmpptap ca export > xmpptap-example.org.pem
                  xmpptap ca export --domain example.org --der > xmpptap-example.org.crt
                """
        )

        /// How a certificate is written.
        enum Form: String, EnumerableFlag {
            /// Text, as most programs want it.
            case pem
            /// Bytes.
            case der

            static func help(for value: Form) -> ArgumentHelp? {
                switch value {
                case .pem: "As text, which most programs want."
                case .der: "As bytes, which some phones want."
                }
            }
        }

        @Option(
            help: ArgumentHelp("Of which domain, if there are several.", valueName: "domain"),
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

    /// `xmpptap ca remove`.
    struct Remove: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove an authority and its key.",
            discussion: """
                Clients that trust it are not told: remove it there too.

                Example:

                  xmpptap ca remove --domain example.org
                """
        )

        @Option(
            help: ArgumentHelp("Of which domain, if there are several.", valueName: "domain"),
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
