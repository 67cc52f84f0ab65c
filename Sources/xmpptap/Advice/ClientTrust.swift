internal import TapDiagnosis

/// How one kind of client is made to trust a certificate authority.
struct ClientTrust: Sendable {
    /// The client in a sentence.
    let name: String
    /// The client in a list of all.
    let title: String
    /// The names that the client gives itself, in lower case: parts of the node of its capabilities, or of its name.
    var signs: [String] = []
    /// The TLS libraries that it is known to use.
    var libraries: Set<ClientSoftware.Library> = []
    /// Whether it takes a certificate in DER.
    var takesDER = false

    /// Whether it was found by a name, which came from an earlier session.
    private(set) var isByName = false

    private let instructions: @Sendable (_ file: String, _ authority: String) -> [String]

    /// What to do, to be copied.
    ///
    /// - Parameters:
    ///   - file: The authority's certificate, as a shell takes it.
    ///   - authority: The name that the authority may sign for.
    func steps(file: String, authority: String) -> [String] { instructions(file, authority) }

    /// The kind of client that this is; nil if that is not known.
    ///
    /// A name counts if the client's TLS library does not contradict it: several clients can have one address.
    static func matching(_ software: ClientSoftware) -> ClientTrust? {
        for name in software.names {
            let name = name.lowercased()
            let match = all.first { client in
                client.signs.contains { name.contains($0) } && client.mayUse(software.library)
            }
            if var match {
                match.isByName = true
                return match
            }
        }
        guard let library = software.library else { return nil }
        return byLibrary.first { $0.libraries.contains(library) }
    }

    private func mayUse(_ library: ClientSoftware.Library?) -> Bool {
        guard let library, !libraries.isEmpty else { return true }
        return libraries.contains(library)
    }

    /// All kinds of clients, in the order in which they are listed.
    static let all: [ClientTrust] = [
        ClientTrust(
            name: "slixmpp",
            title: "slixmpp: before connect()",
            signs: ["slixmpp"],
            libraries: [.openSSL]
        ) { file, _ in
            // A word that a shell needs in quotes is in quotes already.
            ["client.ca_certs = \(file.hasPrefix("\"") ? file : "\"\(file)\"")"]
        },
        ClientTrust(
            name: "go-sendxmpp",
            title: "go-sendxmpp: without --no-tls-verify",
            signs: ["go-sendxmpp"],
            libraries: [.go]
        ) { file, _ in ["SSL_CERT_FILE=\(file) go-sendxmpp ..."] },
        ClientTrust(name: "profanity", title: "profanity", signs: ["profanity"], libraries: [.openSSL]) { file, _ in
            ["SSL_CERT_FILE=\(file) profanity"]
        },
        ClientTrust(
            name: "a client that uses the system's roots",
            title: "Gajim, Dino and others that use the system's roots (Debian, Ubuntu)",
            signs: ["gajim", "dino"],
            libraries: [.gnuTLS, .openSSL],
            instructions: systemRoots
        ),
        ClientTrust(
            name: "an Android app that accepts user CAs",
            title: "Conversations, and other Android apps that accept user CAs",
            signs: ["conversations", "blabber", "cheogram", "yaxim"],
            takesDER: true
        ) { file, _ in
            [
                "copy \(file) to the phone; in Settings, Security, Encryption & credentials, Install a certificate, "
                    + "CA certificate, choose it",
                "most other apps do not accept it, unless they are debug builds that allow it in their network security "
                    + "configuration",
            ]
        },
        ClientTrust(
            name: "an app on iOS",
            title: "iOS, iPadOS",
            signs: ["monal", "siskin"],
            takesDER: true
        ) { file, authority in
            [
                "send \(file) to the device (AirDrop, mail) and open it; in Settings, Profile Downloaded, install it",
                "in Settings, General, About, Certificate Trust Settings, switch on full trust for \"xmpptap CA for "
                    + "\(authority)\"",
            ]
        },
        java,
    ]

    private static let java = ClientTrust(
        name: "a Java program",
        title: "Java (Smack, Spark and others)",
        signs: ["smack", "igniterealtime", "spark"],
        libraries: [.java],
        takesDER: true
    ) { file, _ in
        [
            "keytool -importcert -noprompt -alias xmpptap -file \(file) -keystore xmpptap.p12 -storetype PKCS12 "
                + "-storepass changeit",
            "java -Djavax.net.ssl.trustStore=xmpptap.p12 -Djavax.net.ssl.trustStorePassword=changeit ...",
        ]
    }

    /// What fits every program with a library, where more is not known.
    private static let byLibrary =
        [
            ClientTrust(name: "this Go program", title: "", libraries: [.go]) { file, _ in
                ["start it with SSL_CERT_FILE=\(file) in its environment (go-sendxmpp: without --no-tls-verify)"]
            },
            ClientTrust(name: "this OpenSSL program", title: "", libraries: [.openSSL]) { file, _ in
                [
                    "start it with SSL_CERT_FILE=\(file) in its environment (profanity and others; in slixmpp set "
                        + "client.ca_certs to it)"
                ]
            },
            ClientTrust(
                name: "this GnuTLS program",
                title: "",
                libraries: [.gnuTLS],
                instructions: systemRoots
            ),
            java,
        ]

    @Sendable private static func systemRoots(_ file: String, _ authority: String) -> [String] {
        [
            "sudo cp \(file) /usr/local/share/ca-certificates/xmpptap-\(authority).crt && sudo update-ca-certificates",
            "then restart the client",
        ]
    }
}
