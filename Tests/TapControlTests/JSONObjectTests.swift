import Testing

@testable import TapControl

/// JSON bodies of requests.
struct JSONObjectTests {
    private func problem(_ text: String, _ read: (JSONObject) throws -> Void = { _ in }) -> String? {
        do {
            try read(JSONObject(Array(text.utf8)))
            return nil
        } catch {
            return (error as? Problem)?.detail ?? "\(error)"
        }
    }

    @Test func `fields are read by name and type`() throws {
        let object = try JSONObject(Array(#"{"a":"x","b":true,"c":7,"d":null,"e":{"f":"y"},"g":[1,[2]]}"#.utf8))
        try object.allow("a", "b", "c", "d", "e", "g")
        #expect(try object.text("a") == "x")
        #expect(try object.bool("b") == true)
        #expect(try object.integer("c", in: 1...7) == 7)
        #expect(try object.text("d", orNull: true) == nil)
        #expect(object.has("d") && !object.has("f"))
        #expect(try object.object("e")?.text("f") == "y")
        #expect(try JSONObject([]).text("a") == nil)
    }

    @Test func `errors in a body are reported with their location`() {
        #expect(problem("[1]") == "the body is not a JSON object")
        #expect(problem("{") == "the body is not JSON: unexpectedEnd at byte 1")
        #expect(problem("{} x") == "the body is not JSON: trailingData at byte 3")
        #expect(problem(#"{"a":1,"a":2}"#) == "duplicate field \"a\"")
        #expect(problem(#"{"b":1}"#) { try $0.allow("a", "c") } == "unknown field \"b\"; known are a, c")
        #expect(problem(#"{"a":1}"#) { _ = try $0.text("a") } == "\"a\" must be a string")
        #expect(problem(#"{"a":"1"}"#) { _ = try $0.bool("a") } == "\"a\" must be true or false")
        #expect(problem(#"{"a":1.5}"#) { _ = try $0.integer("a", in: 0...9) } == "\"a\" must be an integer from 0 to 9")
        #expect(problem(#"{"a":[]}"#) { _ = try $0.object("a") } == "\"a\" must be an object")
        #expect(problem(#"{"a":null}"#) { _ = try $0.text("a") } == "\"a\" must be a string")
        #expect(problem(#"{"a":null}"#) { _ = try $0.bool("a") } == "\"a\" must be true or false")
        #expect(
            problem(#"{"a":null}"#) { _ = try $0.integer("a", in: 0...9) } == "\"a\" must be an integer from 0 to 9"
        )
        #expect(problem("{}") { _ = try $0.required("a") } == "\"a\" is missing")
        #expect(problem(String(repeating: #"{"a":"#, count: 100)) == "the body is not JSON: tooDeep at byte 320")
    }
}
