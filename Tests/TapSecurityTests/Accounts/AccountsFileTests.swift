import Foundation
import TapCore
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

struct AccountsFileTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Returns the error for a file with this text; nil if there is none.
    private func fault(_ text: String) throws -> String? {
        let path = try folder.write(text, to: "accounts")
        do throws(AccountsError) {
            _ = try AccountsFile(path: path)
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `an accounts file may have comments, empty lines and paths relative to its folder`() throws {
        try folder.write("r0m30\n", to: "juliet.password")
        let elsewhere = try TemporaryFolder()
        let other = try elsewhere.write("sw0rd und mehr\r\n", to: "his own")
        let path = try folder.write(
            "\u{FEFF}# who\r\n\r\n  juliet@example.org\tjuliet.password  \n \t\nRomeo@Example.org \(other)  as=romeo@verona.example",
            to: "accounts"
        )
        let accounts = try AccountsFile(path: path).accounts
        #expect(accounts.map(\.jid.description) == ["juliet@example.org", "Romeo@Example.org"])
        #expect(accounts.map(\.secret) == [.password("r0m30"), .password("sw0rd und mehr")])
        #expect(accounts.map { $0.recorded?.description } == [nil, "romeo@verona.example"])
    }

    @Test func `an invalid line is refused with file, line number and the expected content`() throws {
        try folder.write("r0m30", to: "a")
        for (text, words) in [
            ("", ": no accounts in the file"), ("# nobody\n", ": no accounts in the file"),
            ("\nexample.org a", ":2: \"example.org\" is not an account"),
            ("a@b/c a", ":1: \"a@b/c\" is not an account"), ("a@b", ":1: a@b has no password file"),
            ("a@b as=c@d", ":1: a@b has no password file"), ("a@b a as=d", ":1: \"d\" is not an account"),
            ("a@b a\nA@b a", ":2: A@b is already in line 1"), ("a@b a\nc@d a as=a@b", ":2: a@b is already in line 1"),
            ("a@b nothing", ":1: cannot read \(folder.path)/nothing: No such file"),
            ("a@b /dev/null", ":1: /dev/null is not a regular file"), ("a@b .", ":1: "),
        ] {
            let fault = try #require(try fault(text), "\(text)")
            #expect(fault.hasPrefix("\(folder.path(of: "accounts"))\(words)"), "\(fault)")
        }
        #expect(throws: AccountsError.self) { try AccountsFile(path: folder.path(of: "missing")) }
    }

    @Test(arguments: [0o640, 0o604, 0o620, 0o644])
    func `a password file that others can read is refused with advice`(rights: Int) throws {
        let file = try folder.write("r0m30", to: "a")
        try FileManager.default.setAttributes([.posixPermissions: rights], ofItemAtPath: file)
        let fault = try #require(try fault("a@b a"))
        #expect(
            fault.contains(":1: other users can read the password in \(file)")
                && fault.hasSuffix("run 'chmod 600 \(file)'")
        )
    }

    @Test(arguments: ["", "\n", "\ntwo", "with\u{7}bell", String(repeating: "x", count: 5000)])
    func `an invalid password is refused without being shown`(text: String) throws {
        try folder.write(text, to: "a")
        let fault = try #require(try fault("a@b a"))
        #expect(!fault.contains("two") && !fault.contains("bell") && !fault.contains("xxx"), "\(fault)")
    }

    @Test func `the password is the first line of its file`() throws {
        for text in ["r0m30", "r0m30\n", "r0m30\r\nurl: example.org\n"] {
            try folder.write(text, to: "a")
            let path = try folder.write("a@b a", to: "accounts")
            #expect(try AccountsFile(path: path).accounts.map(\.secret) == [.password("r0m30")])
        }
    }

    @Test func `a password file may have stored keys instead of a password`() throws {
        let records = StoredKeysTests.records.map(\.record)
        try folder.write(records.joined(separator: "\n") + "\n", to: "a")
        let path = try folder.write("a@b a", to: "accounts")
        let secret = try #require(try AccountsFile(path: path).accounts.first?.secret)
        guard case .keys(let keys) = secret else {
            Issue.record("a password")
            return
        }
        #expect(keys.algorithms == [.sha512, .sha256, .sha1])
        try folder.write("\u{FEFF}# of the server\n\n" + records.joined(separator: "\n"), to: "a")
        #expect(try AccountsFile(path: path).accounts.first?.secret == secret)
        try folder.write("# of the server\nnotes", to: "a")
        #expect(try AccountsFile(path: path).accounts.first?.secret == .password("# of the server"))
        try folder.write(records[0] + "\nr0m30\n", to: "a")
        let fault = try #require(try fault("# who\na@b a"))
        #expect(fault.hasPrefix("\(path):2: \(folder.path(of: "a")):2: not a stored key"), "\(fault)")
        #expect(!fault.contains("r0m30"))
    }

    @Test func `a password file that is not UTF-8 is refused`() throws {
        try folder.write("x", to: "a")
        try Data([0x66, 0xFF, 0x66]).write(to: URL(filePath: folder.path(of: "a")))
        #expect(try fault("a@b a")?.contains("not UTF-8 text") == true)
    }
}
