import Foundation
import TapTestKit
import Testing

/// Tests of `rules check` and `rules run` on the command line.
@Suite(.timeLimit(.minutes(1)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap not built"))
struct RulesTests {
    private static let log = """
        SEND: <stream:stream to='example.org' xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client' version='1.0'>
        RECV: <stream:stream id="1" version="1.0" from="example.org">
        RECV: <stream:features><bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"/></stream:features>
        SEND: <iq type="set" id="b"><bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"/></iq>
        RECV: <iq type="result" id="b"><bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"><jid>juliet@example.org/b</jid></bind></iq>
        SEND: <message to="romeo@example.org" type="chat"><composing xmlns="http://jabber.org/protocol/chatstates"/></message>
        SEND: <message to="romeo@example.org" type="chat"><body>hello</body></message>
        RECV: <message from="romeo@example.org/o" to="juliet@example.org/b" type="chat"><body>hi</body></message>

        """
    private static let rules = """
        # Typing.
        ::send

        PAYLOAD: http://jabber.org/protocol/chatstates
        DROP.

        ::both

        INSPECT: body#=hello
        SET=body#=good day

        """

    @Test func `rules check accepts a correct file and reports mistakes in another`() async throws {
        let folder = try TemporaryFolder()
        let good = try folder.write(Self.rules, to: "good.pfw")
        let well = try await XMPPTapBinary.run(["rules", "check", good])
        #expect(well.ending == .exited(0) && well.output == "2 rules in 1 file, no mistakes\n", "\(well.error)")
        let bad = try folder.write("KNID: message\nDROP.\n\nDORP.\n", to: "bad.pfw")
        let wrong = try await XMPPTapBinary.run(["rules", "check", good, bad])
        #expect(wrong.ending == .exited(1) && wrong.output.isEmpty)
        let lines = wrong.error.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].hasPrefix("\(bad):1:1: unknown condition \"KNID\""))
        #expect(lines.last?.hasSuffix("did you mean \"DROP\"?") == true)
        let missing = try await XMPPTapBinary.run(["rules", "check", folder.path + "/none.pfw"])
        #expect(missing.ending == .exited(3))
    }

    @Test func `rules run shows which rule hits which stanza, and the effect of edits`() async throws {
        let folder = try TemporaryFolder()
        let rules = try folder.write(Self.rules, to: "good.pfw")
        let log = try folder.write(Self.log, to: "client.log")
        let told = try await XMPPTapBinary.run(["rules", "run", rules, log])
        #expect(told.ending == .exited(0), "\(told.error)")
        #expect(told.output.contains("SEND dropped \(rules):4: "), "\(told.output)")
        #expect(told.output.contains("SEND edited \(rules):9: "), "\(told.output)")
        #expect(
            told.output.contains("\n  - <message to=\"romeo@example.org\" type=\"chat\"><body>hello</body></message>\n")
        )
        #expect(
            told.output.contains("\n  + <message to='romeo@example.org' type='chat'><body>good day</body></message>\n")
        )
        #expect(told.output.contains("2 hits\n  1  \(rules):4\n  1  \(rules):9\n"), "\(told.output)")
        let plain = try folder.write("KIND: message\nLOG=x\n", to: "plain.pfw")
        let all = try await XMPPTapBinary.run(["rules", "run", plain, log, "--json"])
        #expect(all.ending == .exited(0) && all.output.split(separator: "\n").count == 3, "\(all.output)")
        // Two recordings; the program distinguishes them from rule files by their content.
        let (other, same) = try (folder.write(Self.log, to: "other.log"), folder.write("KIND: iq\nLOG=y\n", to: "same"))
        let both = try await XMPPTapBinary.run(["rules", "run", plain, same, log, other, "--json"])
        let runs = both.output.split(separator: "\n").map { $0.contains("\"run\":2") }
        #expect(both.ending == .exited(0) && runs.count == 6 && runs.count(where: { $0 }) == 3, "\(both)")
        let mixed = try await XMPPTapBinary.run(["rules", "run", log, plain])
        #expect(mixed.ending == .exited(2) && mixed.error.contains("name the rule files first"), "\(mixed)")
        // As in mod_firewall, rules without a chain line belong to the chain `deliver`.
        let delivered = try await XMPPTapBinary.run(["rules", "run", plain, log, "--json", "--chain", "deliver"])
        let lines = delivered.output.split(separator: "\n")
        #expect(delivered.ending == .exited(0) && lines.count == 1, "\(delivered.output)")
        for line in lines {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect(object?["rule"] is String && object?["hits"] is [String] && object?["xml"] is String)
        }
    }

    @Test func `--filter selects the records that are read, and reports the position of a mistake`() async throws {
        let folder = try TemporaryFolder()
        let log = try folder.write(Self.log, to: "client.log")
        let told = try await XMPPTapBinary.run(["read", log, "--json", "--filter", "message and (send or body~'^h.$')"])
        #expect(told.ending == .exited(0), "\(told.error)")
        let lines = told.output.split(separator: "\n")
        #expect(lines.count == 4 && lines.allSatisfy { !$0.contains("\"name\":\"iq\"") }, "\(told.output)")
        #expect(lines.first?.contains(#""filter":"message and (send or body~'^h.$')","complete":false"#) == true)
        let text = try await XMPPTapBinary.run(["read", log, "--log", "verbose", "--filter", "body:hello"])
        #expect(text.output.split(separator: "\n").count == 2, "\(text.output)")
        let wrong = try await XMPPTapBinary.run(["read", log, "--filter", "mesage"])
        #expect(wrong.ending == .exited(2) && wrong.output.isEmpty)
        #expect(
            wrong.error.contains("column 1: unknown condition \"mesage\"")
                && wrong.error.contains("did you mean \"message\"?")
        )
    }

    @Test func `A proxy does not start with a faulty rule file, and reports the number of rules`()
        async throws
    {
        let folder = try TemporaryFolder()
        let good = try folder.write(Self.rules, to: "good.pfw")
        let bad = try folder.write("KNID: message\nDROP.\n\nDORP.\n", to: "bad.pfw")
        let arguments = ["proxy", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:9"]
        let wrong = try await XMPPTapBinary.run(arguments + ["--rules", good, "--rules", bad])
        #expect(wrong.ending == .exited(1) && !wrong.error.contains("listening"))
        #expect(wrong.error.contains("\(bad):1:1: ") && wrong.error.contains("\(bad):4:1: "), "\(wrong.error)")
        let missing = try await XMPPTapBinary.run(arguments + ["--rules", folder.path(of: "none.pfw")])
        #expect(missing.ending == .exited(3))
        let (huge, latin) = (folder.path(of: "huge.txt"), folder.path(of: "latin1.txt"))
        try Data(repeating: 0x61, count: 20 << 20).write(to: URL(filePath: huge))
        try Data([0x63, 0xE9]).write(to: URL(filePath: latin))
        let lists = ["file:\(folder.path)/none.txt", "file:\(huge)", "file:\(latin)", "http://example.org/list.txt"]
        let listed = try folder.write(
            lists.enumerated().map { "%LIST l\($0): \($1)\n" }.joined() + "\nKIND: message\nPASS.\n",
            to: "listed.pfw"
        )
        let refused = try await XMPPTapBinary.run(arguments + ["--rules", listed])
        #expect(refused.ending == .exited(1) && !refused.error.contains("listening"))
        #expect(
            refused.error.split(separator: "\n") == [
                "\(listed):1:11: \(folder.path)/none.txt does not exist; create it, or append (missing: ignore)",
                "\(listed):2:11: \(huge) is larger than 16 MiB; that is the limit for such a file",
                "\(listed):3:11: \(latin) is not UTF-8 text",
                "\(listed):4:11: lists over HTTP are not supported; download the file and use file:PATH",
            ]
        )
        let proxy = try XMPPTapBinary(arguments + ["--rules", good, "--rules", good, "--chain", "deliver"])
        _ = try await proxy.port()
        let said = proxy.process.lines(of: .standardError)
        #expect(said.contains { $0.hasSuffix("rules: 4 from 2 files") }, "\(said)")
        #expect(try await proxy.process.terminate() == .exited(0))
    }

    @Test func `rules run without a recording is a usage mistake`() async throws {
        let folder = try TemporaryFolder()
        let rules = try folder.write(Self.rules, to: "good.pfw")
        let told = try await XMPPTapBinary.run(["rules", "run", rules])
        #expect(told.ending == .exited(2) && told.error.contains("rules run takes rule files and a recording"))
    }
}
