internal import TapSecurity

/// Instructions that make clients trust an exported CA certificate, with commands to copy.
struct TrustGuide {
    /// The name for which the CA may sign.
    let name: CertificateName
    /// The file with the certificate.
    let file: String
    private let isDER: Bool
    /// The `--ca-dir` argument in the commands; empty for the default folder.
    private let flag: String

    /// Creates instructions for a certificate written to `file`. They use a default file name if `file` is nil or needs
    /// quoting in a shell.
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
        for client in ClientTrust.all where !isDER || client.takesDER {
            lines += ["", client.title] + client.steps(file: file, authority: "\(name)").map { "  \($0)" }
        }
        if isDER { lines += ["", "Other clients expect PEM: leave --der out."] }
        return lines + [
            "", "When you are done, remove it from the clients and run 'xmpptap ca remove --domain \(name)\(flag)'.",
        ]
    }

    private var isDomain: Bool { if case .domain = name { true } else { false } }

    /// Returns whether a byte needs no quoting in a shell.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "/._-+:@".utf8.contains(byte)
        }
    }
}
