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
}
