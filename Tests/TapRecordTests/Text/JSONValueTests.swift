import TapRecord
import Testing

@Suite struct JSONValueTests {
    private static func read(_ json: String) throws -> JSONValue { try JSONValue(Array(json.utf8).span.bytes) }

    @Test(arguments: [
        "null", "true", "-1.5e3", #""a\"é""#, "[]", "{}", #"[1,[],{},"x",null]"#,
        #"{"b":{"a":[{"x":1},{"x":2}]},"a":false}"#,
    ])
    func `a value is written as it was read`(json: String) throws {
        #expect(try Self.read(json).json == json)
    }

    @Test func `a field or value is read by its type, and is nil otherwise`() throws {
        let value = try Self.read(#" {"n": 7, "t": "x", "f": true, "l": [1, 2], "z": null, "o": {"n": -1}} "#)
        #expect(value["n"]?.integer == 7 && value["t"]?.text == "x" && value["f"]?.bool == true)
        #expect(value["l"]?.values.compactMap(\.integer) == [1, 2] && value["o"]?["n"]?.integer == -1)
        #expect(value["z"] == nil && value["q"] == nil && value["n"]?.text == nil && value["t"]?.integer == nil)
        #expect(value["t"]?["n"] == nil && value["t"]?.values.isEmpty == true)
        #expect(value.fields.map(\.name) == ["n", "t", "f", "l", "z", "o"])
        #expect(try Self.read("1.5").integer == nil && Self.read("99999999999999999999").integer == nil)
    }

    @Test(arguments: ["", "{", "[1", "1 2", "{\"a\"}", "nul", String(repeating: "[", count: 10_000)])
    func `invalid JSON is refused`(json: String) {
        #expect(throws: JSONError.self) { try Self.read(json) }
    }
}
