import TapTestKit
import Testing

@testable import xmpptap

struct CompletionsTests {
    @Test(arguments: [
        ("", ["off", "verbose", "send", "tls="], [String]()),
        // Words already typed are not offered again.
        ("send,", ["send,info", "send,recv", "send,sasl="], ["send,send", "info"]),
        ("info,recv,v", ["info,recv,send", "info,recv,net="], ["info,recv,verbose", "info,recv,recv"]),
        ("info,sasl=", ["info,sasl=trace", "info,sasl=off"], ["info,sasl="]),
        ("sasl=tr", ["sasl=trace"], ["sasl="]),
    ])
    func `a log specification is completed from the typed text`(typed: String, offered: [String], never: [String]) {
        let found = Completions.logSpecs(typed)
        for word in offered { #expect(found.contains(word), "\(found)") }
        for word in never { #expect(!found.contains(word), "\(found)") }
        #expect(Set(found).count == found.count)
    }

    @Test func `The names in a folder are sorted, and a missing folder has none`() throws {
        let folder = try TemporaryFolder()
        for name in ["b", "a", ".c"] { try folder.write("", to: name) }
        #expect(Completions.names(in: folder.path) == ["a", "b"])
        #expect(Completions.names(in: folder.path(of: "none")).isEmpty)
    }

    @Test(arguments: ["bash", "zsh", "fish"]) func `a completion script has the topics of help`(shell: String) throws {
        func asked(_ arguments: String...) -> String? {
            CompletionScript.asked(arguments, of: XMPPTap.self, Invocation.commands)
        }
        let script = try #require(asked("--generate-completion-script", shell))
        #expect(asked("--generate-completion-script=\(shell)") == script)
        let help = script.split(separator: "\n").filter { $0.contains("tls") && $0.contains("concepts") }
        #expect(help.count == 1 && help.allSatisfy { $0.contains("proxy") && $0.contains("logins") })
    }

    @Test(arguments: [["demo"], ["--generate-completion-script"], ["--generate-completion-script", "csh"]])
    func `other arguments do not request a completion script`(arguments: [String]) {
        #expect(CompletionScript.asked(arguments, of: XMPPTap.self, Invocation.commands) == nil)
    }

    @Test func `no sessions are offered without a running proxy, or for another command`() async {
        // A socket without a listener.
        let line = ["xmpptap", "sessions", "show", "--control", "/none", ""]
        await Completions.prepare(["---completion", "sessions", "show", "--", "positional@0", "5", "0"] + line)
        await Completions.prepare(["---completion"])
        await Completions.prepare(["---completion", "proxy", "--", "--tls"])
        #expect(Completions.sessions.isEmpty)
    }
}
