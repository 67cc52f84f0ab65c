internal import TapDiagnosis

/// Instructions that make one kind of client trust a certificate authority.
struct ClientTrust: Sendable {
    /// The client's name, for use in a sentence.
    let name: String
    /// The client's title in the list of all clients.
    let title: String
    /// Parts of the names that the client gives itself, in lower case: in the node of its capabilities (XEP-0115), or
    /// in its software name.
    var signs: [String] = []
    /// The TLS libraries that the client is known to use; empty if unknown.
    var libraries: Set<ClientSoftware.Library> = []
    /// Whether the client accepts certificates in DER.
    var takesDER = false

    /// Whether the client was recognised by a name from an earlier session.
    private(set) var isByName = false

    private let instructions: @Sendable (_ file: String, _ authority: String) -> [String]

    /// Returns the steps, with commands that can be copied.
    ///
    /// - Parameters:
    ///   - file: The path of the authority's certificate, quoted for a shell if necessary.
    ///   - authority: The name for which the authority may sign.
    func steps(file: String, authority: String) -> [String] { instructions(file, authority) }

    /// Returns the instructions for a client; nil if it is not recognised.
    ///
    /// A name is ignored if it contradicts the client's TLS library: several clients can have the same address.
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

    /// All kinds of clients, in the order of the list.
    static let all: [ClientTrust] = [
        ClientTrust(
            name: "slixmpp",
            title: "slixmpp: before connect()",
            signs: ["slixmpp"],
            libraries: [.openSSL]
        ) { file, _ in
            // The file may already be in quotes for the shell.
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

    /// Instructions for programs of which only the TLS library is known.
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
