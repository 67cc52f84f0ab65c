internal import TapSecurity

/// How to make clients trust an exported CA certificate, with commands to copy.
struct TrustGuide {
    /// The name that the CA is for.
    let name: CertificateName
    /// The file that holds the certificate.
    let file: String
    private let isDER: Bool
    /// The `--ca-dir` argument for the commands, if needed.
    private let flag: String

    /// A guide for a certificate written to `file`. If that is nil, or needs quoting in a shell, the guide uses a default
    /// file name.
    init(name: CertificateName, file: String?, isDER: Bool, flag: String = "") {
        self.name = name
        self.isDER = isDER
        self.flag = flag
        let usual = "xmpptap-\(name).\(isDER ? "crt" : "pem")"
        self.file = file.flatMap { $0.utf8.allSatisfy(Self.isPlain) ? $0 : nil } ?? usual
    }

    var lines: [String] {
        var lines = [
            "",
            "How to make clients trust \(file), the CA for \(name)\(isDomain ? " and its subdomains" : ""):",
        ]
        for entry in entries where !isDER || entry.takesDER {
            lines += ["", entry.client] + entry.steps.map { "  \($0)" }
        }
        if isDER { lines += ["", "Other clients expect PEM: leave --der out."] }
        return lines + [
            "", "When you are done, remove it from the clients and run 'xmpptap ca remove --domain \(name)\(flag)'.",
        ]
    }

    private var isDomain: Bool { if case .domain = name { true } else { false } }

    private var entries: [(client: String, takesDER: Bool, steps: [String])] {
        [
            ("slixmpp: before connect()", false, ["client.ca_certs = \"\(file)\""]),
            ("go-sendxmpp: without --no-tls-verify", false, ["SSL_CERT_FILE=\(file) go-sendxmpp ..."]),
            ("profanity", false, ["SSL_CERT_FILE=\(file) profanity"]),
            (
                "Gajim, Dino and others that use the system's roots (Debian, Ubuntu)", false,
                [
                    "sudo cp \(file) /usr/local/share/ca-certificates/xmpptap-\(name).crt && sudo update-ca-certificates",
                    "then restart the client",
                ]
            ),
            (
                "Conversations, and other Android apps that accept user CAs", true,
                [
                    "copy \(file) to the phone; in Settings, Security, Encryption & credentials, Install a certificate, "
                        + "CA certificate, choose it",
                    "most other apps do not accept it, unless they are debug builds that allow it in their network security "
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

    /// Whether the byte needs no quoting in a shell.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "/._-+:@".utf8.contains(byte)
        }
    }
}
