import Foundation
import TapTestKit
import Testing

/// What pages hold in a running proxy (`--web-act`), by the requests that pages send.
@Suite(.timeLimit(.minutes(4)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct PageActTests {
    /// The port of a page.
    private struct Page {
        let port: UInt16
        let token: String

        init(_ binary: XMPPTapBinary) async throws {
            let line = try await binary.process.line(of: .standardError, within: .seconds(60)) {
                $0.contains("http://127")
            }
            let found = try #require(line.firstMatch(of: /http:\/\/127\.0\.0\.1:(\d+)\/#token=(\w+)/))
            port = try #require(UInt16(found.1))
            token = String(found.2)
        }

        /// Sends a request as a page does.
        func ask(_ method: String, _ target: String, _ body: String = "") async throws -> ControlScene.Answer {
            let connection = try RawConnection(port: port)
            try await connection.write(
                "\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n"
                    + "Authorization: Bearer \(token)\r\nContent-Type: application/json\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
            )
            let (bytes, _) = try await connection.read(within: .seconds(60)) { _ in false }
            let text = String(decoding: bytes, as: UTF8.self)
            let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
            return ControlScene.Answer(
                status: Int(text.dropFirst(9).prefix(3)) ?? 0,
                head: String(parts.first ?? ""),
                body: String(parts.dropFirst().first ?? "")
            )
        }

    }

    /// A proxy with a page that can act, and juliet's session through it.
    private struct Scene {
        let control: ControlScene
        let page: Page

        init(_ arguments: [String] = []) async throws {
            control = try await ControlScene(["--log", "off", "--web", "0", "--web-act"] + arguments)
            page = try await Page(control.binary)
        }

        func ask(_ method: String, _ target: String, _ body: String = "") async throws -> ControlScene.Answer {
            try await page.ask(method, target, body)
        }

        /// Returns what the tray of a page has.
        func tray(_ page: String) async throws -> (held: [[String: Any]], pauses: [[String: Any]]) {
            let answer = try await ask("GET", "/page/held?page=\(page)").json
            return (
                try #require(answer["held"] as? [[String: Any]]), try #require(answer["pauses"] as? [[String: Any]])
            )
        }

        /// Waits until a number of stanzas are held.
        func held(_ count: Int, _ page: String) async throws -> [[String: Any]] {
            let end = ContinuousClock.now + .seconds(30)
            while true {
                let held = try await tray(page).held
                if held.count == count { return held }
                guard ContinuousClock.now < end else { throw KitError("\(count) stanzas are not held: \(held)") }
                try await Task.sleep(for: .milliseconds(20))
            }
        }

        /// Lets the client send a message to itself.
        func say(_ body: String) async throws {
            let me = "\(control.juliet.jid)/balcony"
            try await control.client.socket.write("<message to='\(me)'><body>\(body)</body></message>")
        }

        func receive(_ body: String) async throws {
            try await control.client.socket.read(until: "<body>\(body)</body>")
        }
    }

    @Test func `the pauses of pages end with the last page, and their held stanzas pass`() async throws {
        let folder = try TemporaryFolder()
        let rules = try folder.write("::recv\n\nINSPECT: body#=pass the rule\nPAUSE.\n", to: "a.pfw")
        let scene = try await Scene(["--rules", rules])
        #expect(try await scene.ask("GET", "/page/state").json["acts"] as? Bool == true)
        #expect(try await scene.tray("one").held.isEmpty)
        #expect(try await scene.tray("two").pauses.isEmpty)
        let pause = #"{"direction":"send","count":5,"filter":"message and body:hold"}"#
        #expect(try await scene.ask("POST", "/sessions/1/pause", pause).status == 204)
        let pauses = try await scene.tray("one").pauses
        #expect(pauses.count == 1 && pauses.first?["left"] as? Int == 5 && pauses.first?["session"] as? Int == 1)
        #expect(pauses.first?["filter"] as? String == "message and body:hold")

        try await scene.say("pass the rule")
        let byRule = try await scene.held(1, "one")
        #expect((byRule.first?["rule"] as? String)?.hasSuffix("a.pfw:3") == true, "\(byRule)")
        #expect(byRule.first?["paused_by_page"] as? Bool == false)
        try await scene.say("hold this")
        let held = try await scene.held(2, "two")
        let own = try #require(held.first { $0["paused_by_page"] as? Bool == true })
        #expect(own["filter"] as? String == "message and body:hold" && own["direction"] as? String == "send")
        #expect((own["stanza"] as? String)?.contains("hold this") == true)
        let remaining = try #require(own["remaining_ns"] as? Int)
        #expect(remaining > 0 && remaining <= 60_000_000_000)

        // Another page is open, so nothing ends.
        #expect(try await scene.ask("POST", "/page/closed", #"{"page":"one"}"#).status == 204)
        #expect(try await scene.held(2, "two").count == 2)
        #expect(try await scene.ask("POST", "/page/closed", #"{"page":"two"}"#).status == 204)
        let left = try await scene.control.ask("GET", "/sessions/1/held").json["held"] as? [[String: Any]]
        #expect(left?.count == 1 && left?.first?["rule"] != nil, "\(left ?? [])")
        let number = try #require(left?.first?["number"] as? Int)
        #expect(try await scene.control.ask("POST", "/sessions/1/held/\(number)", #"{"action":"pass"}"#).status == 204)
        try await scene.receive("pass the rule")
        try await scene.receive("hold this")
        try await scene.say("hold no more")
        try await scene.receive("hold no more")
    }

    @Test func `the pause of a command is not that of a page, and stays`() async throws {
        let scene = try await Scene()
        _ = try await scene.tray("one")
        let pause = #"{"filter":"message and send"}"#
        #expect(try await scene.ask("POST", "/sessions/1/pause", pause).status == 204)
        // A new pause replaces the one before it.
        #expect(try await scene.control.ask("POST", "/sessions/1/pause", pause).status == 204)
        #expect(try await scene.tray("one").pauses.isEmpty)
        #expect(try await scene.ask("POST", "/page/closed", #"{"page":"one"}"#).status == 204)
        try await scene.say("wait")
        let held = try await scene.held(1, "two")
        #expect(held.first?["paused_by_page"] as? Bool == false)
        let number = try #require(held.first?["number"] as? Int)
        #expect(try await scene.ask("POST", "/sessions/1/held/\(number)", #"{"action":"pass"}"#).status == 204)
        try await scene.receive("wait")
    }

    @Test(
        .enabled(if: TestProgram.areInstalled(.node), "Node.js is missing"),
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/curl"), "curl is missing"),
        arguments: [true, false]
    )
    func `the request that the page copies injects a stanza, and does not have the token`(hasSocket: Bool) async throws
    {
        let folder = try TemporaryFolder()
        let proxy = try XMPPTapBinary([
            "proxy", "--listen", "127.0.0.1:0", "--log", "off", "--web", "0", "--web-act",
            "--control", hasSocket ? folder.path(of: "a b.sock") : "none",
        ])
        let line = try await proxy.process.line(of: .standardError, within: .seconds(60)) {
            $0.contains("juliet@localhost")
        }
        let juliet = Account("juliet", password: line.split(separator: " ").last.map(String.init) ?? "")
        let page = try await Page(proxy)
        let client = try await PlainClient(juliet, port: proxy.port(), resource: "balcony")
        let state = try await page.ask("GET", "/page/state")
        #expect(state.json["control"] is String == hasSocket, "\(state.body)")
        let stanza = "<message id='copied'><body>it's $HOME &amp; \"more\"\n&lt;\u{E9}></body></message>"
        let record = try JSONSerialization.data(withJSONObject: ["kind": "stanza", "session": 1, "xml": stanza])
        let root = URL(filePath: #filePath).deletingLastPathComponent()
        let node = try ToolProcess(
            TestProgram.node.rawValue,
            [
                root.appending(path: "Page/command.mjs").path,
                root.appending(path: "../../Sources/TapControl/Web").standardized.path,
                "http://127.0.0.1:\(page.port)", state.body, String(decoding: record, as: UTF8.self),
            ]
        )
        #expect(try await node.ending(within: .seconds(60)) == .exited(0), "\(node.text(of: .standardError))")
        let command = node.text(of: .standardOutput)
        #expect(command.hasPrefix("printf ") && command.contains(" | curl "), "\(command)")
        #expect(!command.contains(page.token), "\(command)")
        #expect(command.contains("XMPPTAP_TOKEN") != hasSocket, "\(command)")
        let shell = try ToolProcess("/bin/sh", ["-c", command], environment: ["XMPPTAP_TOKEN": page.token])
        #expect(try await shell.ending(within: .seconds(60)) == .exited(0), "\(shell.text(of: .standardError))")
        #expect(shell.text(of: .standardOutput).contains("\"outcome\""), "\(shell.text(of: .standardOutput))")
        try await client.socket.read(until: "<body>it's $HOME &amp; \"more\"\n&lt;\u{E9}></body>")
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing"))
    func `the counts of both ends stay right after stanzas were held, edited, dropped and injected`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port, arguments: ["--web", "0", "--web-act"])
        let page = try await Page(tap.binary)
        let romeo = try await PlainClient(.romeo, tap, resource: "orchard")
        let juliet = try await PlainClient(.juliet, tap, resource: "balcony")
        try await juliet.socket.write("<enable xmlns='urn:xmpp:sm:3'/>")
        try await juliet.socket.read(until: "<enabled")
        let pause = #"{"filter":"message and send and body:hold","count":10}"#
        #expect(try await page.ask("POST", "/sessions/2/pause", pause).status == 204)
        func message(_ body: String, _ account: Account, _ resource: String) -> String {
            "<message to='\(account.jid)/\(resource)' type='chat'><body>\(body)</body></message>"
        }
        for body in ["hold one", "hold two", "hold three"] {
            try await juliet.socket.write(message(body, .romeo, "orchard"))
        }
        try await juliet.socket.write("<r xmlns='urn:xmpp:sm:3'/>")
        func release(_ body: String, _ action: (_ number: Int, _ stanza: String) throws -> String) async throws {
            let end = ContinuousClock.now + .seconds(30)
            while ContinuousClock.now < end {
                let held = try await page.ask("GET", "/page/held?page=a").json["held"] as? [[String: Any]] ?? []
                let found = held.first { ($0["stanza"] as? String)?.contains(body) == true }
                if let number = found?["number"] as? Int, let stanza = found?["stanza"] as? String {
                    let answer = try await page.ask("POST", "/sessions/2/held/\(number)", action(number, stanza))
                    #expect(answer.status == 204, "\(answer.body)")
                    return
                }
                try await Task.sleep(for: .milliseconds(20))
            }
            throw KitError("\(body) is not held")
        }
        try await release("hold one") { _, stanza in
            let edited = stanza.replacing("hold one", with: "changed")
            return String(decoding: try JSONEncoder().encode(["action": "edit", "stanza": edited]), as: UTF8.self)
        }
        try await release("hold two") { _, _ in #"{"action":"drop"}"# }
        try await release("hold three") { _, _ in #"{"action":"pass"}"# }
        let extra = #"{"to":"server","message":{"body":"injected","peer":"\#(Account.romeo.jid)/orchard"}}"#
        #expect(try await page.ask("POST", "/sessions/2/inject", extra).status == 200)
        for body in ["changed", "hold three", "injected"] { try await romeo.socket.read(until: "<body>\(body)</body>") }
        #expect(!romeo.socket.received.contains("hold two") && !romeo.socket.received.contains("hold one"))
        // Her count of what she has sent: neither the dropped stanza is missing nor the injected one included.
        try await juliet.socket.read(until: "h='3'")
        try await juliet.socket.write(
            "<r xmlns='urn:xmpp:sm:3'/><iq type='get' id='last'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        try await juliet.socket.read(until: "'last'")
        #expect(juliet.socket.received.matches(of: /h='(\d+)'/).map { String($0.1) }.allSatisfy { $0 == "3" })

        // What she has received, with an injected stanza that the server does not know.
        let client = #"{"to":"client","message":{"body":"to juliet","peer":"\#(Account.romeo.jid)/orchard"}}"#
        #expect(try await page.ask("POST", "/sessions/2/inject", client).status == 200)
        try await romeo.socket.write(message("good night", .juliet, "balcony"))
        for body in ["to juliet", "good night"] { try await juliet.socket.read(until: "<body>\(body)</body>") }
        let enabled = try #require(juliet.socket.received.firstRange(of: "<enabled"))
        let count = juliet.socket.received[enabled.upperBound...].matches(of: /<(message|presence|iq)[ >]/).count
        try await juliet.socket.write("<a xmlns='urn:xmpp:sm:3' h='\(count)'/>")
        try await juliet.socket.write("<iq type='get' id='after'><ping xmlns='urn:xmpp:ping'/></iq>")
        try await juliet.socket.read(until: "'after'")
        for client in [romeo, juliet] { try await client.leave() }
        try await tap.stop()
        let records = try tap.records()
        for code in ["wrong-acknowledgement", "stream-error"] {
            #expect(!records.contains { $0.code == code }, "\(code)")
        }
        #expect(records.contains { $0.action == "edited" && $0.name == "a" }, "no acknowledgement was translated")
        try await server.stop()
    }

    @Test func `wrong requests of pages are refused, and --web-act needs --web`() async throws {
        let scene = try await Scene()
        let long = String(repeating: "a", count: 65)
        for target in ["/page/held", "/page/held?page=", "/page/held?page=\(long)"] {
            #expect(try await scene.ask("GET", target).status == 400, "\(target)")
        }
        for body in ["{}", #"{"page":""}"#, #"{"page":"\#(long)"}"#] {
            #expect(try await scene.ask("POST", "/page/closed", body).status == 400, "\(body)")
        }
        #expect(try await scene.ask("POST", "/page/closed", #"{"page":1}"#).status == 422)
        let alone = try await XMPPTapBinary.run(["proxy", "--web-act", "--listen", "127.0.0.1:0", "--log", "off"])
        #expect(alone.ending == .exited(2) && alone.error.contains("--web-act needs --web"), "\(alone)")
    }
}
