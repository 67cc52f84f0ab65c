import Foundation
import TapTestKit
import Testing

private let hasSwift = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .contains { FileManager.default.isExecutableFile(atPath: "\($0)/swift") }

/// Tests of the build with another compiler version: new warnings, and the message for a compiler that is too old.
@Suite(.timeLimit(.minutes(5)), .enabled(if: hasSwift, "swift is not in PATH"))
struct BuildTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        .path
    private let folder = try? TemporaryFolder()

    private func shell(
        _ line: String,
        _ arguments: [String],
        environment: [String: String] = [:]
    ) async throws -> (ending: ToolProcess.Ending, text: String) {
        let shell = try ToolProcess("/bin/sh", ["-c", line, "sh"] + arguments, environment: environment)
        let ending = try await shell.ending(within: .seconds(90))
        return (ending, shell.text(of: .standardOutput) + shell.text(of: .standardError))
    }

    @Test func `A compiler warning fails the build in CI, but not for users`() async throws {
        // The start of the manifest with the settings of all targets, followed by a package with one target that causes
        // a warning.
        let manifest = Tap.read("\(Self.root)/Package.swift")
        let settings = try #require(manifest.range(of: "\nlet nioCore"))
        let package = try #require(folder).path(of: "package")
        try FileManager.default.createDirectory(atPath: "\(package)/Sources/Warned", withIntermediateDirectories: true)
        try
            (manifest[..<settings.lowerBound]
            + "\nlet package = Package(name: \"Warned\", targets: [.target(name: \"Warned\", swiftSettings: settings)])\n")
            .write(toFile: "\(package)/Package.swift", atomically: true, encoding: .utf8)
        try "#warning(\"planted\")\n"
            .write(toFile: "\(package)/Sources/Warned/Warned.swift", atomically: true, encoding: .utf8)
        let build = "swift build --package-path \"$1\" 2>&1"

        let user = try await shell(build, [package], environment: ["XMPPTAP_WARNINGS_AS_ERRORS": ""])
        #expect(user.ending == .exited(0), "\(user.text)")
        #expect(user.text.contains("warning: planted"), "\(user.text)")
        // Uses the value that CI sets for all its steps.
        let line = Tap.read("\(Self.root)/.ci/run").split(separator: "\n").first {
            $0.hasPrefix("export XMPPTAP_WARNINGS_AS_ERRORS=")
        }
        let value = try #require(line?.split(separator: "=").last)
        let ci = try await shell(build, [package], environment: ["XMPPTAP_WARNINGS_AS_ERRORS": String(value)])
        #expect(ci.ending != .exited(0))
        #expect(ci.text.contains("error: planted"), "\(ci.text)")
        // All Swift targets have these settings.
        #expect(
            manifest.matches(of: /\.(?:target|testTarget|executableTarget)\((?!name: "CAssets")/).count
                == manifest.matches(of: /swiftSettings: (settings|testSettings)/).count
        )
    }

    @Test(arguments: [
        ("Swift version 6.2.4 (swift-6.2.4-RELEASE)", "6.2.4"), ("Swift version 5.10 (swift-5.10-RELEASE)", "5.10"),
        ("swift-driver version: 1.115 Apple Swift version 6.0.3 (swiftlang)", "6.0.3"),
        ("Swift version 6.3 (swift-6.3-RELEASE)", nil), ("Swift version 6.10.1 (swift-6.10.1-RELEASE)", nil),
        ("Swift version 7.0-dev (LLVM 1, Swift 2)", nil), ("cannot open shared object file", nil),
    ])
    func `An old compiler is reported in one line with its version and the version needed`(
        words: String,
        version: String?
    ) async throws {
        let folder = try #require(folder)
        let program = try folder.write("#!/bin/sh\necho '\(words)'\n", to: "swift")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
        // Without apt in the PATH, the script installs nothing, so later steps do not matter here.
        for name in ["sed", "head", "dirname", "tr"] {
            try FileManager.default.createSymbolicLink(
                atPath: folder.path(of: name),
                withDestinationPath: try #require(
                    ["/usr/bin/\(name)", "/bin/\(name)"].first(where: FileManager.default.isExecutableFile)
                )
            )
        }
        let path = URL(filePath: program).deletingLastPathComponent().path
        let packages = try await shell(
            "exec /bin/sh \"$1\" build",
            ["\(Self.root)/.ci/packages"],
            environment: ["PATH": path]
        )
        if let version {
            #expect(packages.ending == .exited(1))
            #expect(
                packages.text == "packages: Swift \(version) is too old; xmpptap needs Swift 6.3 or later: "
                    + "https://www.swift.org/install/linux\n"
            )
        } else {
            #expect(packages.ending == .exited(0))
            #expect(packages.text.hasPrefix("packages: no apt here; "))
        }
        // With this line, the package manager reports an old compiler to users of `swift build` too.
        #expect(Tap.read("\(Self.root)/Package.swift").hasPrefix("// swift-tools-version:6.3\n"))
    }
}
