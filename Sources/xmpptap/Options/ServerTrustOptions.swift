internal import ArgumentParser
internal import TapSecurity

/// `--upstream-ca` and `--pin`, for commands that verify a server's certificate.
struct ServerTrustOptions: ParsableArguments {
    @Option(file: "PEM trust anchors for the server (default: the system's).", completion: .certificates)
    var upstreamCa: String?

    // The former name of --upstream-ca in probe, replay and record-test.
    @Option(help: .hidden)
    var ca: String?

    @Option(
        help: ArgumentHelp(
            "SHA-256 fingerprint of the only certificate to accept from the server; repeatable.",
            discussion: """
                That certificate is accepted whatever its issuer, names and dates say; a server that shows another one is \
                refused. 64 hexadecimal digits, with or without colons.
                """,
            valueName: "sha256"
        ),
        transform: { text throws(Failure) in
            guard let pin = CertificatePin(text) else {
                throw .usage("write a SHA-256 fingerprint: 64 hexadecimal digits, with or without colons")
            }
            return pin
        }
    )
    var pin: [CertificatePin] = []

    /// The file of trust anchors; nil for the system's.
    var anchors: String? { upstreamCa ?? ca }

    /// The flag that makes TLS with the server a requirement; nil if none does.
    var requiring: String? { pin.isEmpty ? anchors.map { _ in "--upstream-ca" } : "--pin" }

    /// Accepts a certificate that the user trusts. Pins exclude trust anchors: the servers of other domains are verified with
    /// the system's.
    mutating func accept(_ pin: CertificatePin) { (self.pin, upstreamCa, ca) = (self.pin + [pin], nil, nil) }

    /// Refuses flags that contradict each other.
    func check() throws(Failure) {
        guard upstreamCa == nil || ca == nil else {
            throw .usage("--ca is the earlier name of --upstream-ca; leave one out")
        }
        guard anchors == nil || pin.isEmpty else {
            throw .usage("--pin accepts one certificate whoever issued it: --upstream-ca has no effect; leave one out")
        }
    }

    /// Returns the TLS options for the verification of the server.
    func verification() throws(Failure) -> ServerLegTLS {
        try check()
        var tls = ServerLegTLS()
        if let anchors { tls.trust = .file(anchors) }
        tls.pins = pin
        return tls
    }

    /// The flags as arguments for another command.
    var arguments: [String] {
        (anchors.map { ["--upstream-ca", $0] } ?? []) + pin.flatMap { ["--pin", "\($0)"] }
    }
}
