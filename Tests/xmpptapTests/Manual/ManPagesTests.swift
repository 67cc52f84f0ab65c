import Foundation
import TapManual
import TapTestKit
import Testing

@testable import xmpptap

private let man = "/usr/bin/man"
private let hasMan = ["/usr/bin/man", "/usr/bin/groff"].allSatisfy(FileManager.default.isExecutableFile)

/// The man pages, written and shown.
struct ManPagesTests {
    @Test func `Each command and each topic has a man page with its options`() throws {
        let program = try CommandDefinition.program(dump: Invocation.definitions)
        #expect(
            Set(program.below.map(\.title)) == Set(Invocation.commands.filter { $0 != "help" }.map { "xmpptap \($0)" })
        )
        let proxy = try #require(program.below.first { $0.title == "xmpptap proxy" })
        let text = ManPages.text(of: proxy)
        #expect(text.contains("\n.SH NAME\nxmpptap-proxy \\- relay XMPP connections and log every stanza\n"))
        for argument in proxy.arguments where argument.isShown {
            #expect(argument.names.allSatisfy { text.contains(ManText.verbatim($0)) }, "\(argument.names)")
        }
        let authority = try #require(program.below.first { $0.title == "xmpptap ca" })
        #expect(ManPages.text(of: authority).contains("\n.SH \"XMPPTAP CA CREATE\"\n"))
        let overview = ManPages.text(of: program)
        for page in ManualPage.all { #expect(overview.contains("\\fBxmpptap\\-\(page.name)\\fR(7)"), "\(page.name)") }
        #expect(!overview.contains("manual\\fR(1)"))
    }

    @Test(.enabled(if: hasMan, "man or groff is missing"))
    func `man shows each page without warnings`() async throws {
        let folder = try TemporaryFolder()
        let program = try CommandDefinition.program(dump: Invocation.definitions)
        try ManPages.write(program, to: folder.path(of: "share/man"))
        var files: [String] = []
        for section in ["man1", "man7"] {
            let path = folder.path(of: "share/man/\(section)")
            files += try FileManager.default.contentsOfDirectory(atPath: path).map { "\(path)/\($0)" }
        }
        #expect(files.count == program.visible.count + ManualPage.all.count)
        for width in ["80", "120"] {
            let shown = try ToolProcess(
                man,
                ["--warnings", "-l"] + files.sorted(),
                environment: ["LC_ALL": "C.UTF-8", "MANWIDTH": width, "MANPAGER": "cat"]
            )
            #expect(try await shown.ending(within: .seconds(120)) == .exited(0))
            #expect(shown.text(of: .standardError).isEmpty, "\(shown.text(of: .standardError).prefix(2000))")
            let text = shown.text(of: .standardOutput)
            #expect(text.contains("xmpptap-tls") && text.contains("--upstream-ca"))
        }
    }
}
