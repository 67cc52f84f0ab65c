import ArgumentParser
import Foundation
import Testing

@testable import xmpptap

/// What `--help` prints, against the files beside this one.
///
/// After a change that is meant, record them anew with `XMPPTAP_RECORD_HELP=1 swift test --filter HelpTests` and read
/// the difference; a run that records fails.
struct HelpTests {
    /// Each command by its words, followed by its subcommands.
    private static let commands = below(XMPPTap.self, named: "xmpptap", prefix: "")
    private static let isRecording = ProcessInfo.processInfo.environment["XMPPTAP_RECORD_HELP"] == "1"

    private static func below(
        _ command: any ParsableCommand.Type,
        named name: String,
        prefix: String
    ) -> [(name: String, command: any ParsableCommand.Type)] {
        let inner = command.configuration.subcommands.flatMap { command in
            let name = prefix + (command.configuration.commandName ?? "")
            return below(command, named: name, prefix: "\(name) ")
        }
        return [(name, command)] + inner
    }

    @Test("The help of each command matches the recorded file", arguments: commands.map(\.name))
    func snapshot(name: String) throws {
        let command = try #require(Self.commands.first { $0.name == name }).command
        let help = XMPPTap.helpMessage(for: command, columns: 100)
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "Help/\(name.replacing(" ", with: "-")).txt"
        )
        if Self.isRecording {
            try help.write(to: file, atomically: true, encoding: .utf8)
            Issue.record("recorded \(file.path); run again without XMPPTAP_RECORD_HELP")
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == help)
    }

    @Test(
        "The help shows each command's default log level",
        arguments: [("proxy", false), ("demo", true)]
    )
    func usualLog(name: String, isVerbose: Bool) throws {
        let command = try #require(Self.commands.first { $0.name == name }).command
        let help = XMPPTap.helpMessage(for: command, columns: 100)
        #expect(help.contains("Default: verbose.") == isVerbose)
        #expect(help.contains("Default: info; with --format text on a") != isVerbose)
    }

    @Test("The help of each command has an example", arguments: commands.map(\.name))
    func example(name: String) throws {
        let command = try #require(Self.commands.first { $0.name == name }).command
        let example = name == "xmpptap" ? "\n  xmpptap " : "\n  xmpptap \(name)"
        #expect(XMPPTap.helpMessage(for: command, columns: 100).contains(example))
    }
}
