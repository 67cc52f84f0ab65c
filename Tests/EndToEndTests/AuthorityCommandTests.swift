import Foundation
import TapTestKit
import Testing

/// Tests of `xmpptap ca` on the command line.
@Suite(
    .timeLimit(.minutes(2)),
    .enabled(if: XMPPTapBinary.path != nil && TestProgram.openssl.isInstalled, "xmpptap or openssl is not there")
)
struct AuthorityCommandTests {
    private let temporary: TemporaryFolder
    private let folder: String

    init() throws {
        temporary = try TemporaryFolder()
        folder = temporary.path(of: "ca")
    }

    private func run(_ arguments: String...) async throws -> (
        ending: ToolProcess.Ending, output: String, error: String
    ) {
        try await XMPPTapBinary.run(["ca"] + arguments + ["--ca-dir", folder])
    }

    @Test func `doctor and a starting proxy warn of an authority that the whole machine trusts`()
        async throws
    {
        #expect(try await run("create", "--domain", "example.org").ending == .exited(0))
        #expect(try await run("create", "--domain", "capulet.example").ending == .exited(0))
        let listener = try RawListener()
        let words =
            "every program on this machine trusts the certificate authority for example.org"
        for isTrusted in [false, true] {
            // OpenSSL reads the machine's trusted roots from this file.
            let roots = isTrusted ? "\(folder)/example.org/certificate.pem" : "/dev/null"
            let environment = ["SSL_CERT_FILE": roots, "SSL_CERT_DIR": temporary.path]
            let doctor = try XMPPTapBinary(["doctor", "--ca-dir", folder], environment: environment)
            _ = try await doctor.process.ending()
            let proxy = try XMPPTapBinary(
                proxyTo: listener.port,
                ["--tls", "intercept", "--ca-dir", folder],
                environment: environment
            )
            _ = try await proxy.port()
            #expect(try await proxy.process.terminate() == .exited(0))
            for told in [doctor.process.text(of: .standardOutput), proxy.process.text(of: .standardError)] {
                #expect(told.contains(words) == isTrusted, "\(told)")
                #expect(!told.contains("authority for capulet.example"), "\(told)")
            }
        }
    }

    @Test func `An authority is created, exported and removed`() async throws {
        let made = try await run("create", "--domain", "Example.ORG")
        #expect(made.ending == .exited(0))
        #expect(made.output.hasPrefix("created the certificate authority for example.org:\n  valid        "))
        // Every hint works as printed because it names the folder that the user gave.
        #expect(
            made.error == "to make a client trust it: xmpptap ca export --domain example.org --ca-dir \(folder)\n"
        )
        let again = try await run("create", "--domain", "example.org")
        #expect(again.ending == .exited(0))
        #expect(again.output.hasPrefix("the certificate authority for example.org already exists:\n"))
        #expect(again.output.split(separator: "\n").dropFirst() == made.output.split(separator: "\n").dropFirst())

        let exported = try await run("export")
        #expect(exported.ending == .exited(0))
        #expect(
            exported.output == (try String(contentsOfFile: "\(folder)/example.org/certificate.pem", encoding: .utf8))
        )
        for client in ["slixmpp", "go-sendxmpp", "profanity", "Gajim", "Conversations", "iOS", "Java"] {
            #expect(exported.error.contains("\n\(client)"), "nothing about \(client)")
        }
        #expect(exported.error.contains("'xmpptap ca remove --domain example.org --ca-dir \(folder)'"))
        let der = try await run("export", "--der", "--domain", "example.org")
        #expect(der.ending == .exited(0) && der.error.contains("\niOS") && !der.error.contains("\nslixmpp"))

        let shown = try await run("show", "--json")
        #expect(shown.ending == .exited(0))
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(shown.output.utf8)) as? [String: String]
        )
        #expect(object["name"] == "example.org" && object["fault"] == nil)
        let fingerprint = try ToolProcess(
            TestProgram.openssl.rawValue,
            ["x509", "-noout", "-fingerprint", "-sha256", "-in", "\(folder)/example.org/certificate.pem"]
        )
        #expect(try await fingerprint.ending() == .exited(0))
        #expect(
            try fingerprint.text(of: .standardOutput).hasSuffix("=\(#require(object["fingerprint"]))\n")
        )

        let removed = try await run("remove")
        #expect(removed.ending == .exited(0))
        #expect(removed.output == "removed the certificate authority for example.org\n")
        #expect(!FileManager.default.fileExists(atPath: "\(folder)/example.org"))
    }

    @Test func `ca export writes a valid certificate, and its advice names the output file`() async throws {
        _ = try await run("create", "--domain", "example.org")
        let file = temporary.path(of: "trusted.pem")
        let binary = try #require(XMPPTapBinary.path)
        let shell = try ToolProcess(
            "/bin/sh",
            ["-c", "\"$1\" ca export --ca-dir \"$2\" > \"$3\"", "sh", binary, folder, file]
        )
        #expect(try await shell.ending() == .exited(0))
        #expect(shell.text(of: .standardError).contains("SSL_CERT_FILE=\(file) profanity\n"))
        let verify = try ToolProcess(TestProgram.openssl.rawValue, ["verify", "-x509_strict", "-CAfile", file, file])
        #expect(try await verify.ending() == .exited(0))
    }

    @Test func `Programs that create an authority at the same time all get the same one`() async throws {
        let programs = try (0..<6).map { _ in
            try XMPPTapBinary(["ca", "create", "--domain", "example.org", "--ca-dir", folder])
        }
        var outputs: [String] = []
        for program in programs {
            #expect(try await program.process.ending() == .exited(0))
            outputs.append(program.process.text(of: .standardOutput))
        }
        let info = Set(outputs.map { $0.split(separator: "\n").dropFirst().joined(separator: "\n") })
        #expect(info.count == 1)
        #expect(outputs.filter { $0.hasPrefix("created the certificate authority") }.count == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["example.org"])
    }

    @Test func `A mistake is reported in one line with its remedy, and has the exit code of its kind`() async throws {
        func mistake(_ arguments: String...) async throws -> (line: String, ending: ToolProcess.Ending) {
            let run = try await XMPPTapBinary.run(["ca"] + arguments + ["--ca-dir", folder])
            #expect(run.error.split(separator: "\n").count == 1, "\(run.error)")
            #expect(run.output.isEmpty)
            return (run.error, run.ending)
        }
        let none = try await mistake("export")
        #expect(
            none.ending == .exited(2)
                && none.line.contains("create one with 'xmpptap ca create --domain DOMAIN --ca-dir \(folder)'")
        )
        let unknown = try await mistake("remove", "--domain", "example.org")
        #expect(unknown.ending == .exited(2) && unknown.line.contains("no certificate authority for example.org"))
        for line in [unknown.line, try await mistake("export", "--domain", "example.org").line] {
            #expect(line.contains("'xmpptap ca create --domain example.org --ca-dir \(folder)'"), "\(line)")
        }
        let unnamed = try await mistake("create")
        #expect(unnamed.ending == .exited(2) && unnamed.line.hasSuffix("; see 'xmpptap ca create --help'\n"))
        let bad = try await mistake("create", "--domain", "romeo@example.org")
        #expect(bad.ending == .exited(2) && bad.line.contains("no certificate can name"))
        for domain in ["example.org", "10.0.0.1"] { _ = try await run("create", "--domain", domain) }
        let several = try await mistake("export")
        #expect(
            several.ending == .exited(2) && several.line.contains("choose one with --domain: 10.0.0.1, example.org")
        )

        let key = "\(folder)/example.org/key.pem"
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
        let exposed = try await mistake("export", "--domain", "example.org")
        #expect(exposed.ending == .exited(3) && exposed.line.contains("other users can access \(key) (mode 0644)"))
        let shown = try await run("show")
        #expect(shown.ending == .exited(1))
        #expect(shown.output.contains("\nexample.org\n  unusable     other users can access \(key)"))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        #expect(try await run("show").ending == .exited(0))
    }

    @Test(arguments: ["com", "co.uk", "com.au"])
    func `An authority for a public suffix needs --allow-public-suffix`(domain: String) async throws {
        let refused = try await run("create", "--domain", domain)
        #expect(refused.ending == .exited(2) && refused.output.isEmpty)
        #expect(
            refused.error.contains("\(domain) is a public suffix")
                && refused.error.contains("--allow-public-suffix"),
            "\(refused.error)"
        )
        #expect(!FileManager.default.fileExists(atPath: "\(folder)/\(domain)"))
        #expect(try await run("create", "--domain", domain, "--allow-public-suffix").ending == .exited(0))
        #expect(FileManager.default.fileExists(atPath: "\(folder)/\(domain)/key.pem"))
    }

    @Test
    func `Authorities are in the user's data folder by default, and hints name only other folders`()
        async throws
    {
        let usual = temporary.path(of: "data/xmpptap/ca")
        func create(_ domain: String, in folder: String?) async throws -> XMPPTapBinary {
            let binary = try XMPPTapBinary(
                ["ca", "create", "--domain", domain] + (folder.map { ["--ca-dir", $0] } ?? []),
                environment: ["XDG_DATA_HOME": temporary.path(of: "data"), "HOME": temporary.path]
            )
            #expect(try await binary.process.ending() == .exited(domain == "com" ? 2 : 0))
            return binary
        }
        _ = try await create("localhost", in: nil)
        #expect(FileManager.default.fileExists(atPath: "\(usual)/localhost/key.pem"))
        for (folder, isNamed) in [(nil, false), (usual, false), (temporary.path(of: "other"), true)] {
            let error = try await create("com", in: folder).process.text(of: .standardError)
            #expect(error.contains("--allow-public-suffix") && error.contains("--ca-dir") == isNamed, "\(error)")
        }
    }
}
