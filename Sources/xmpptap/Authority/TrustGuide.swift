internal import TapSecurity

/// How clients come to trust a certificate that was exported, in words and commands that can be copied.
struct TrustGuide {
    /// What the authority may vouch for.
    let name: CertificateName
    /// The file that holds the certificate.
    let file: String
    private let isDER: Bool
    /// What makes a command mean the folder that it came from.
    private let flag: String

    /// A guide for a certificate that was written to `file`; where that is nil, or no name for a command, for one that is
    /// going to be written to a file of a usual name.
    init(name: CertificateName, file: String?, isDER: Bool, flag: String = "") {
        self.name = name
        self.isDER = isDER
        self.flag = flag
        let usual = "xmpptap-\(name).\(isDER ? "crt" : "pem")"
        self.file = file.flatMap { $0.utf8.allSatisfy(Self.isPlain) ? $0 : nil } ?? usual
    }

    /// The guide, line by line.
    var lines: [String] {
        var lines = [
            "",
            "How clients come to trust \(file), which may vouch for \(name)\(isDomain ? " and what is below it" : ""):",
        ]
        for entry in entries where !isDER || entry.takesDER {
            lines += ["", entry.client] + entry.steps.map { "  \($0)" }
        }
        if isDER { lines += ["", "Other clients want text: leave --der out."] }
        return lines + [
            "", "When you are done, take it out again, and run 'xmpptap ca remove --domain \(name)\(flag)'.",
        ]
    }

    private var isDomain: Bool { if case .domain = name { true } else { false } }

    private var entries: [(client: String, takesDER: Bool, steps: [String])] {
        [
            ("slixmpp: before connect()", false, ["client.ca_certs = \"\(file)\""]),
            ("go-sendxmpp: without --no-tls-verify", false, ["SSL_CERT_FILE=\(file) go-sendxmpp ..."]),
            ("profanity", false, ["SSL_CERT_FILE=\(file) profanity"]),
            (
                "Gajim, Dino and what else asks the system (Debian, Ubuntu)", false,
                [
                    "sudo cp \(file) /usr/local/share/ca-certificates/xmpptap-\(name).crt && sudo update-ca-certificates",
                    "then start the client anew",
                ]
            ),
            (
                "Conversations, and other Android apps that take the user's authorities", true,
                [
                    "copy \(file) to the phone; in Settings, Security, Encryption & credentials, Install a certificate, "
                        + "CA certificate, choose it",
                    "most other apps do not take it, unless they are debug builds that say so in their network security "
                        + "configuration",
                ]
            ),
            (
                "iOS, iPadOS", true,
                [
                    "send \(file) to the device (AirDrop, mail) and open it; in Settings, Profile Downloaded, install it",
                    "in Settings, General, About, Certificate Trust Settings, switch on full trust for \"xmpptap CA for "
                        + "\(name)\"",
                ]
            ),
            (
                "Java (Smack, Spark and others)", true,
                [
                    "keytool -importcert -noprompt -alias xmpptap -file \(file) -keystore xmpptap.p12 -storetype PKCS12 "
                        + "-storepass changeit",
                    "java -Djavax.net.ssl.trustStore=xmpptap.p12 -Djavax.net.ssl.trustStorePassword=changeit ...",
                ]
            ),
        ]
    }

    /// Letters, digits and what else means nothing to a shell.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "/._-+:@".utf8.contains(byte)
        }
    }
}
