import ArgumentParser
import Foundation
import Testing

@testable import xmpptap

/// What `--help` prints, against the files beside this one.
///
/// After a change that is meant, record them anew with `XMPPTAP_RECORD_HELP=1 swift test --filter HelpTests` and read
/// the difference; a run that records fails.
struct HelpTests {
    private static let commands: [any ParsableCommand.Type] = [XMPPTap.self] + XMPPTap.configuration.subcommands
    private static let isRecording = ProcessInfo.processInfo.environment["XMPPTAP_RECORD_HELP"] == "1"

    @Test("Help is as recorded", arguments: commands.map { $0.configuration.commandName ?? "" })
    func snapshot(name: String) throws {
        let command = try #require(Self.commands.first { $0.configuration.commandName == name })
        let help = XMPPTap.helpMessage(for: command, columns: 100)
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Help/\(name).txt")
        if Self.isRecording {
            try help.write(to: file, atomically: true, encoding: .utf8)
            Issue.record("recorded \(file.path); run again without XMPPTAP_RECORD_HELP")
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == help)
    }

    @Test(
        "What the log shows unless it is said is what each command does",
        arguments: [("proxy", false), ("demo", true)]
    )
    func usualLog(name: String, isVerbose: Bool) throws {
        let command = try #require(Self.commands.first { $0.configuration.commandName == name })
        let help = XMPPTap.helpMessage(for: command, columns: 100)
        #expect(help.contains("Without it: verbose.") == isVerbose)
        #expect(help.contains("Without it: info,send,recv on a terminal, else info.") != isVerbose)
    }

    @Test("Every command shows a worked example", arguments: commands.map { $0.configuration.commandName ?? "" })
    func example(name: String) throws {
        let command = try #require(Self.commands.first { $0.configuration.commandName == name })
        let example = name == "xmpptap" ? "\n  xmpptap " : "\n  xmpptap \(name)"
        #expect(XMPPTap.helpMessage(for: command, columns: 100).contains(example))
    }
}
