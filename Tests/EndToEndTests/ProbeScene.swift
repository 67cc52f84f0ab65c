import Foundation
import TapTestKit
import Testing

/// A Prosody with a certificate that a test chooses, and the resources for a probe.
struct ProbeScene {
    let authority: TestAuthority
    let server: ProsodyServer
    /// The port for TLS from the first byte on.
    let direct: UInt16
    let folder: TemporaryFolder

    /// Starts it.
    ///
    /// - Parameters:
    ///   - names: Whom the certificate is for.
    ///   - start: When it begins to be valid, as openssl has it; now by default.
    ///   - end: When it ends; in a hundred days by default.
    init(
        account: Account = .juliet,
        names: [String] = ["DNS:localhost"],
        start: String? = nil,
        end: String? = nil
    ) async throws {
        authority = try await TestAuthority()
        let leaf = try await authority.leaf(names: names, start: start, end: end ?? Self.moment(days: 100.5))
        let pair = try TestCertificate(
            certificate: String(contentsOfFile: leaf.certificate, encoding: .utf8),
            key: String(contentsOfFile: leaf.key, encoding: .utf8)
        )
        direct = try FreePort.next()
        server = try await ProsodyServer(encryption: .both(pair, direct: direct), accounts: [account])
        folder = try TemporaryFolder()
    }

    /// A moment in so many days, as openssl has it.
    static func moment(days: Double) -> String {
        let form = DateFormatter()
        form.locale = Locale(identifier: "en_US_POSIX")
        form.timeZone = TimeZone(secondsFromGMT: 0)
        form.dateFormat = "yyyyMMddHHmmss'Z'"
        return form.string(from: Date(timeIntervalSinceNow: days * 86_400))
    }

    /// The flags of an account's password.
    func password(_ password: String = Account.juliet.password) throws -> [String] {
        ["--password-file", try folder.write("\(password)\n", to: "password")]
    }

    /// Probes it.
    func probe(_ arguments: [String], trusting root: String? = nil) async throws -> Probed {
        try await Probed(
            ["juliet@localhost", "--via", "127.0.0.1:\(server.port)", "--upstream-ca", root ?? authority.root]
                + arguments
        )
    }
}

/// The result of a probe.
struct Probed {
    let ending: ToolProcess.Ending
    let output: String
    let error: String

    var lines: [String] { output.split(separator: "\n").map(String.init) }

    /// Runs `xmpptap probe` to its end.
    init(_ arguments: [String], input: String = "") async throws {
        (ending, output, error) = try await XMPPTapBinary.run(["probe"] + arguments, input: input)
    }

    /// Whether a line holds all of these.
    func tells(_ words: String...) -> Bool { lines.contains { line in words.allSatisfy { line.contains($0) } } }

    /// The lines of `--json`, each as an object.
    func objects() throws -> [[String: Any]] {
        try lines.map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    /// The output with what differs from run to run made the same.
    var plain: String {
        output.replacing(#/ +[0-9.]+ (µs|ms|s)  /#, with: "   TIME  ")
            .replacing(/ready after [0-9.]+ m?s/, with: "ready after TIME")
            .replacing(/([0-9A-F]{2}:){15}[0-9A-F]{2}/, with: "FINGERPRINT")
            .replacing(/127\.0\.0\.1:[0-9]+/, with: "127.0.0.1:PORT")
            // Parts in random order, and parts that a newer version may change.
            .replacing(/SASL: ((SCRAM-SHA-256|SCRAM-SHA-1|PLAIN) ?){3}/, with: "SASL: MECHANISMS")
            .replacing(/Prosody [0-9.]+, [0-9]+ features/, with: "Prosody VERSION, features")
            .replacing(/until [0-9-]{10}/, with: "until DATE")
            .replacing(/juliet@localhost\/[A-Za-z0-9_-]+/, with: "juliet@localhost/RESOURCE")
    }
}
