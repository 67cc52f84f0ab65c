import TapRecord
import TapTestKit
import Testing

@Suite struct EscapeTests {
    private func log(_ bytes: [UInt8]) -> [UInt8] {
        var line = LineBuffer()
        line.appendEscaped(bytes.span.bytes)
        return line.bytes
    }

    private func log(_ text: String) -> String {
        line { $0.appendEscaped(text) }
    }

    private func json(_ bytes: [UInt8]) -> [UInt8]? {
        var line = LineBuffer()
        return line.appendJSONString(bytes.span.bytes) ? line.bytes : nil
    }

    private func isValid(_ bytes: [UInt8]) -> Bool {
        UTF8Scan.isValid(bytes.span.bytes)
    }

    @Test(arguments: [
        (#"\n\r\t\\\u{1b}\u{202e}\x41"#, "\n\r\t\\\u{1B}\u{202E}A"),
        (#"\u{110000}\u{}\u{d800}\u{0000041}\u{41\u"#, #"\u{110000}\u{}\u{d800}\u{0000041}\u{41\u"#),
        (#"\x{41}\x+1\xZZ\x4"#, #"\x{41}\x+1\xZZ\x4"#), (#"\u{+41}\u{-1}\q\"#, #"\u{+41}\u{-1}\q\"#),
    ])
    func `escape sequences of a log are resolved`(shown: String, text: String) {
        #expect(Escape.resolved(Array(shown.utf8)[...]) == Array(text.utf8))
    }

    @Test(arguments: [
        ("", ""),
        ("<iq xmlns=\"jabber:client\" type='result'/>", "<iq xmlns=\"jabber:client\" type='result'/>"),
        ("a\nb\r\tc", #"a\nb\r\tc"#),
        (#"C:\new"#, #"C:\\new"#),
        ("\0\u{1}\u{1F}\u{7F}", #"\u{0}\u{1}\u{1f}\u{7f}"#),
        ("\u{1B}[2J\u{1B}]0;title\u{7}", #"\u{1b}[2J\u{1b}]0;title\u{7}"#),
        ("\u{80}\u{85}\u{9B}31m\u{9F}\u{A0}", "\\u{80}\\u{85}\\u{9b}31m\\u{9f}\u{A0}"),
        ("\u{61C}\u{200E}\u{200F}\u{2028}\u{2029}", #"\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}"#),
        ("\u{202A}\u{202E}\u{2066}\u{2069}", #"\u{202a}\u{202e}\u{2066}\u{2069}"#),
        ("\u{200B}\u{2060}\u{FEFF}\u{FFF9}\u{E0041}", #"\u{200b}\u{2060}\u{feff}\u{fff9}\u{e0041}"#),
        ("Ärger 日本語 👩‍👩‍👧 ❤️ می‌خواهم", "Ärger 日本語 👩‍👩‍👧 ❤️ می‌خواهم"),
    ])
    func `control characters are escaped in a log`(text: String, shown: String) {
        #expect(log(text) == shown)
    }

    @Test(arguments: [
        ([0xFF], #"\xff"#), ([0x80], #"\x80"#), ([0xC3], #"\xc3"#), ([0xC3, 0x28], #"\xc3("#),
        // Overlong forms of / and NUL, a surrogate, a code point beyond U+10FFFF, a sequence of five bytes: each byte
        // is escaped separately.
        ([0xC0, 0xAF], #"\xc0\xaf"#), ([0xE0, 0x80, 0x80], #"\xe0\x80\x80"#), ([0xED, 0xA0, 0x80], #"\xed\xa0\x80"#),
        ([0xF4, 0x90, 0x80, 0x80], #"\xf4\x90\x80\x80"#), ([0xF8, 0x88, 0x80, 0x80, 0x80], #"\xf8\x88\x80\x80\x80"#),
        // An incomplete character, and a valid character after an invalid byte.
        ([0xF0, 0x9F, 0x98], #"\xf0\x9f\x98"#), ([0xE2, 0xC3, 0xA4], "\\xe2ä"),
    ])
    func `invalid UTF-8 is escaped in a log and refused as JSON`(bytes: [UInt8], shown: String) {
        #expect(String(decoding: log(bytes), as: UTF8.self) == shown)
        #expect(json(bytes) == nil)
        #expect(!isValid(bytes))
    }

    @Test func `no control byte is written to a terminal`() {
        // Tests each byte at each position of the blocks of eight bytes, in text without other special characters.
        for byte in UInt8.min...UInt8.max {
            for place in 0..<17 {
                var bytes = [UInt8](repeating: 0x61, count: 17)
                bytes[place] = byte
                let shown = log(bytes)
                #expect(shown.allSatisfy { (0x20...0x7E).contains($0) }, "byte \(byte) at \(place)")
                #expect(unescape(shown) == bytes, "byte \(byte) at \(place)")
            }
        }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48])
    func `a special byte is escaped at each position`(length: Int) {
        for byte: UInt8 in [0x00, 0x0A, 0x1F, 0x22, 0x5C, 0x7F, 0x80, 0x9B, 0xC3, 0xFF] {
            for place in 0..<length {
                var bytes = (0..<length).map { UInt8(0x61 + $0 % 26) }
                bytes[place] = byte
                let shown = log(bytes)
                let isSafe = shown.allSatisfy { (0x20...0x7E).contains($0) } && unescape(shown) == bytes
                #expect(isSafe, "byte \(byte) at \(place)")
                let quoted = json(bytes)
                #expect((quoted == nil) == (byte >= 0x80), "byte \(byte) at \(place)")
                guard let quoted else { continue }
                let isWhole = try? JSONValue(quoted.span.bytes).text == String(decoding: bytes, as: UTF8.self)
                #expect(isWhole == true, "byte \(byte) at \(place)")
            }
        }
    }

    @Test func `escaped text can be restored`() {
        var random = SeededGenerator(seed: 3)
        for round in 0..<2000 {
            let bytes =
                round.isMultiple(of: 2)
                ? random.bytes(count: Int.random(in: 0..<100, using: &random))
                : Array(random.hostileText(count: Int.random(in: 0..<60, using: &random)).utf8)
            let shown = log(bytes)
            #expect(unescape(shown) == bytes)
            #expect(String(validating: shown, as: UTF8.self) != nil)
        }
    }

    @Test func `text longer than a block is written completely`() {
        // Characters of three bytes, some of which cross the boundary between two blocks.
        let text = "x" + String(repeating: "日\n", count: 5000)
        #expect(log(text) == "x" + String(repeating: #"日\n"#, count: 5000))
        #expect(log([UInt8](repeating: 0xFF, count: 5000)).count == 20_000)
        let controls = String(repeating: "\u{1}", count: 5000)
        #expect(line { $0.appendJSONString(controls) } == "\"" + String(repeating: #"\u0001"#, count: 5000) + "\"")
        let tags = String(repeating: "\u{E0041}", count: 5000)
        #expect(line { $0.appendJSONString(tags) } == "\"" + String(repeating: #"\udb40\udc41"#, count: 5000) + "\"")
    }

    @Test(arguments: [
        ("", #""""#), ("a\"b\\c/d", #""a\"b\\c/d""#), ("\u{8}\u{C}\n\r\t", #""\b\f\n\r\t""#),
        ("\0\u{1B}\u{7F}\u{9B}", #""\u0000\u001b\u007f\u009b""#),
        ("\u{202E}\u{2028}\u{FEFF}", #""\u202e\u2028\ufeff""#),
        ("\u{E0001}", #""\udb40\udc01""#), ("ä€😀", #""ä€😀""#),
    ])
    func `JSON strings are escaped`(text: String, shown: String) {
        #expect(line { $0.appendJSONString(text) } == shown)
    }

    @Test func `a refused JSON string leaves the line unchanged`() {
        var line = LineBuffer()
        line.append("before")
        let bad = [UInt8](repeating: 0x61, count: 5000) + [0xFF]
        let isWritten = line.appendJSONString(bad.span.bytes)
        #expect(!isWritten)
        #expect(line.bytes == Array("before".utf8))
    }

    @Test func `UTF-8 validation agrees with the standard library`() {
        var random = SeededGenerator(seed: 4)
        for _ in 0..<20_000 {
            var bytes = Array(random.hostileText(count: 4).utf8)
            let place = Int.random(in: bytes.indices, using: &random)
            bytes[place] = UInt8.random(in: 0...255, using: &random)
            #expect(isValid(bytes) == (String(validating: bytes, as: UTF8.self) != nil), "\(bytes)")
        }
    }

    /// Decodes a line of the log form, independently of the writer.
    private func unescape(_ shown: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = shown[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "\\"): bytes.append(0x5C)
            case UInt8(ascii: "x"):
                bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                rest = rest.dropFirst(2)
            default:
                let digits = rest.dropFirst().prefix { $0 != UInt8(ascii: "}") }
                let value = UInt32(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0
                bytes += Array(String(Unicode.Scalar(value).map(Character.init) ?? "?").utf8)
                rest = rest.dropFirst(digits.count + 2)
            }
        }
        return bytes
    }
}
