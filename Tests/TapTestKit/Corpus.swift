public import Foundation

/// Third-party data that lies beside the project, named by the environment variable `XMPPTAP_CORPUS`.
public enum Corpus {
    /// The folder; nil where the variable is unset.
    public static let folder: URL? = ProcessInfo.processInfo.environment["XMPPTAP_CORPUS"].map {
        URL(fileURLWithPath: $0, isDirectory: true)
    }

    /// Whether tests that need the corpus can run.
    public static var isAvailable: Bool { folder != nil }

    /// The bytes of a file in it.
    public static func read(_ path: String) throws -> Data {
        guard let folder else { throw CocoaError(.fileNoSuchFile) }
        return try Data(contentsOf: folder.appendingPathComponent(path))
    }

    /// The bytes of a gzipped file in it, unpacked.
    public static func unzip(_ path: String) throws -> Data {
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

/// A generator whose numbers depend on the seed alone, so that a failing case can be run again.
public struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    /// Starts the sequence of `seed`.
    public init(seed: UInt64) { state = seed }

    /// The next number (splitmix64).
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
