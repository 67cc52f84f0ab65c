import Glibc
import TapTestKit
import Testing

@testable import TapRules

/// Compares Lua patterns with Lua itself, if it is installed, and tests the limits that Lua does not have.
@Suite struct LuaPatternTests {
    private func matches(_ pattern: String, _ text: String) throws -> PatternMatch? {
        try LuaPattern(Array(pattern.utf8)).firstMatch(in: Array(text.utf8))
    }

    @Test(arguments: [
        ("a%", "\"%\" at the end", 1), ("[a", "\"[\" without \"]\"", 0), ("[a%", "\"[\" without \"]\"", 0),
        ("[]", "\"[\" without \"]\"", 0), ("[^]", "\"[\" without \"]\"", 0), ("x%f", "%f without a set", 1),
        ("%fa", "%f without a set", 0), ("%b(", "%b without its two characters", 0), ("(a", "\"(\" without \")\"", 0),
        ("a)", "\")\" without \"(\"", 1), ("(a)%1", "back references are not supported", 3),
        ("%0", "back references are not supported", 0),
    ])
    func `A malformed pattern is refused with its position`(_ pattern: String, _ message: String, _ offset: Int) {
        #expect(throws: PatternFault(message: message, offset: offset)) { try LuaPattern(Array(pattern.utf8)) }
    }

    @Test func `Captures, positions, %b and %f match as in Lua`() throws {
        #expect(try matches("(%a+)@(%a+)", "x romeo@home y")?.captures == [.range(2..<7), .range(8..<12)])
        #expect(try matches("()ab()", "xxab")?.captures == [.position(3), .position(5)])
        #expect(try matches("%b()", "f(a(b)c)d")?.range == 1..<8)
        #expect(try matches("%f[%a]%a+", "1 two")?.range == 2..<5)
        #expect(try matches("^b", "ab") == nil)
    }

    @Test(arguments: [
        (String(repeating: "a-", count: 30) + "b", String(repeating: "a", count: 60)),
        (String(repeating: "a*", count: 30) + "c", String(repeating: "a", count: 99)),
        (String(repeating: "x?", count: 300) + "y", String(repeating: "x", count: 300)),
    ])
    func `A search with exponential backtracking is aborted`(_ pattern: String, _ text: String) throws {
        #expect(throws: PatternTooComplex.self) { try matches(pattern, text) }
    }

    /// Compares random patterns, most of them valid because of their alphabet, on texts of few different characters.
    @Test(.enabled(if: LuaProgram.path != nil)) func `Random patterns give the same matches as in Lua`() async throws {
        var generator = SeededGenerator(seed: 198)
        let pieces = [
            "a", "b", ".", "%a", "%d", "%s", "%w", "%p", "%u", "%A", "%S", "[ab]", "[^a]", "[a-c%d]", "[]a]", "[%]-]",
            "()",
            "(a", "(", ")", "b)", "*", "+", "-", "?", "^", "$", "%b()", "%f[%w]", "%.", "%%", "[a-]",
        ]
        let letters = ["a", "b", "c", "1", " ", "(", ")", ".", "%", "-", "]", "A"]
        var cases: [(pattern: String, text: String)] = []
        while cases.count < 6000 {
            let pattern = (0..<Int.random(in: 1...7, using: &generator)).map { _ in
                pieces.randomElement(using: &generator) ?? ""
            }
            .joined()
            let text = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
                letters.randomElement(using: &generator) ?? ""
            }
            .joined()
            guard (try? LuaPattern(Array(pattern.utf8))) != nil else { continue }
            cases.append((pattern, text))
        }
        let answers = try await LuaProgram.answers(cases)
        try #require(answers.count == cases.count)
        var matched = 0
        for (one, answer) in zip(cases, answers) where answer != "error" {
            let pattern = try LuaPattern(Array(one.pattern.utf8))
            let found = try describe(pattern, Array(one.text.utf8))
            #expect(found == answer, "pattern \(one.pattern) on \(one.text)")
            if !found.hasPrefix("nil") { matched += 1 }
        }
        #expect(matched > 1000)
    }

    private func describe(_ pattern: LuaPattern, _ text: [UInt8]) throws -> String {
        func parts(_ match: PatternMatch) -> String {
            match.captures.map { capture in
                switch capture {
                case .range(let range): String(decoding: text[range], as: UTF8.self)
                case .position(let position): "\(position)"
                case .unset: ""
                }
            }.joined(separator: "|")
        }
        var line = "nil"
        if let match = try pattern.firstMatch(in: text) {
            line = "\(match.range.lowerBound + 1),\(match.range.upperBound):\(parts(match))"
        }
        var count = 0
        try pattern.forEachMatch(in: text) { _ in
            count += 1
            return true
        }
        return "\(line);\(count)"
    }
}

/// The installed Lua, with which patterns are compared.
enum LuaProgram {
    static let path: String? = ["/usr/bin/lua5.4", "/usr/bin/lua"].first { access($0, X_OK) == 0 }

    /// Returns the results of `string.find` and `string.gmatch`, one line for each pattern and text.
    static func answers(_ cases: [(pattern: String, text: String)]) async throws -> [String] {
        let script = """
            local input = io.read("a")
            for pattern, text in input:gmatch("([^\\n]*)\\n([^\\n]*)\\n") do
              local ok, line = pcall(function()
                local all = table.pack(string.find(text, pattern))
                local line = "nil"
                if all[1] then
                  local parts = {}
                  for i = 3, all.n do parts[#parts + 1] = tostring(all[i]) end
                  line = all[1] .. "," .. all[2] .. ":" .. table.concat(parts, "|")
                end
                local count = 0
                for _ in string.gmatch(text, pattern) do count = count + 1 end
                return line .. ";" .. count
              end)
              print(ok and line or "error")
            end
            """
        let input = cases.map { "\($0.pattern)\n\($0.text)\n" }.joined()
        let tool = try ToolProcess(path ?? "", ["-e", script], input: input)
        try await tool.ending()
        return tool.lines(of: .standardOutput)
    }
}
