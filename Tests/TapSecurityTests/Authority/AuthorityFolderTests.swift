import Foundation
import Glibc
import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

@testable import TapSecurity

struct AuthorityFolderTests {
    private let temporary: TemporaryFolder
    private let folder: AuthorityFolder
    private let name = CertificateName.domain("example.org")
    private let now: Timestamp

    init() throws {
        temporary = try TemporaryFolder()
        folder = AuthorityFolder(temporary.path(of: "data/xmpptap/ca"))
        now = try .day("2026-11-21")
    }

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// Returns why the authority cannot be loaded.
    private func fault() -> AuthorityError? {
        do throws(AuthorityError) {
            _ = try folder.authority(for: name)
            return nil
        } catch {
            return error
        }
    }

    private var own: String { "\(folder.path)/example.org" }

    @Test func `A created authority is found by its name`() throws {
        #expect(try folder.authority(for: name) == nil)
        #expect(try folder.names().isEmpty)
        let (made, isNew) = try folder.create(for: name, at: now)
        #expect(isNew)
        #expect(try folder.create(for: name, at: now).isNew == false)
        let found = try #require(try folder.authority(for: name))
        #expect(found.certificate == made.certificate)
        #expect(found.begin == made.begin && found.end == made.end && found.fingerprint == made.fingerprint)
        #expect(found.subject == made.subject && found.keyIdentifier == made.keyIdentifier)
        let address = try CertificateName("[::1]")
        _ = try folder.create(for: address, at: now)
        #expect(try folder.authority(for: address)?.name == address)
        #expect(try folder.names() == [address, name])
        try folder.remove(name)
        #expect(try folder.names() == [address])
        let error = #expect(throws: AuthorityError.self) { try folder.remove(name) }
        #expect(error?.code == .missing(folder: folder.path))
    }

    @Test func `Other users cannot enter the folders or read the files, whatever the umask is`() throws {
        let before = umask(0)
        defer { umask(before) }
        _ = try folder.create(for: name, at: now)
        for path in [folder.path, own] { #expect(mode(path) == 0o700) }
        for file in ["key.pem", "certificate.pem"] { #expect(mode("\(own)/\(file)") == 0o600) }
    }

    @Test(
        "A path that others can access is refused with the path and the advice",
        arguments: [
            ("", 0o750 as mode_t, "0700"), ("", 0o701, "0700"), ("/example.org", 0o755, "0700"),
            ("/example.org/key.pem", 0o640, "0600"), ("/example.org/key.pem", 0o602, "0600"),
            ("/example.org/certificate.pem", 0o660, "0600"),
        ]
    )
    func rights(path: String, mode: mode_t, cure: String) throws {
        _ = try folder.create(for: name, at: now)
        try #require(chmod(folder.path + path, mode) == 0)
        let error = try #require(fault())
        #expect(error.code == .exposed(rights: mode, proper: path.hasSuffix(".pem") ? 0o600 : 0o700))
        let domain = path.isEmpty ? nil : "example.org"
        #expect(
            error.remedy(in: folder)
                == .changeAuthority(.protect(folder.path + path, mode: cure, domain: domain), folder: folder.path)
        )
        #expect(error.description.contains("mode 0\(String(mode, radix: 8))"))
        #expect(throws: AuthorityError.self) { try folder.create(for: name, at: now) }
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root can give files away"),
        arguments: ["", "/example.org", "/example.org/key.pem"]
    )
    func `A path that belongs to another user is refused`(path: String) throws {
        _ = try folder.create(for: name, at: now)
        try #require(lchown(folder.path + path, 12345, 12345) == 0)
        let error = try #require(fault())
        #expect(error.code == .otherOwner(owner: 12345))
        #expect(error.description.contains(folder.path + path))
    }

    @Test(
        "A truncated file is reported with its path",
        arguments: [
            ("key.pem", 100, AuthorityError.Code.damagedKey), ("key.pem", 0, .damagedKey),
            ("certificate.pem", 200, .damagedCertificate), ("certificate.pem", 0, .damagedCertificate),
        ]
    )
    func torn(file: String, length: Int, code: AuthorityError.Code) throws {
        _ = try folder.create(for: name, at: now)
        try #require(truncate("\(own)/\(file)", length) == 0)
        let error = try #require(fault())
        #expect(error.code == code)
        #expect(error.description.contains("\(own)/\(file)"))
        #expect(error.remedy(in: folder) == .changeAuthority(.recreate("example.org"), folder: folder.path))
        try folder.remove(name)
        #expect(try folder.create(for: name, at: now).isNew)
    }

    @Test func `An encrypted key, another certificate's key, and a key that is not a file are refused`() throws {
        _ = try folder.create(for: name, at: now)
        let other = AuthorityFolder(temporary.path(of: "other"))
        _ = try other.create(for: name, at: now)
        let key = "\(own)/key.pem"
        try #require(rename("\(other.path)/example.org/key.pem", key) == 0)
        #expect(fault()?.code == .keyOfAnother)
        let encrypted = try temporary.write(
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAg=\n"
                + "-----END ENCRYPTED PRIVATE KEY-----\n",
            to: "encrypted.pem"
        )
        try #require(rename(encrypted, key) == 0)
        #expect(fault()?.code == .damagedKey)
        try #require(unlink(key) == 0 && symlink("certificate.pem", key) == 0)
        #expect(fault()?.code == .wrongKind)
        try #require(unlink(key) == 0 && mkfifo(key, 0o600) == 0)
        #expect(fault()?.code == .wrongKind)
        try #require(unlink(key) == 0)
        #expect(fault()?.code == .inaccessible("No such file or directory"))
    }

    @Test func `An authority for another name is refused, and links are not followed`() throws {
        _ = try folder.create(for: .domain("example.net"), at: now)
        try #require(rename("\(folder.path)/example.net", own) == 0)
        #expect(fault()?.code == .notXmpptapAuthority)
        try #require(rename(own, "\(folder.path)/moved") == 0 && symlink("moved", own) == 0)
        #expect(fault()?.code == .wrongKind)
        #expect(throws: AuthorityError.self) { try folder.remove(name) }
        _ = try temporary.write("", to: "file")
        #expect(throws: AuthorityError.self) { try AuthorityFolder(temporary.path(of: "file")).names() }
        #expect(throws: AuthorityError.self) {
            try AuthorityFolder(temporary.path(of: "file/ca")).create(for: name, at: now)
        }
    }

    @Test func `Concurrent creation returns the same authority to all and leaves no temporary folders`() async throws {
        let folder = folder
        let (name, now) = (name, now)
        let made = try await withThrowingTaskGroup(of: (certificate: [UInt8], isNew: Bool).self) { group in
            for _ in 0..<16 {
                group.addTask {
                    let (authority, isNew) = try folder.create(for: name, at: now)
                    return (authority.certificate, isNew)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(made.map(\.certificate)).count == 1)
        #expect(made.filter(\.isNew).count == 1)
        let listing = try #require(opendir(folder.path))
        defer { closedir(listing) }
        var count = 0
        while readdir(listing) != nil { count += 1 }
        // The listing contains the authority, the folder itself and its parent.
        #expect(count == 3)
    }

    @Test func `Temporary folders of killed programs are removed when the next authority is created`() throws {
        let temporary = try TemporaryFolder()
        let folder = AuthorityFolder(temporary.path(of: "ca"))
        _ = try folder.create(for: CertificateName("one.example"), at: Timestamp(nanoseconds: 0))
        let files = FileManager.default
        for (name, age) in [(".new-old", 3600.0), (".new-fresh", 0)] {
            let path = "\(folder.path)/\(name)"
            try files.createDirectory(atPath: path, withIntermediateDirectories: false)
            try Data("x".utf8).write(to: URL(filePath: path + "/key.pem"))
            try files.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: path)
        }
        _ = try folder.create(for: CertificateName("two.example"), at: Timestamp(nanoseconds: 0))
        let left = try files.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(left == [".new-fresh", "one.example", "two.example"])
    }

    @Test func `The remedy names the domain that is part of the path`() {
        let folder = AuthorityFolder("/tmp/ca")
        for path in ["/tmp/ca/example.org", "/tmp/ca/example.org/key.pem", "/tmp/ca/example.org/certificate.pem"] {
            let remedy = AuthorityError(.notXmpptapAuthority, path).remedy(in: folder)
            #expect(remedy == .changeAuthority(.replaceFolder("example.org"), folder: "/tmp/ca"))
        }
        #expect(
            AuthorityError(.exposed(rights: 0o755, proper: 0o700), "/tmp/ca").remedy(in: folder)
                == .changeAuthority(.protect("/tmp/ca", mode: "0700", domain: nil), folder: "/tmp/ca")
        )
    }

    @Test func `The default folder equals a folder with the same path`() {
        let usual = AuthorityFolder.usual(dataHome: "/data", home: "/home/a")
        #expect(usual == AuthorityFolder(usual.path) && Set([usual, AuthorityFolder(usual.path)]).count == 1)
    }

    @Test func `The default folder is in the user's data folder`() {
        #expect(AuthorityFolder.usual(dataHome: nil, home: "/home/a").path == "/home/a/.local/share/xmpptap/ca")
        #expect(AuthorityFolder.usual(dataHome: "/data", home: "/home/a").path == "/data/xmpptap/ca")
        #expect(AuthorityFolder.usual(dataHome: "data", home: "/home/a").path == "/home/a/.local/share/xmpptap/ca")
    }
}
