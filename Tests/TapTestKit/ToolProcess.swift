import Foundation

/// A running program. Its output goes to files: nothing can block on a full pipe, and nothing is lost at its end.
///
/// It is killed when the last reference goes.
package final class ToolProcess: Sendable {
    /// How a program ended.
    package enum Ending: Equatable, Sendable {
        /// It exited with this code.
        case exited(Int32)
        /// This signal ended it.
        case signalled(Int32)
    }

    /// One of a program's two outputs.
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
    ///   - program: its absolute path.
    ///   - arguments: the command line after the program's name.
    ///   - environment: variables added to, or replacing, those of this process.
    ///   - input: the text on standard input; nothing by default.
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

    /// Its process id.
    package var identifier: Int32 { child.identifier }

    /// Whether it has not ended yet.
    package var isRunning: Bool { child.ending() == nil }

    /// All that it has printed so far.
    package func text(of output: Output) -> String {
        folder.read(output.rawValue)
    }

    /// The whole lines that it has printed so far.
    package func lines(of output: Output) -> [String] {
        let text = text(of: output)
        return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    /// Sends a signal; nothing happens once it has ended.
    package func signal(_ number: Int32) {
        child.send(number)
    }

    /// The first line that matches, as soon as it is printed.
    ///
    /// - Throws: `KitError` when the program ends without it, or the time is up.
    package func line(
        of output: Output,
        within limit: Duration = .seconds(60),
        where matches: (String) -> Bool
    ) async throws -> String {
        try await poll("waiting for a line of \(output.rawValue)", limit) {
            // Checked before reading the lines, so that the last output is not missed.
            let ending = child.ending()
            if let line = lines(of: output).first(where: matches) { return line }
            if let ending { throw failure("ended (\(ending)) before it printed the line waited for") }
            return nil
        }
    }

    /// How it ended, once it has.
    ///
    /// - Throws: `KitError` when the time is up; the program keeps running.
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

    /// An error that names the program and shows the end of its output.
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
