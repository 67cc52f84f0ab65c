/// A certificate authority for one test, created with the openssl tool. Its files are removed with the last reference.
package struct TestAuthority: Sendable {
    /// A certificate and its key, as paths of files in PEM.
    package struct Leaf: Sendable {
        /// Path of the certificate.
        package let certificate: String
        /// Path of the private key.
        package let key: String
    }

    private let folder: TemporaryFolder

    /// Path of the root certificate.
    package var root: String { folder.path(of: "root.pem") }

    /// Creates an authority with a P-256 key.
    ///
    /// - Parameters:
    ///   - name: The common name.
    ///   - extensions: Additional lines in openssl's extension syntax.
    package init(name: String = "Test Authority", extensions: [String] = []) async throws {
        folder = try TemporaryFolder()
        try folder.write("", to: "index.txt")
        try folder.write("01", to: "serial")
        try folder.write(
            """
            [ca]
            default_ca = own
            [own]
            dir = \(folder.path)
            database = \(folder.path)/index.txt
            serial = \(folder.path)/serial
            new_certs_dir = \(folder.path)
            default_md = sha256
            unique_subject = no
            policy = any
            [any]
            commonName = optional
            [req]
            distinguished_name = names
            [names]
            """,
            to: "config"
        )
        var arguments = [
            "req", "-x509", "-config", folder.path(of: "config"), "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-noenc", "-days", "30", "-subj", "/CN=\(name)",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
            "-addext", "subjectKeyIdentifier=hash", "-keyout", folder.path(of: "root.key"), "-out", root,
        ]
        for line in extensions { arguments += ["-addext", line] }
        try await run(arguments)
    }

    /// Issues a certificate.
    ///
    /// - Parameters:
    ///   - names: Subject alternative names in openssl's syntax, such as `DNS:example.org`; may be empty.
    ///   - subject: The common name.
    ///   - start: Start of the validity as `YYYYMMDDHHMMSSZ` (default: now).
    ///   - end: End of the validity in the same form (default: in two days).
    ///   - key: Arguments of `openssl genpkey` that determine the type of key.
    ///   - extensions: Additional lines in openssl's extension syntax.
    package func leaf(
        names: [String],
        subject: String = "leaf",
        start: String? = nil,
        end: String? = nil,
        key: [String] = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
        extensions: [String] = []
    ) async throws -> Leaf {
        let folder = self.folder
        let number = String(UInt32.random(in: 0...UInt32.max), radix: 16)
        func path(_ ending: String) -> String { folder.path(of: "\(number).\(ending)") }

        try await run(["genpkey"] + key + ["-out", path("key")])
        try await run([
            "req", "-new", "-config", folder.path(of: "config"), "-key", path("key"), "-subj", "/CN=\(subject)", "-out",
            path("csr"),
        ])
        var lines = extensions
        if !names.isEmpty { lines.append("subjectAltName=" + names.joined(separator: ",")) }
        try folder.write("[own]\n" + lines.joined(separator: "\n") + "\n", to: "\(number).ext")
        var arguments = [
            "ca", "-batch", "-notext", "-config", folder.path(of: "config"), "-cert", root, "-keyfile",
            folder.path(of: "root.key"), "-in", path("csr"), "-out", path("pem"), "-extfile", path("ext"),
            "-extensions", "own",
        ]
        arguments += start.map { ["-startdate", $0] } ?? []
        arguments += end.map { ["-enddate", $0] } ?? ["-days", "2"]
        try await run(arguments)
        return Leaf(certificate: path("pem"), key: path("key"))
    }

    /// Runs the openssl tool and waits for its end.
    private func run(_ arguments: [String]) async throws {
        let openssl = try ToolProcess(TestProgram.openssl.rawValue, arguments)
        guard try await openssl.ending() == .exited(0) else { throw openssl.failure("failed") }
    }
}
