/// A server's certificate and key, gone with their folder: self-made for localhost, or what a test hands in.
package struct TestCertificate: Sendable {
    private let folder: TemporaryFolder

    /// Path of the certificate in PEM; a self-made one is its own authority.
    package var certificate: String { folder.path(of: "certificate.pem") }
    /// Path of its private key in PEM.
    package var key: String { folder.path(of: "key.pem") }

    /// Keeps a certificate and its key, both in PEM.
    package init(certificate: String, key: String) throws {
        folder = try TemporaryFolder()
        try folder.write(certificate, to: "certificate.pem")
        try folder.write(key, to: "key.pem")
    }

    /// Asks openssl for a key, P-256 or RSA, and a certificate for the domain, valid for two days.
    package init(domain: String = "localhost", isRSA: Bool = false) async throws {
        folder = try TemporaryFolder()
        let openssl = try ToolProcess(
            TestProgram.openssl.rawValue,
            [
                "req", "-x509", "-newkey", isRSA ? "rsa" : "ec", "-pkeyopt",
                isRSA ? "rsa_keygen_bits:2048" : "ec_paramgen_curve:P-256", "-noenc", "-days", "2", "-subj",
                "/CN=\(domain)", "-addext", "subjectAltName=DNS:\(domain)",
                "-keyout", folder.path(of: "key.pem"), "-out", folder.path(of: "certificate.pem"),
            ]
        )
        guard try await openssl.ending() == .exited(0) else { throw openssl.failure("made no certificate") }
    }

    /// Its SHA-256 as openssl prints it: capital hexadecimal digits, a colon between bytes.
    package func fingerprint() async throws -> String {
        let openssl = try ToolProcess(
            TestProgram.openssl.rawValue,
            ["x509", "-in", certificate, "-noout", "-fingerprint", "-sha256"]
        )
        let ending = try await openssl.ending()
        let text = openssl.text(of: .standardOutput).split(separator: "=").last?.dropLast() ?? ""
        guard ending == .exited(0), text.count == 95 else { throw openssl.failure("no fingerprint") }
        return String(text)
    }
}
