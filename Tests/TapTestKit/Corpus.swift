package import Foundation

/// Third-party test data outside the project, in the folder of the environment variable `XMPPTAP_CORPUS`.
package enum Corpus {
    /// The folder; nil if the variable is unset.
    package static let folder: URL? = ProcessInfo.processInfo.environment["XMPPTAP_CORPUS"].map {
        URL(fileURLWithPath: $0, isDirectory: true)
    }

    /// The folder of small inputs next to the corpus; nil if there is none.
    package static let cases: URL? = {
        guard let cases = folder?.deletingLastPathComponent().appending(path: "cases") else { return nil }
        return FileManager.default.fileExists(atPath: cases.path) ? cases : nil
    }()

    /// Whether tests that need the corpus can run.
    package static var isAvailable: Bool { folder != nil }

    /// Returns the bytes of a file of the corpus.
    package static func read(_ path: String) throws -> Data {
        guard let folder else { throw CocoaError(.fileNoSuchFile) }
        return try Data(contentsOf: folder.appendingPathComponent(path))
    }

    /// Returns the unpacked bytes of a gzipped file of the corpus.
    package static func unzip(_ path: String) throws -> Data {
        guard let folder else { throw CocoaError(.fileNoSuchFile) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip", "-dc", folder.appendingPathComponent(path).path]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return data
    }
}
