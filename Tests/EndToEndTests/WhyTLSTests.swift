import TapTestKit
import Testing

/// Tests of the diagnosis of logins that failed because of the server's certificate: in the log, and from `explain`.
@Suite(
    .serialized,
    .timeLimit(.minutes(3)),
    .enabled(if: TestProgram.openssl.isInstalled, "openssl is missing")
)
struct WhyTLSTests {
    // MARK: Certificates

    /// A problem with a server's certificate.
    enum Wrong: String, CaseIterable, Sendable { case expired, notYetValid, name, issuer, selfSigned, purpose }

    @Test(arguments: Wrong.allCases, [false, true])
    func `each reason to refuse a server's certificate is diagnosed`(wrong: Wrong, direct: Bool) async throws {
        let authority = try await TestAuthority()
        let rule = "RFC 5280 §4.1.2.5"
        let diagnosis: WhyTLSScene.Verdict
        var root = authority.root
        var pair: (certificate: String, key: String)
        /// Keeps the certificates alive, because their files are deleted with them.
        var owners: [any Sendable] = [authority]
        func leaf(_ names: [String], _ extensions: [String] = [], from start: String? = nil, to end: String? = nil)
            async throws -> (String, String)
        {
            let leaf = try await authority.leaf(names: names, start: start, end: end, extensions: extensions)
            return (leaf.certificate, leaf.key)
        }
        switch wrong {
        case .expired:
            pair = try await leaf(["DNS:localhost"], from: "20250101000000Z", to: "20250201000000Z")
            diagnosis = .init(
                cause: "certificate-expired",
                side: "server",
                rule: rule,
                words: ["it expired on 2025-02-01", "renew the server's certificate"]
            )
        case .notYetValid:
            pair = try await leaf(["DNS:localhost"], from: "20490101000000Z", to: "20490201000000Z")
            diagnosis = .init(
                cause: "clock-skew",
                side: "network",
                rule: rule,
                words: ["it is not valid before 2049-01-01", "set the clocks of both machines"]
            )
        case .name:
            pair = try await leaf(["DNS:xmpp7.example"])
            diagnosis = .init(
                cause: "certificate-wrong-name",
                side: "server",
                rule: "RFC 6120 §13.7.2",
                words: ["it is for xmpp7.example, not for localhost", "not for the server's host name"]
            )
        case .issuer:
            pair = try await leaf(["DNS:localhost"])
            let other = try await TestAuthority(name: "Another Authority")
            owners.append(other)
            root = other.root
            diagnosis = .init(
                cause: "certificate-unknown-issuer",
                side: "server",
                rule: "RFC 6120 §13.7.2",
                words: ["its issuer is not trusted", "--upstream-ca FILE"]
            )
        case .selfSigned:
            let own = try await TestCertificate()
            owners.append(own)
            pair = (own.certificate, own.key)
            diagnosis = .init(
                cause: "certificate-unknown-issuer",
                side: "server",
                rule: "RFC 6120 §13.7.2",
                words: ["it is self-signed", "--upstream-ca FILE"]
            )
        case .purpose:
            pair = try await leaf(["DNS:localhost"], ["extendedKeyUsage=clientAuth"])
            diagnosis = .init(
                cause: "certificate-refused",
                side: "server",
                rule: "RFC 6120 §13.7.2",
                words: ["it is not a server certificate", "--upstream-insecure"]
            )
        }
        try await WhyTLSScene.fail(
            "\(wrong), direct \(direct)",
            server: pair,
            trusting: root,
            direct: direct,
            diagnosis
        )
        withExtendedLifetime(owners) {}
    }
}
