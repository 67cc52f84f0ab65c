import Foundation
import Glibc
import TapCore
import TapNetwork
import TapRecord
import TapSecurity
import TapTestKit
import Testing

@testable import xmpptap

struct EphemeralFolderTests {
    private static let now = Timestamp(nanoseconds: 1_800_000_000_000_000_000)

    @Test func `Only folders left by killed programs are removed`() throws {
        let place = try TemporaryFolder()
        func make(_ name: String) throws -> String {
            let path = place.path(of: name)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            return path
        }
        let left = try make("xmpptap-temporary-abcdef")
        chmod(left, 0o700)
        _ = try AuthorityFolder(left).create(for: CertificateName("localhost"), at: Self.now)
        let held = try make("xmpptap-temporary-ghijkl")
        let lock = EphemeralFolder.lock(held)
        let filled = try make("xmpptap-temporary-mnopqr")
        try Data("x".utf8).write(to: URL(filePath: filled + "/mine"))
        let other = try make("xmpptap-temporary-toolong")
        // Whoever made one a moment ago may be about to lock it.
        EphemeralFolder.sweep(place.path)
        #expect(FileManager.default.fileExists(atPath: left))
        EphemeralFolder.sweep(place.path, olderThan: 0)
        #expect(!FileManager.default.fileExists(atPath: left))
        for path in [held, filled + "/mine", other] { #expect(FileManager.default.fileExists(atPath: path), "\(path)") }
        close(lock)
        EphemeralFolder.sweep(place.path, olderThan: 0)
        #expect(!FileManager.default.fileExists(atPath: held))
    }

    @Test func `An authority that exists only in its folder causes no warning`() throws {
        let place = try TemporaryFolder()
        let folder = AuthorityFolder(place.path(of: "ca"))
        #expect(AuthorityWarnings.trustedEverywhere(folder).isEmpty)
        _ = try folder.create(for: CertificateName("example.org"), at: RunClock.now)
        #expect(AuthorityWarnings.trustedEverywhere(folder).isEmpty)
    }
}

extension RunClock {
    fileprivate static var now: Timestamp { RunClock().now().time }
}
