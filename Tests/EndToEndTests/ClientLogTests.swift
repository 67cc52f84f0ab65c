import Foundation
import TapTestKit
import Testing

/// Tests of reading and explaining a client's own log on the command line.
@Suite(
    .timeLimit(.minutes(1)),
    .enabled(if: Corpus.isAvailable && XMPPTapBinary.path != nil, "XMPPTAP_CORPUS is not set, or xmpptap not built")
)
struct ClientLogTests {
    private static func log() throws -> String {
        try #require(Corpus.folder).appending(path: "xmppframework-login.log").path
    }

    @Test func `explain shows the login timeline of an XMPPFramework log`() async throws {
        let told = try await XMPPTapBinary.run(["explain", try Self.log()])
        #expect(told.ending == .exited(0), "\(told.error)")
        #expect(told.output.hasPrefix("session 1, 1024@192.168.1.1/iOS_V1.0\n"))
        for words in ["skipped, not in a client log", "ok (mechanism PLAIN; offered PLAIN)", "390 ms  ok"] {
            #expect(told.output.contains(words), "\(told.output)")
        }
    }

    @Test func `An XMPPFramework log converted to JSON has the same explanation`() async throws {
        let folder = try TemporaryFolder()
        let json = try await XMPPTapBinary.run(["read", try Self.log(), "--json"])
        #expect(json.ending == .exited(0), "\(json.error)")
        #expect(!json.output.contains("DJhJ5hsADHd824"))
        let path = try folder.write(json.output, to: "log.json")
        let (first, second) = (
            try await XMPPTapBinary.run(["explain", try Self.log()]), try await XMPPTapBinary.run(["explain", path])
        )
        #expect(first.output == second.output)
    }

    @Test func `Every command that reads a recording also reads a text log`() async throws {
        let folder = try TemporaryFolder()
        let client = try Self.log()
        let shown = try await XMPPTapBinary.run(["read", client, "--log", "verbose"])
        let text = try folder.write(shown.output, to: "text")
        let rules = try folder.write("KIND: message\nPASS.\n", to: "message.pfw")
        for command in [["explain"], ["diff", client], ["rules", "run", rules], ["convert"]] {
            let last = command == ["convert"] ? [try folder.write("", to: "x.scs"), "--overwrite"] : []
            let told = try await XMPPTapBinary.run(command + [text] + last)
            #expect(told.ending == .exited(0), "\(command): \(told.error)\(told.output)")
        }
        let (one, other) = (
            try await XMPPTapBinary.run(["read", client, "--stats", "--json", "--filter", "stanza"]),
            try await XMPPTapBinary.run(["read", text, "--stats", "--json", "--filter", "stanza"])
        )
        let kinds = try [one, other].map { try #require($0.output.components(separatedBy: "\"kinds\":").last) }
        #expect(kinds[0].prefix { $0 != "]" } == kinds[1].prefix { $0 != "]" })
    }

    @Test func `A table of sessions warns if nothing in the log distinguishes them`() async throws {
        let folder = try TemporaryFolder()
        func opening(_ domain: String) -> String {
            "<stream:stream to='\(domain)' xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client' version='1.0'>"
        }
        func answer(_ domain: String) -> String { opening(domain).replacing("to=", with: "id='1' from=") }
        let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHIAcg==</auth>"
        let success = "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
        let features =
            "<stream:features xmlns:stream='http://etherx.jabber.org/streams'><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms></stream:features>"
        func log(_ lines: [(String, String)], _ name: String) throws -> String {
            try folder.write(lines.map { "DEBUG \($0): \($1)\n" }.joined(), to: name)
        }
        func login(_ domain: String) -> [(String, String)] {
            [
                ("SEND", opening(domain)), ("RECV", answer(domain)), ("RECV", features), ("SEND", auth),
                ("RECV", success),
            ]
        }
        let entangled = zip(login("example.org"), login("example.net")).flatMap { [$0, $1] }
        for (lines, isEntangled) in [(login("example.org"), false), (entangled, true)] {
            let path = try log(lines, "\(isEntangled).log")
            for command in [["read", path, "--sessions"], ["read", path, "--sessions", "--json"], ["explain", path]] {
                let told = try await XMPPTapBinary.run(command)
                let remark = "sessions overlap in this log, and nothing in its lines tells them apart"
                #expect(
                    told.error.components(separatedBy: remark).count == (isEntangled ? 2 : 1),
                    "\(command): \(told)"
                )
            }
        }
    }

    @Test func `The diagnosis of a client log does not mention xmpptap`() async throws {
        let folder = try TemporaryFolder()
        let log = try folder.write(
            """
            SEND: <stream:stream to='example.org' xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client' version='1.0'>
            RECV: <stream:stream id="1" version="1.0" from="example.org">
            RECV: <stream:features><mechanisms xmlns="urn:ietf:params:xml:ns:xmpp-sasl"><mechanism>PLAIN</mechanism></mechanisms></stream:features>
            SEND: <auth xmlns="urn:ietf:params:xml:ns:xmpp-sasl" mechanism="PLAIN">AGp1bGlldABSMG0zMG15cjBtMzA=</auth>
            RECV: <failure xmlns="urn:ietf:params:xml:ns:xmpp-sasl"><not-authorized/></failure>

            """,
            to: "client.log"
        )
        for arguments in [["explain", log], ["explain", log, "--format", "svg"], ["read", log]] {
            let told = try await XMPPTapBinary.run(arguments)
            #expect(told.output.contains("the server refused the user name or the password"), "\(told.output)")
            #expect(!told.output.contains("not with xmpptap"), "\(told.output)")
            #expect(!told.output.contains("xmpptap is not the cause"), "\(told.output)")
        }
    }

    @Test func `explain draws a client log as SVG and HTML`() async throws {
        let image = try await XMPPTapBinary.run(["explain", try Self.log(), "--format", "svg"])
        #expect(image.ending == .exited(0), "\(image.error)")
        #expect(image.output.contains("<svg xmlns=\"http://www.w3.org/2000/svg\""))
        #expect(image.output.contains("session 1, 1024@192.168.1.1/iOS_V1.0") && image.output.contains("[inferred]"))
        let page = try await XMPPTapBinary.run(["explain", try Self.log(), "--format", "html"])
        #expect(page.output.hasPrefix("<!DOCTYPE html>"))
        #expect(page.output.contains("<p>session 1, 1024@192.168.1.1/iOS_V1.0</p>"))
        let wrong = try await XMPPTapBinary.run(["explain", try Self.log(), "--format", "png"])
        #expect(wrong.ending == .exited(2))
        #expect(wrong.error.contains("write text, svg or html"))
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .profanity), "Prosody or profanity is missing"))
    func `explain reads a log written by profanity`() async throws {
        let server = try await ProsodyServer()
        let folder = try TemporaryFolder()
        let log = folder.path(of: "profanity.log")
        let client = try ScriptedClient(.profanity, as: .juliet, port: server.port, options: ["--log", log])
        _ = try await client.finish()
        try await server.stop()
        let told = try await XMPPTapBinary.run(["explain", log])
        #expect(told.ending == .exited(0), "\(told.error)")
        #expect(told.output.hasPrefix("session 1, juliet@localhost/"), "\(told.output)")
        #expect(told.output.contains("ended after ") && told.output.contains("closed by the client"), "\(told.output)")
        #expect(told.error.isEmpty)
    }
}
