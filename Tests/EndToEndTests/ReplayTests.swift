import Foundation
import TapTestKit
import Testing

/// Tests that replay a recorded session of two real clients with new servers.
@Suite(
    .timeLimit(.minutes(5)),
    .serialized,
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing")
) struct ReplayTests {
    @Test func `ten replays to fresh servers have no differences`() async throws {
        let scene = try await ReplayScene()
        for round in 1...10 {
            let server = try await scene.server()
            let (ending, output, error) = try await scene.replay(to: server.port)
            #expect(ending == .exited(0), "round \(round): \(output)\(error)")
            // On a busy machine, an answer may be late, and then the report differs.
            if !output.contains("timing") {
                try Documentation.check(.replay, output.split(separator: "\n").map(String.init))
            }
            try await server.stop()
        }
    }

    @Test func `a replay to a server without a module or a mechanism names the difference`() async throws {
        let scene = try await ReplayScene()
        let host = "modules_disabled = { \"ping\" }\ndisable_sasl_mechanisms = { \"SCRAM-SHA-1\" }"
        let server = try await scene.server(host: host)
        let (ending, output, error) = try await scene.replay(to: server.port)
        #expect(ending == .exited(1), "\(output)\(error)")
        #expect(output.contains("service-unavailable") && output.contains("behaviour"), "\(output)\(error)")
        #expect(output.contains("the server no longer offers SCRAM-SHA-1\n"), "\(output)\(error)")
        try await server.stop()
    }

    @Test func `a server without TLS gets no password if its certificate is named`() async throws {
        let scene = try await ReplayScene()
        let server = try await ProsodyServer(accounts: [.juliet, .romeo])
        let (ending, output, error) = try await scene.replay(to: server.port)
        #expect(ending == .exited(5) && error.contains("the server does not offer TLS"), "\(output)\(error)")
        try await server.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.ejabberd), "ejabberd is missing"))
    func `a replay to ejabberd lists differences in content, but none in ids, order or time`() async throws {
        let scene = try await ReplayScene()
        let server = try await EjabberdServer(secured: (scene.certificate, [.juliet, .romeo]))
        let (ending, output, error) = try await scene.replay(to: server.port)
        #expect(ending == .exited(1), "\(output)\(error)")
        let places = output.split(separator: "\n").filter {
            $0.hasPrefix("    ") && !$0.hasPrefix("    - ") && !$0.hasPrefix("    + ")
        }
        // ejabberd sends no roster version and keeps no archive here, and it sends roster pushes to clients that did
        // not request the roster.
        #expect(
            Set(places.map { $0.drop { $0 == " " }.split(separator: ": ")[0] }) == ["iq/{jabber:iq:roster}query/@ver"],
            "\(output)"
        )
        #expect(output.contains("note: message/{urn:xmpp:sid:0}stanza-id is absent (XEP-0359 §3), "), "\(output)")
        #expect(
            output.contains("the server no longer offers <sub xmlns='urn:xmpp:features:pre-approval'/>"),
            "\(output)"
        )
        #expect(output.contains("compared: 1 unexpected, 2 changed, 1 session differs; 1 note\n"), "\(output)")
        try await server.stop()
    }

    @Test func `one client is replayed with a puppet on a server without its accounts`() async throws {
        let scene = try await ReplayScene()
        let server = try await scene.server(
            accounts: [ClientsScene.nurse],
            host: "modules_enabled = { \"register\" }\nallow_registration = true"
        )
        let (ending, output, error) = try await scene.replay(
            to: server.port,
            ["--session", "1", "--session", "2", "--register", "--prepare"]
        )
        #expect(ending == .exited(0), "\(output)\(error)")
        #expect(output.contains("2 sessions") && !output.contains("behaviour"), "\(output)\(error)")
        try await server.stop()
    }

    @Test func `copies have separate accounts and ids`() async throws {
        let scene = try await ReplayScene()
        let users = (1...3).flatMap { number in
            ["juliet", "romeo"].map {
                Account("\($0)\(number)", password: $0 == "juliet" ? Account.juliet.password : Account.romeo.password)
            }
        }
        let server = try await scene.server(accounts: users)
        let rows = "juliet%d@localhost juliet as=juliet@localhost\nromeo%d@localhost romeo as=romeo@localhost\n"
        let (ending, output, error) = try await scene.replay(
            to: server.port,
            ["--copies", "3", "--ramp", "100ms", "--fail-on", "behaviour,state,timing,peer-absent"],
            accounts: scene.folder.write(rows, to: "copies")
        )
        #expect(ending == .exited(0), "\(output)\(error)")
        #expect(output.contains("9 sessions") && output.contains("iq ping: "), "\(output)\(error)")
        try await server.stop()
    }

    @Test func `wrong accounts, passwords and servers are reported as such`() async throws {
        let scene = try await ReplayScene()
        let server = try await scene.server()
        try scene.folder.write("wrong\n", to: "wrong")
        func accounts(_ text: String) throws -> String { try scene.folder.write(text, to: "others") }
        let refused = try await scene.replay(to: server.port, accounts: accounts("juliet@localhost wrong\n"))
        #expect(refused.ending == .exited(5) && refused.error.contains("juliet@localhost"), "\(refused)")
        let nobody = try await scene.replay(to: server.port, accounts: accounts("nurse@localhost wrong\n"))
        #expect(nobody.ending == .exited(5) && nobody.error.contains("juliet@localhost, romeo@localhost"), "\(nobody)")
        let other = try await scene.replay(
            to: server.port,
            accounts: accounts("romeo@localhost juliet as=juliet@localhost\n")
        )
        #expect(other.ending == .exited(5), "\(other)")
        try await server.stop()
        let junit = scene.folder.path(of: "gone.xml")
        let gone = try await scene.replay(to: server.port, ["--junit", junit])
        #expect(gone.ending == .exited(4) && gone.error.contains("refused"), "\(gone)")
        #expect(gone.output.prefix { $0 != "\n" }.contains("refused"), "\(gone)")
        #expect(gone.output.contains("0 items compared: not played to the end"), "\(gone)")
        #expect(scene.folder.read("gone.xml").contains("failures=\"0\" errors=\"1\""))
    }

    @Test func `a recording without content is refused, with advice how to record one`() async throws {
        let scene = try await ReplayScene()
        let text = Tap.read(scene.capture).split(separator: "\n").map { line in
            guard let start = line.firstRange(of: "\"xml\":\"") else { return String(line) }
            return String(line[..<start.lowerBound].dropLast() + "}")
        }
        try scene.folder.write(text.joined(separator: "\n") + "\n", to: "talk.xtap")
        let refused = try await scene.replay(to: 1)
        #expect(refused.ending == .exited(3), "\(refused)")
        #expect(refused.error.contains("without content") && refused.error.contains("--capture"), "\(refused)")
    }
}
