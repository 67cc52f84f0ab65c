/// A server's certificate and key, either self-signed or given by a test. The files are removed with the last
/// reference.
package struct TestCertificate: Sendable {
    private let folder: TemporaryFolder

    /// Path of the certificate in PEM. A self-signed one is also its trust anchor.
    package var certificate: String { folder.path(of: "certificate.pem") }
    /// Path of the private key in PEM.
    package var key: String { folder.path(of: "key.pem") }

    /// Stores a certificate and its key, both in PEM.
    package init(certificate: String, key: String) throws {
        folder = try TemporaryFolder()
        try folder.write(certificate, to: "certificate.pem")
        try folder.write(key, to: "key.pem")
    }

    /// Creates a P-256 or RSA key and a self-signed certificate for the domain with the openssl tool, valid for two
    /// days.
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

    /// Returns the SHA-256 fingerprint as openssl prints it: uppercase hexadecimal digits, with a colon between bytes.
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
