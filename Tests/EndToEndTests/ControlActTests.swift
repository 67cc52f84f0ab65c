import Foundation
import TapTestKit
import Testing

/// Tests of requests to the control socket that hold stanzas by a filter, and that switch rules.
@Suite(.timeLimit(.minutes(3)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ControlActTests {
    @Test func `a pause takes a filter, and refuses one that cannot be evaluated, with the column`() async throws {
        let scene = try await ControlScene(["--log", "off"])
        for (body, status, code, words) in [
            (#"{"filter":"message or"}"#, 422, "invalid-filter", "the filter ends here"),
            (#"{"filter":""}"#, 422, "invalid-filter", "the filter is empty"),
            (#"{"filter":"iq and round-trip>1s"}"#, 422, "invalid-filter", "is not known when a stanza arrives"),
            (#"{"filter":"message","condition":"KIND: iq"}"#, 422, "invalid-value", "one of"),
            (#"{"filter":7}"#, 422, "invalid-value", "must be a string"),
        ] {
            let answer = try await scene.ask("POST", "/sessions/1/pause", body)
            #expect(answer.status == status && answer.json["code"] as? String == code, "\(body): \(answer.body)")
            #expect((answer.json["detail"] as? String)?.contains(words) == true, "\(body): \(answer.body)")
            #expect((answer.json["column"] as? Int != nil) == (code == "invalid-filter"), "\(answer.body)")
        }
        #expect(
            try await scene.ask("POST", "/sessions/1/pause", #"{"filter":"message or"}"#).json["column"] as? Int == 11
        )
        let pause = #"{"filter":"message and send and body:wait","count":2}"#
        #expect(try await scene.ask("POST", "/sessions/1/pause", pause).status == 204)
        #expect(try await scene.isUntouched())
        let me = "\(scene.juliet.jid)/balcony"
        try await scene.client.socket.write("<message to='\(me)'><body>pass</body></message>")
        try await scene.client.socket.read(until: "<body>pass</body>")
        try await scene.client.socket.write("<message to='\(me)'><body>wait</body></message>")
        var held: [String: Any]?
        while held == nil {
            held = (try await scene.ask("GET", "/sessions/1/held").json["held"] as? [[String: Any]])?.first
        }
        #expect(held?["filter"] as? String == "message and send and body:wait" && held?["rule"] == nil)
        let number = try #require(held?["number"] as? Int)
        #expect(try await scene.ask("POST", "/sessions/1/held/\(number)", #"{"action":"pass"}"#).status == 204)
        try await scene.client.socket.read(until: "<body>wait</body>")
        #expect(try await scene.ask("DELETE", "/sessions/1/pause").status == 204)
        try await scene.client.socket.write("<message to='\(me)'><body>wait no more</body></message>")
        try await scene.client.socket.read(until: "<body>wait no more</body>")
    }

    @Test func `a stanza is checked as before an injection, without being sent`() async throws {
        let scene = try await ControlScene(["--log", "off"])
        for (body, words, offset) in [
            (#"{"to":"client","stanza":"<message id='only-checked'><body>é</body></message>"}"#, nil, nil),
            (#"{"to":"client","stanza":"<message>é<a></message>"}"#, "does not match", 14),
            (#"{"to":"client","stanza":" <message/><message/>"}"#, "more than one stanza", 11),
            (#"{"to":"client","stanza":"<r xmlns='urn:xmpp:sm:3'/>"}"#, "not an iq, message or presence", nil),
            (#"{"to":"server","stanza":"<message from='romeo@localhost'/>"}"#, "is not the session's JID", nil),
            (#"{"to":"server","stanza":"<message to='@'/>"}"#, "not a JID", nil),
        ] as [(String, String?, Int?)] {
            let answer = try await scene.ask("POST", "/sessions/1/check", body)
            #expect(answer.status == 200 && answer.json["valid"] as? Bool == (words == nil), "\(body): \(answer.body)")
            #expect((answer.json["detail"] as? String)?.contains(words ?? "?") ?? (words == nil), "\(answer.body)")
            #expect(answer.json["offset"] as? Int == offset, "\(body): \(answer.body)")
        }
        #expect(try await scene.ask("POST", "/sessions/1/check", #"{"to":"client"}"#).status == 422)
        #expect(try await scene.ask("POST", "/sessions/2/check", #"{"to":"client","stanza":"<iq/>"}"#).status == 404)
        #expect(try await scene.isUntouched())
        #expect(try await scene.ask("GET", "/sessions/1").json["injected"] as? Int == 0)
        #expect(!scene.client.socket.received.contains("only-checked"))
    }

    @Test func `a rule is switched off and on, and a reload switches it on`() async throws {
        let folder = try TemporaryFolder()
        let rules = try folder.write("::send\n\nKIND: message\nSET=body#=changed\n", to: "a.pfw")
        let scene = try await ControlScene(["--log", "off", "--rules", rules])
        func body(_ number: Int) async throws -> String {
            let me = "\(scene.juliet.jid)/balcony"
            let end = "<thread>t\(number)</thread>"
            try await scene.client.socket.write("<message to='\(me)'><body>own</body>\(end)</message>")
            try await scene.client.socket.read(until: end)
            return scene.client.socket.received.contains("<body>changed</body>\(end)") ? "changed" : "own"
        }
        func state(_ on: Bool, line: Int = 3) -> String { #"{"file":"\#(rules)","line":\#(line),"on":\#(on)}"# }
        func rule(_ answer: ControlScene.Answer) -> [String: Any] {
            (answer.json["rules"] as? [[String: Any]])?.first ?? [:]
        }
        #expect(rule(try await scene.ask("GET", "/rules"))["on"] as? Bool == true)
        #expect(try await body(1) == "changed")
        let off = try await scene.ask("PUT", "/rules/state", state(false))
        #expect(off.status == 200 && rule(off)["on"] as? Bool == false && rule(off)["hits"] as? Int == 1, "\(off.body)")
        #expect(try await body(2) == "own")
        let shown = try await XMPPTapBinary.run(["rules", "hits", "--control", scene.path])
        #expect(shown.output.contains("a.pfw:3 (off)"), "\(shown)")
        let on = try await scene.ask("PUT", "/rules/state", state(true))
        #expect(rule(on)["on"] as? Bool == true && rule(on)["hits"] as? Int == 1, "\(on.body)")
        #expect(try await body(3) == "changed")

        #expect(try await scene.ask("PUT", "/rules/state", state(false)).status == 200)
        _ = try folder.write("::send\n\nKIND: message\nSET=", to: "a.pfw")
        #expect(try await scene.ask("POST", "/rules/reload").status == 422)
        #expect(rule(try await scene.ask("GET", "/rules"))["on"] as? Bool == false)
        _ = try folder.write("::send\n\nKIND: message\nSET=body#=changed\n", to: "a.pfw")
        let reloaded = try await scene.ask("POST", "/rules/reload")
        #expect(reloaded.json["switched_on"] as? Int == 1 && rule(reloaded)["on"] as? Bool == true, "\(reloaded.body)")
        #expect(try await body(4) == "changed")
        for (body, words) in [
            (state(false, line: 4), "no rule at"), ("{}", "\"file\" is missing"),
            (#"{"file":"\#(rules)","line":3}"#, "\"on\" is missing"),
            (#"{"file":"\#(rules)","on":true}"#, "\"line\" is missing"),
            (#"{"file":"\#(rules)","line":3,"on":"no"}"#, "must be true or false"),
        ] {
            let refused = try await scene.ask("PUT", "/rules/state", body)
            #expect(
                refused.status == 422 && refused.body.contains(words.replacing("\"", with: "\\\"")),
                "\(refused.body)"
            )
        }
        let without = try await ControlScene(["--log", "off"])
        #expect(try await without.ask("PUT", "/rules/state", state(false)).json["code"] as? String == "no-rules")
    }
}
