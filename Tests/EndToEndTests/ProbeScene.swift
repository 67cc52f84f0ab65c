import Foundation
import TapTestKit
import Testing

/// A Prosody with a certificate chosen by the test, and the files for a probe.
struct ProbeScene {
    let authority: TestAuthority
    let server: ProsodyServer
    /// The port for direct TLS.
    let direct: UInt16
    let folder: TemporaryFolder

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - names: The names in the certificate.
    ///   - start: The start of the certificate's validity in OpenSSL's notation; by default now.
    ///   - end: The end of the certificate's validity; by default in a hundred days.
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

    /// Returns the time in the given number of days, in OpenSSL's notation.
    static func moment(days: Double) -> String {
        let form = DateFormatter()
        form.locale = Locale(identifier: "en_US_POSIX")
        form.timeZone = TimeZone(secondsFromGMT: 0)
        form.dateFormat = "yyyyMMddHHmmss'Z'"
        return form.string(from: Date(timeIntervalSinceNow: days * 86_400))
    }

    /// Returns the option that names a file with the account's password.
    func password(_ password: String = Account.juliet.password) throws -> [String] {
        ["--password-file", try folder.write("\(password)\n", to: "password")]
    }

    /// Probes the server.
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

    /// Returns whether a line contains all of these texts.
    func tells(_ words: String...) -> Bool { lines.contains { line in words.allSatisfy { line.contains($0) } } }

    /// Returns the lines of `--json` as objects.
    func objects() throws -> [[String: Any]] {
        try lines.map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    /// The output in which everything that differs between runs is replaced.
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
