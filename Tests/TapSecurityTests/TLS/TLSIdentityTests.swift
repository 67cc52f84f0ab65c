import TapSecurity
import TapTestKit
import Testing

@Suite(.enabled(if: TestProgram.openssl.isInstalled)) struct TLSIdentityTests {
    private func error(_ certificate: String, _ key: String) -> String {
        do throws(TLSIdentityError) {
            _ = try TLSIdentity(certificateFile: certificate, keyFile: key)
            return "none"
        } catch {
            return error.description
        }
    }

    @Test func `an unusable file is reported with its fault and a remedy`() async throws {
        let first = try await TestCertificate(domain: "a.example")
        let second = try await TestCertificate(domain: "b.example")
        #expect(error(first.certificate, first.key) == "none")
        #expect(error("/nowhere", first.key) == "cannot read /nowhere: No such file or directory")
        #expect(error("/", first.key) == "cannot read /: Is a directory")
        #expect(
            error(first.key, first.key)
                == "\(first.key) has no PEM certificate (a block labelled CERTIFICATE)"
        )
        #expect(
            error(first.certificate, first.certificate)
                == "\(first.certificate) has no PEM private key (a block labelled PRIVATE KEY)"
        )
        #expect(
            error(first.certificate, second.key)
                == "\(second.key) is not the key of the certificate in \(first.certificate)"
        )
    }

    @Test func `a damaged file and an encrypted key are reported without a passphrase prompt`() async throws {
        let whole = try await TestCertificate(domain: "a.example")
        let folder = try TemporaryFolder()
        let torn = try folder.write("-----BEGIN PRIVATE KEY-----\nMIGH\n", to: "torn.pem")
        #expect(
            error(whole.certificate, torn)
                == "\(torn) has an unreadable private key: it is truncated or damaged"
        )
        let locked = folder.path(of: "locked.pem")
        let openssl = try ToolProcess(
            TestProgram.openssl.rawValue,
            ["pkey", "-in", whole.key, "-aes128", "-passout", "pass:secret", "-out", locked]
        )
        #expect(try await openssl.ending() == .exited(0))
        #expect(error(whole.certificate, locked).hasPrefix("the private key in \(locked) is encrypted; "))
    }
}
