import Foundation

/// A running program. Its output goes to files, so that it never blocks on a full pipe, and no output is lost when it
/// ends.
///
/// It is killed when the last reference is released.
package final class ToolProcess: Sendable {
    /// How a program ended.
    package enum Ending: Equatable, Sendable {
        /// The program exited with this code.
        case exited(Int32)
        /// A signal with this number ended the program.
        case signalled(Int32)
    }

    /// An output of the program.
    package enum Output: String, Sendable {
        /// Standard output.
        case standardOutput = "standard output"
        /// Standard error.
        case standardError = "standard error"
    }

    private let child: ChildProcess
    private let folder: TemporaryFolder
    private let command: String

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - program: The absolute path.
    ///   - arguments: The arguments without the program's name.
    ///   - environment: Variables that are added to those of this process, or replace them.
    ///   - input: The text on standard input (default: empty).
    package init(
        _ program: String,
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        input: String = ""
    ) throws {
        folder = try TemporaryFolder()
        command = ([program] + arguments).joined(separator: " ")
        child = try ChildProcess(
            program,
            arguments,
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 },
            files: (
                folder.write(input, to: "input"), folder.write("", to: Output.standardOutput.rawValue),
                folder.write("", to: Output.standardError.rawValue)
            )
        )
    }

    /// The process id.
    package var identifier: Int32 { child.identifier }

    package var isRunning: Bool { child.ending() == nil }

    /// Returns everything that the program has printed to an output so far.
    package func text(of output: Output) -> String {
        folder.read(output.rawValue)
    }

    /// Returns the complete lines that the program has printed so far.
    package func lines(of output: Output) -> [String] {
        let text = text(of: output)
        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    /// Sends a signal; does nothing after the program has ended.
    package func signal(_ number: Int32) {
        child.send(number)
    }

    /// Waits for the first line that matches, and returns it.
    ///
    /// - Throws: ``KitError`` if the program ends without the line, or the time is up.
    package func line(
        of output: Output,
        within limit: Duration = .seconds(60),
        where matches: (String) -> Bool
    ) async throws -> String {
        try await poll("waiting for a line of \(output.rawValue)", limit) {
            // Check for the end before reading the lines, so that the last output is not missed.
            let ending = child.ending()
            if let line = lines(of: output).first(where: matches) { return line }
            if let ending { throw failure("ended (\(ending)) before it printed the line waited for") }
            return nil
        }
    }

    /// Waits for the end of the program, and returns how it ended.
    ///
    /// - Throws: ``KitError`` if the time is up; the program keeps running.
    @discardableResult
    package func ending(within limit: Duration = .seconds(60)) async throws -> Ending {
        try await poll("waiting for the end", limit) { child.ending() }
    }

    /// Sends SIGTERM and waits for the end.
    @discardableResult
    package func terminate(within limit: Duration = .seconds(20)) async throws -> Ending {
        signal(SIGTERM)
        return try await ending(within: limit)
    }

    /// Creates an error that names the program and contains the end of its output.
    package func failure(_ words: String) -> KitError {
        var text = "\(command): \(words)"
        for output in [Output.standardOutput, .standardError] {
            let printed = self.text(of: output)
            if !printed.isEmpty { text += "\n-- its \(output.rawValue):\n\(printed.suffix(4000))" }
        }
        return KitError(text)
    }

    private func poll<Value>(_ what: String, _ limit: Duration, _ look: () throws -> Value?) async throws -> Value {
        let end = ContinuousClock.now + limit
        while true {
            if let value = try look() { return value }
            guard ContinuousClock.now < end else { throw failure("still \(what) after \(limit)") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}
