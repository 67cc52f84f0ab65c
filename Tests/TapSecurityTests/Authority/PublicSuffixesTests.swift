import Glibc
import TapTestKit
import Testing

@testable import TapSecurity

struct PublicSuffixesTests {
    private static let list = """
        // ===BEGIN ICANN DOMAINS===
        com
        uk
        co.uk  // what follows is no part of the rule
        *.ck
        !www.ck
        jp
        *.kobe.jp
        !city.kobe.jp
        рф
        公司.cn
        // ===BEGIN PRIVATE DOMAINS===
        github.io
        """

    @Test(
        "If the public suffix list is installed, it is used",
        arguments: [
            ("com", true), ("co.uk", true), ("uk", true), ("example.co.uk", false), ("example.com", false),
            ("foo.ck", true), ("www.ck", false), ("ck", true), ("a.foo.ck", false),
            ("kobe.jp", true), ("x.kobe.jp", true), ("city.kobe.jp", false), ("a.x.kobe.jp", false),
            ("рф", true), ("公司.cn", true), ("a.公司.cn", false), ("github.io", true), ("me.github.io", false),
            ("jabber", false), ("localhost", false), ("192.0.2.1", false), ("::1", false),
        ]
    )
    func listed(name: String, isSuffix: Bool) throws {
        let folder = try TemporaryFolder()
        let suffixes = try PublicSuffixes(path: folder.write(Self.list, to: "list.dat"))
        #expect(try suffixes.contains(CertificateName(name)) == isSuffix)
    }

    @Test(
        "Without the public suffix list, a stricter rule is used",
        arguments: [
            ("com", true), ("jabber", true), ("co.uk", true), ("com.au", true), ("or.jp", true), ("gob.mx", true),
            ("localhost", false), ("laptop", false), ("local", false), ("example", false), ("example.org", false),
            ("example.co.uk", false), ("co.example", false), ("example.de", false), ("10.0.0.1", false),
        ]
    )
    func rule(name: String, isSuffix: Bool) throws {
        for path in ["/nowhere/list.dat", "/dev/null", "/"] {
            let suffixes = PublicSuffixes(path: path, ownName: "Laptop.lan")
            #expect(try suffixes.contains(CertificateName(name)) == isSuffix, "\(path)")
        }
    }

    @Test(.enabled(if: access(PublicSuffixes.usualPath, R_OK) == 0, "the package publicsuffix is missing"))
    func `The installed list contains common suffixes`() throws {
        for name in ["com", "co.uk", "com.au", "xn--p1ai", "github.io"] {
            #expect(try PublicSuffixes().contains(CertificateName(name)), "\(name)")
        }
        for name in ["example.org", "localhost", "capulet.example"] {
            #expect(try !PublicSuffixes().contains(CertificateName(name)), "\(name)")
        }
    }
}
