import TapRecord
import TapSecurity
import TapTestKit
import Testing

@testable import xmpptap

struct AuthorityManagerTests {
    private let temporary: TemporaryFolder
    private let folder: AuthorityFolder
    private let name: CertificateName
    private let later: Timestamp

    init() throws {
        temporary = try TemporaryFolder()
        folder = AuthorityFolder(temporary.path(of: "ca"))
        name = try CertificateName("example.org")
        later = try #require(Timestamp(rfc3339: "2027-12-01T00:00:00Z"))
        _ = try folder.create(for: name, at: #require(Timestamp(rfc3339: "2026-11-21T00:00:00Z")))
    }

    @Test func `An expired authority is neither exported nor created again, and the remedy is shown`() {
        let manager = AuthorityManager(folder: folder, now: later)
        let words =
            "the certificate authority for example.org expired on 2027-11-21; recreate it with 'xmpptap ca "
            + "remove --domain example.org\(folder.flag)' and 'xmpptap ca create --domain example.org\(folder.flag)', and "
            + "trust the new one"
        #expect(throws: Failure.file(words)) { try manager.create(name) }
        #expect(throws: Failure.file(words)) { try manager.export(name, isDER: false) }
    }

    @Test func `An authority for a public suffix is created only after confirmation, with either suffix list`()
        throws
    {
        for path in [PublicSuffixes.usualPath, "/dev/null"] {
            let folder = AuthorityFolder(temporary.path(of: path == "/dev/null" ? "rule" : "list"))
            let manager = AuthorityManager(folder: folder, suffixes: PublicSuffixes(path: path))
            for domain in ["com", "co.uk", "com.au"] {
                let name = try CertificateName(domain)
                #expect(refusal { try manager.create(name) }.contains("--allow-public-suffix --ca-dir "))
                #expect(try folder.names().contains(name) == false)
                try manager.create(name, allowsPublicSuffix: true)
                try manager.create(name)
            }
        }
    }

    @Test func `An expired authority is shown with its dates and as unusable`() throws {
        let authority = try #require(try folder.authority(for: name))
        let info = AuthorityInfo(authority, in: folder, at: later)
        #expect(info.lines().first == "  valid        2026-11-19 to 2027-11-21")
        #expect(
            info.lines().last?.hasPrefix("  unusable     the certificate authority for example.org expired on") == true
        )
        #expect(info.json.contains(#""fault":"the certificate authority"#))
        #expect(info.json.contains(#""certificate":"\#(folder.path)/example.org/certificate.pem""#))
        #expect(AuthorityInfo(authority, in: folder).fault == nil)
    }
}
