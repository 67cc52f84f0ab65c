import Foundation

/// The built xmpptap program, run as by a user.
package struct XMPPTapBinary: Sendable {
    /// The running program.
    package let process: ToolProcess

    /// The path in the build folder, next to the test bundle, unless ``BuildMode/program`` names another; nil if the program is not built.
    package static let path: String? = {
        if let program = BuildMode.program { return program }
        let folder = URL(filePath: CommandLine.arguments.first ?? "").deletingLastPathComponent()
        let file = folder.appending(path: "xmpptap").path
        return FileManager.default.isExecutableFile(atPath: file) ? file : nil
    }()

    /// Starts the program.
    ///
    /// - Parameters:
    ///   - arguments: The arguments without the program's name.
    ///   - environment: Variables added to the environment of this process. Times are in UTC unless TZ is set.
    ///   - input: The text on standard input (default: empty).
    package init(_ arguments: [String], environment: [String: String] = [:], input: String = "") throws {
        guard let path = Self.path else { throw KitError("xmpptap is not built beside the test bundle") }
        let environment = environment.merging(["TZ": "UTC0"]) { given, _ in given }
        process = try ToolProcess(path, arguments, environment: environment, input: input)
    }

    /// Starts `xmpptap proxy` on a free port of 127.0.0.1, with an upstream server on 127.0.0.1.
    package init(proxyTo upstream: UInt16, _ arguments: [String] = [], environment: [String: String] = [:]) throws {
        try self.init(
            ["proxy", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:\(upstream)"] + arguments,
            environment: environment
        )
    }

    /// Waits until the program prints the port on which it listens, and returns it.
    package func port(within limit: Duration = .seconds(60)) async throws -> UInt16 {
        let line = try await process.line(of: .standardError, within: limit) { Self.port(in: $0) != nil }
        guard let port = Self.port(in: line) else { throw process.failure("no port in: \(line)") }
        return port
    }

    /// Runs the program and waits for its end.
    package static func run(
        _ arguments: [String],
        environment: [String: String] = [:],
        input: String = "",
        within limit: Duration = .seconds(60)
    ) async throws -> (ending: ToolProcess.Ending, output: String, error: String) {
        let binary = try XMPPTapBinary(arguments, environment: environment, input: input)
        let ending = try await binary.process.ending(within: limit)
        return (ending, binary.process.text(of: .standardOutput), binary.process.text(of: .standardError))
    }

    /// Returns the port in a line that begins with `listening on HOST:PORT`; nil for other lines.
    package static func port(in line: String) -> UInt16? {
        let words = "listening on "
        guard line.hasPrefix(words) else { return nil }
        let address = line.dropFirst(words.count).prefix { !$0.isWhitespace && $0 != "," }
        return address.lastIndex(of: ":").flatMap { UInt16(address[address.index(after: $0)...]) }
    }
}
