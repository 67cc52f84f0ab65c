internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import TapCore
internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Connects to the server of an account before the proxy listens. If the certificate cannot be verified, the user
/// decides whether to accept it.
struct ServerCheck {
    let target: ProxyTarget
    /// The server's address; nil looks up the domain.
    let server: Endpoint?
    let resolver: Endpoint?
    let proxyHeader: ProxyProtocol.Version?
    let way: Way
    /// The flag that requires TLS, if there is one.
    let requiring: String?
    /// The TLS options for the verification of the certificate.
    let tls: ServerLegTLS

    /// How TLS starts on the server leg.
    enum Way {
        /// As the domain's SRV records say; with a given address, STARTTLS.
        case any
        case direct
        /// No TLS.
        case clear
    }

    /// The result of the check.
    struct Outcome {
        var hasTLS = false
        /// Whether the domain has servers for direct TLS only.
        var hasOnlyDirectTLS = false
        /// The certificate that the user accepted.
        var pin: CertificatePin?
    }

    func run() async throws -> Outcome {
        let report = try await probe()
        // Without stream features, the server was not reached, or does not serve the domain.
        guard report.steps.contains(where: { $0.name == .offer }) else { throw failure(report) }
        let reference = try ServerReference(domain: target.domain.name)
        let isPinned = tls.pins.contains { $0.covers(reference) }
        var outcome = Outcome(hasTLS: report.tls != nil)
        if report.isDirect, case .announced = report.directService {
            if case .announced = report.clearService {} else { outcome.hasOnlyDirectTLS = true }
        }
        let place = Self.place(report)
        guard let parameters = report.tls, let certificate = parameters.certificate else {
            // A separate warning about `--server-tls off` was printed.
            guard way != .clear else { return outcome }
            if let requiring {
                throw Failure(
                    status: .checkFailed,
                    message:
                        "the server of \(target.domain.name)\(place) offers no TLS, which \(requiring) needs; enable TLS "
                        + "on the server, or leave \(requiring) out"
                )
            }
            Console.printDiagnostic(
                "warning: the server of \(target.domain.name)\(place) offers no TLS: passwords and stanzas are sent to it "
                    + "in clear text; enable TLS on the server"
            )
            return outcome
        }
        let way = report.isDirect ? "direct TLS" : "STARTTLS"
        let connected = "the server of \(target.domain.name)\(place): \(way), \(parameters.version)"
        guard !parameters.overlooked.isEmpty else {
            let trust = isPinned ? "pinned" : "verified"
            Console.printStandardError("\(connected), certificate \(trust), valid until \(certificate.notAfter.text)")
            return outcome
        }
        if tls.isInsecure {
            Console.printStandardError("\(connected), certificate not verified")
            return outcome
        }
        let reasons = parameters.overlooked.map(\.explanation).joined(separator: "; ")
        Console.printStandardError(
            "cannot verify the certificate of the server of \(target.domain.name)\(place): \(reasons)"
        )
        for line in Self.facts(certificate) { Console.printStandardError("  \(line)") }
        guard !isPinned else {
            throw Failure(
                status: .checkFailed,
                message: "the server's certificate is not the pinned one; \(AdviceTable.advice(for: .comparePin))"
            )
        }
        outcome.pin = try decide(certificate, of: reference)
        return outcome
    }

    /// Asks the user to accept a certificate; returns its pin.
    private func decide(_ certificate: CertificateInfo, of reference: ServerReference) throws -> CertificatePin {
        let pin = CertificatePin(certificate, for: reference)
        guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else {
            throw Failure(
                status: .checkFailed,
                message: "the server's certificate is not trusted; if the fingerprint is the server's, accept the "
                    + "certificate with --pin \(pin), or trust its issuer with --upstream-ca FILE"
            )
        }
        Console.printStandardError(
            "compare the fingerprint on the server: openssl x509 -in CERTIFICATE -noout -fingerprint -sha256"
        )
        Console.prompt("trust this certificate for this run? [y/N] ")
        let answer = readLine() ?? ""
        guard ["y", "yes"].contains(answer.lowercased()) else {
            throw Failure(
                status: .checkFailed,
                message: "the server's certificate is not trusted, nothing was started; trust its issuer with "
                    + "--upstream-ca FILE, or correct the certificate on the server"
            )
        }
        Console.printStandardError("trusted for this run; to skip the question the next time: --pin \(pin)")
        return pin
    }

    /// Returns the details by which the user can recognise a certificate.
    static func facts(_ certificate: CertificateInfo) -> [String] {
        let names = certificate.names.all
        let isOwn = certificate.issuer == certificate.subject
        return [
            "names        \(names.isEmpty ? "none" : names.joined(separator: ", "))",
            "issuer       \(isOwn ? "itself, " : "")\(certificate.issuer)",
            "valid        \(certificate.notBefore.text) to \(certificate.notAfter.text)",
            "SHA-256      \(certificate.fingerprintText)",
        ]
    }

    private func probe() async throws -> ProbeReport {
        var plan = ProbePlan(account: target.jid)
        plan.via = server
        plan.resolver = resolver
        plan.proxyHeader = proxyHeader
        plan.isDirect = way == .direct
        plan.usesTLS = way != .clear
        plan.checksAlternative = false
        plan.tls = tls
        plan.advice = AdviceTable.advice(for:)
        let cryptography = OpenSSLCryptography()
        // Use a separate run, so that the check is neither counted nor logged as a session.
        let probe = Probe(
            plan,
            run: Run(cryptography: cryptography),
            clock: RunClock(),
            dispatcher: RecordDispatcher([]),
            cryptography: cryptography
        )
        do {
            return try await probe.report(on: MultiThreadedEventLoopGroup.singleton)
        } catch let error as TLSContextError {
            throw Failure.file("\(error)")
        } catch let error as ProbeError {
            throw Failure.network("--resolver: \(error)")
        }
    }

    private func failure(_ report: ProbeReport) -> Failure {
        let diagnosis = report.diagnosis
        let step = report.steps.last { $0.outcome == .failed && $0.name != .certificate }
        let finding = step?.lines.joined(separator: "; ") ?? diagnosis.map { "\($0.finding)" } ?? "no answer"
        let isAboutCertificate = report.tls?.overlooked.isEmpty == false
        let advice = isAboutCertificate ? nil : diagnosis.map { $0.advice ?? AdviceTable.advice(for: $0.remedy) }
        return Failure(
            status: diagnosis?.isOfNetwork == true ? .network : .checkFailed,
            message: "cannot use the server of \(target.domain.name)\(Self.place(report)): \(finding); "
                + (advice ?? AdviceTable.advice(for: .hostUnknown))
        )
    }

    /// Returns the address of the connection, in parentheses.
    private static func place(_ report: ProbeReport) -> String {
        let step = report.steps.last { $0.name == .connection && $0.outcome == .ok }
        return step?.lines.first.map { " (\($0))" } ?? ""
    }
}
