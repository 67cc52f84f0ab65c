import Foundation
import TapTestKit
import Testing

/// What the README says, tried.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ReadmeTests {
    private static let lines = Tap.read(
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../README.md").standardized.path
    ).split(separator: "\n").map(String.init)

    @Test func `Every flag that is named is one of the program's`() async throws {
        // The parser has the first of its own, and tells nobody; the other is curl's.
        var known: Set = ["--generate-completion-script", "--unix-socket"]
        let commands = [
            [], ["proxy"], ["probe"], ["read"], ["explain"], ["demo"], ["doctor"], ["rules", "run"], ["inject"],
            ["ping"], ["tail"], ["diff"], ["replay"], ["record-test"], ["serve"], ["convert"],
        ]
        for command in commands + ["create", "show", "export", "remove"].map({ ["ca", $0] }) {
            let help = try await XMPPTapBinary.run(command + ["--help"])
            #expect(help.ending == .exited(0))
            known.formUnion(Self.flags(in: help.output))
        }
        let named = Self.lines.reduce(into: Set<String>()) { $0.formUnion(Self.flags(in: $1)) }
        #expect(named.count > 10)
        #expect(named.subtracting(known) == [])
    }

    @Test(
        "Every question to jq has an answer",
        .enabled(if: TestProgram.areInstalled(.jq), "jq is missing")
    )
    func questions() async throws {
        let folder = try TemporaryFolder()
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", folder.path(of: "first.xtap")])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        let questions = Self.lines.filter { $0.hasPrefix("$ jq ") }
        #expect(questions.count > 2)
        for question in questions {
            let shell = try ToolProcess(
                "/bin/bash",
                ["-c", "set -o pipefail; cd \"$0\" && \(question.dropFirst(2))", folder.path]
            )
            #expect(try await shell.ending() == .exited(0), "\(question): \(shell.text(of: .standardError))")
            let answer = shell.text(of: .standardOutput)
            #expect(!answer.isEmpty && answer != "null\n", "\(question) gives nothing")
        }
    }

    private static func flags(in text: String) -> Set<String> {
        let pieces = text.components(separatedBy: "--").dropFirst()
        return Set(
            pieces.map { "--" + $0.prefix { ($0.isLowercase && $0.isASCII) || $0 == "-" } }.filter {
                $0.contains(where: \.isLetter)
            }
        )
    }
}
