import TapRecord
import TapTestKit
import Testing

@Suite struct JSONWriterTests {
    @Test func `commas are written between values only`() {
        let text = line {
            $0.openObject()
            $0.field("a", 1)
            $0.field("b", "x,{")
            $0.field("c")
            $0.openArray()
            $0.separate()
            $0.append(decimal: 1)
            $0.separate()
            $0.append(decimal: 2)
            $0.openObject()
            $0.closeObject()
            $0.openArray()
            $0.closeArray()
            $0.closeArray()
            $0.field("d", true)
            $0.field("e", literal: "word")
            $0.field(named: "f\"")
            $0.append("null")
            $0.field("g", seconds: 1_500_000_000)
            $0.field("h", UInt64.max)
            $0.closeObject()
            $0.endLine()
            $0.openObject()
            $0.closeObject()
        }
        #expect(
            text
                == #"{"a":1,"b":"x,{","c":[1,2,{},[]],"d":true,"e":"word","f\"":null,"g":1.5,"h":18446744073709551615}"#
                + "\n{}"
        )
    }

    @Test func `bytes are written as text or as Base64`() {
        let text = line {
            $0.openObject()
            $0.field("xml", Array("<a/>".utf8).span.bytes, orBase64: "base64")
            $0.field("xml", ([0x3C, 0xFF] as [UInt8]).span.bytes, orBase64: "base64")
            $0.closeObject()
        }
        #expect(text == #"{"xml":"<a/>","base64":"PP8="}"#)
    }
}

@Suite struct JSONReaderTests {
    /// Returns all tokens of a text as strings.
    private func tokens(_ text: [UInt8]) throws(JSONError) -> [String] {
        var reader = JSONReader(text.span.bytes)
        var words: [String] = []
        while true {
            switch try reader.next() {
            case .objectStart: words.append("{")
            case .objectEnd: words.append("}")
            case .arrayStart: words.append("[")
            case .arrayEnd: words.append("]")
            case .name(let name): words.append("name " + reader.string(name))
            case .text(let text): words.append("text " + reader.string(text))
            case .number(let number): words.append("number " + reader.string(number))
            case .bool(let value): words.append("\(value)")
            case .null: words.append("null")
            case .end: return words
            }
        }
    }

    private func error(_ text: String) -> JSONError? {
        do {
            _ = try tokens(Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test func `all JSON syntax is read`() throws {
        let text = #"{"a" : [1, -0.5e+3 ,true,false,null,"x\ty"],"b":{}, "":[[]] ,"\u0061":""} "#
        #expect(
            try tokens(Array(text.utf8)) == [
                "{", "name a", "[", "number 1", "number -0.5e+3", "true", "false", "null", "text x\ty", "]", "name b",
                "{", "}", "name ", "[", "[", "]", "]", "name a", "text ", "}",
            ]
        )
        #expect(try tokens(Array(" 0 ".utf8)) == ["number 0"])
        #expect(
            try tokens(Array(#""\"\\\/\b\f\n\r\t\u20aC\ud83d\uDE00\u0000""#.utf8)) == [
                "text \"\\/\u{8}\u{C}\n\r\t€😀\0"
            ]
        )
    }

    @Test(
        arguments: [
            ("", .unexpectedEnd, 0), (" ", .unexpectedEnd, 1), ("{", .unexpectedEnd, 1), ("[1,", .unexpectedEnd, 3),
            ("{\"a\"", .unexpectedEnd, 4), ("{\"a\":", .unexpectedEnd, 5), ("\"abc", .unexpectedEnd, 4),
            ("\"\\", .unexpectedEnd, 2), ("\"\\u12", .unexpectedEnd, 5), ("tru", .unexpectedEnd, 3),
            ("-", .unexpectedEnd, 1),
            ("1.", .unexpectedEnd, 2), ("1e", .unexpectedEnd, 2), ("1e+", .unexpectedEnd, 3),
            ("{}x", .trailingData, 2), ("{}{}", .trailingData, 2), ("1 2", .trailingData, 2),
            ("truex", .trailingData, 4),
            ("}", .unexpectedByte, 0), ("]", .unexpectedByte, 0), (",", .unexpectedByte, 0),
            ("[1 2]", .unexpectedByte, 3),
            ("[1,]", .unexpectedByte, 3), ("[,1]", .unexpectedByte, 1), ("{,}", .unexpectedByte, 1),
            ("[1}", .unexpectedByte, 2),
            ("{\"a\":1]", .unexpectedByte, 6), ("{\"a\":1,}", .unexpectedByte, 7), ("{a:1}", .unexpectedByte, 1),
            ("{\"a\" 1}", .unexpectedByte, 5), ("{\"a\":}", .unexpectedByte, 5), ("{1:2}", .unexpectedByte, 1),
            ("'a'", .unexpectedByte, 0), ("nul1", .unexpectedByte, 3), ("True", .unexpectedByte, 0),
            ("NaN", .unexpectedByte, 0),
            ("+1", .unexpectedByte, 0), (".5", .unexpectedByte, 0), ("\u{FEFF}1", .unexpectedByte, 0),
            ("/**/1", .unexpectedByte, 0),
            ("01", .badNumber, 1), ("-01", .badNumber, 2), ("1.x", .badNumber, 2), ("1ex", .badNumber, 2),
            ("--1", .badNumber, 1),
            ("\"\\x\"", .badEscape, 2), ("\"\\u00g0\"", .badEscape, 1), ("\"\\ud800\"", .badEscape, 1),
            ("\"\\ud800x\"", .badEscape, 1), ("\"\\ud800\\n\"", .badEscape, 1), ("\"\\ud800\\ud800\"", .badEscape, 1),
            ("\"\\udc00\"", .badEscape, 1), ("\"a\nb\"", .controlCharacter, 2), ("\"\u{1F}\"", .controlCharacter, 1),
        ] as [(String, JSONError.Code, Int)]
    )
    func `invalid JSON is refused with its offset`(text: String, code: JSONError.Code, offset: Int) {
        #expect(error(text)?.code == code)
        #expect(error(text)?.offset == offset)
    }

    @Test func `JSON that is not UTF-8 is refused`() {
        #expect(throws: JSONError.self) { try self.tokens([0x22, 0xFF, 0x22]) }
        #expect(throws: JSONError.self) { try self.tokens([0x22, 0xED, 0xA0, 0x80, 0x22]) }
        #expect(throws: JSONError.self) { try self.tokens([0x22, 0xF0, 0x9F, 0x22]) }
    }

    @Test func `the depth of JSON is limited`() {
        let limit = JSONReader.maximumDepth
        #expect(error(String(repeating: "[", count: limit) + String(repeating: "]", count: limit)) == nil)
        #expect(error(String(repeating: "{\"a\":", count: limit) + "1" + String(repeating: "}", count: limit)) == nil)
        #expect(error(String(repeating: "[", count: 1_000_000))?.code == .tooDeep)
        #expect(error(String(repeating: "[", count: limit + 1))?.offset == limit)
    }

    @Test func `an error is described in one line`() {
        #expect(error("[1,]")?.description == "not JSON at byte 3: an unexpected byte")
        #expect(
            error("[" + String(repeating: "[", count: 64))?.description == "not JSON at byte 64: nested deeper than 64"
        )
    }

    @Test func `a value can be skipped`() throws {
        let text = Array(#"{"a":{"b":[1,{"c":"}"}]},"d":2,"e": -1.5 }"#.utf8)
        var reader = JSONReader(text.span.bytes)
        var raw: [String] = []
        _ = try reader.next()
        while case .name = try reader.next() {
            let range = try reader.skipValue()
            raw.append(String(decoding: reader.raw(range), as: UTF8.self))
        }
        #expect(raw == [#"{"b":[1,{"c":"}"}]}"#, "2", "-1.5"])
        #expect(try reader.next() == .end)
    }

    @Test func `numbers are converted to integers and nanoseconds`() throws {
        let text = Array("[12,-9223372036854775808,9223372036854775808,18446744073709551615,1.5,1e3,-0.25]".utf8)
        var reader = JSONReader(text.span.bytes)
        var slices: [JSONReader.Slice] = []
        while true {
            let token = try reader.next()
            if case .number(let slice) = token { slices.append(slice) }
            if token == .end { break }
        }
        let integers = slices.map { reader.integer($0) }
        let unsigned = slices.map { reader.unsigned($0) }
        let nanoseconds = slices.map { reader.nanoseconds($0) }
        #expect(integers == [12, .min, nil, nil, nil, nil, nil])
        #expect(unsigned == [12, nil, 1 << 63, .max, nil, nil, nil])
        #expect(nanoseconds == [12_000_000_000, nil, nil, nil, 1_500_000_000, 1_000_000_000_000, -250_000_000])
    }

    @Test(
        arguments: [
            ("6.5e-05", 65_000), ("1.48E-4", 148_000), ("-2.5e+1", -25_000_000_000), ("0.000e999", 0), ("1e999", nil),
            ("1e-9", 1), ("9.99e-10", 0), ("1e-999999999999999999999", 0), ("6.5000000000000004e-05", 65_000),
            ("9.223372036854775807e9", Int64.max), ("9.223372036854775808e9", nil),
            ("0.00012345678912e4", 1_234_567_891),
        ] as [(String, Int64?)]
    )
    func `seconds with an exponent are read`(text: String, nanoseconds: Int64?) throws {
        var reader = JSONReader(Array(text.utf8).span.bytes)
        guard case .number(let slice) = try reader.next() else {
            Issue.record("no number")
            return
        }
        let read = reader.nanoseconds(slice)
        #expect(read == nanoseconds)
    }

    @Test func `seconds are written and read to the nanosecond`() throws {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<2000 {
            let value =
                Int64.random(in: -Int64.max...Int64.max, using: &random) >> Int64.random(in: 0..<63, using: &random)
            let text = Array(line { $0.append(seconds: value) }.utf8)
            var reader = JSONReader(text.span.bytes)
            guard case .number(let slice) = try reader.next() else {
                Issue.record("no number")
                return
            }
            let read = reader.nanoseconds(slice)
            #expect(read == value)
        }
        var reader = JSONReader(Array("1.1234567899".utf8).span.bytes)
        guard case .number(let slice) = try reader.next() else { return }
        let read = reader.nanoseconds(slice)
        #expect(read == 1_123_456_789)
    }

    @Test func `written JSON is read back`() throws {
        var random = SeededGenerator(seed: 6)
        for _ in 0..<1000 {
            let name = random.hostileText(count: Int.random(in: 0..<10, using: &random))
            let value = random.hostileText(count: Int.random(in: 0..<80, using: &random))
            let text = line {
                $0.openObject()
                $0.field(named: name)
                $0.appendJSONString(value)
                $0.closeObject()
            }
            #expect(!text.utf8.contains { $0 < 0x20 || $0 == 0x7F })
            #expect(try tokens(Array(text.utf8)) == ["{", "name " + name, "text " + value, "}"])
        }
    }

    @Test func `names are compared without creating a string`() throws {
        let text = Array(#"["xml","\u0078ml","xm","xmls"]"#.utf8)
        var reader = JSONReader(text.span.bytes)
        var matches: [Bool] = []
        while true {
            let token = try reader.next()
            if case .text(let slice) = token { matches.append(reader.matches(slice, "xml")) }
            if token == .end { break }
        }
        #expect(matches == [true, true, false, false])
    }

    @Test func `damaged JSON is refused, or read with balanced brackets`() {
        let good = Array(#"{"a":[1,-2.5e3,true,null,"x\u00e4\ud83d\ude00é"],"b":{"c":"d"}}"#.utf8)
        for place in good.indices {
            #expect(throws: JSONError.self) { try self.tokens(Array(good[..<place])) }
            for byte in UInt8.min...UInt8.max {
                var bad = good
                bad[place] = byte
                // The text is either accepted or refused; an accepted text has balanced brackets.
                guard let words = try? tokens(bad) else { continue }
                #expect(words.count { $0 == "{" || $0 == "[" } == words.count { $0 == "}" || $0 == "]" })
            }
        }
    }
}
