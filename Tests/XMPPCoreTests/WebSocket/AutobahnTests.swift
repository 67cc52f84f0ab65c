import Testing
import XMPPCore

/// The cases of the Autobahn test suite (crossbario/autobahn-testsuite) that concern a decoder, by their numbers. What
/// the suite lets an endpoint ignore after a close frame, a decoder reports.
@Suite struct AutobahnTests {
    struct Case: CustomTestStringConvertible {
        var number: String
        var frames: [TestFrame]
        /// The code of the fault; nil if the frames are accepted.
        var fault: String?
        var testDescription: String { number }

        init(_ number: String, _ fault: String?, _ frames: [TestFrame]) {
            self.number = number
            self.fault = fault
            self.frames = frames
        }
    }

    private static func text(_ bytes: [UInt8]) -> [TestFrame] { [TestFrame(0x81, bytes)] }

    private static func close(_ code: Int, _ reason: [UInt8] = []) -> TestFrame {
        TestFrame(0x88, [UInt8(code >> 8 & 255), UInt8(code & 255)] + reason)
    }

    private static let greek: [UInt8] = [0xCE, 0xBA, 0xE1, 0xBD, 0xB9, 0xCF, 0x83, 0xCE, 0xBC, 0xCE, 0xB5]
    private static let longPing = [UInt8](repeating: 0xFE, count: 125)

    static let control: [Case] = [
        Case("2.1", nil, [TestFrame(0x89)]),
        Case("2.2", nil, [TestFrame(0x89, "Hello, world!")]),
        Case("2.3", nil, [TestFrame(0x89, [0, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0, 0xFF])]),
        Case("2.4", nil, [TestFrame(0x89, longPing)]),
        Case("2.5", "limit-control-frame", [TestFrame(0x89, longPing + [0xFE])]),
        Case("2.7", nil, [TestFrame(0x8A)]),
        Case("2.8", nil, [TestFrame(0x8A, "unsolicited pong payload")]),
        Case("2.9", nil, [TestFrame(0x8A, "unsolicited"), TestFrame(0x89, "ping payload")]),
        Case("2.10", nil, (0..<10).map { TestFrame(0x89, "payload-\($0)") }),
        Case("3.1", "reserved-bit", [TestFrame(0xC1, "Hello")]),
        Case("3.2", "reserved-bit", [TestFrame(0x81, "Hello"), TestFrame(0xA1, "Hello"), TestFrame(0x89)]),
        Case("3.3", "reserved-bit", [TestFrame(0x81, "Hello"), TestFrame(0xB1, "Hello"), TestFrame(0x89)]),
        Case("3.5", "reserved-bit", [TestFrame(0xD2, [0, 0xFF])]),
        Case("3.6", "reserved-bit", [TestFrame(0xE9, "Hello")]),
        Case("3.7", "reserved-bit", [TestFrame(0xF8)]),
    ]

    static let opcodes: [Case] = ([3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8]).enumerated().map { index, opcode in
        let number = index < 5 ? "4.1.\(index + 1)" : "4.2.\(index - 4)"
        return Case(number, "reserved-opcode", [TestFrame(0x81, "Hello"), TestFrame(0x80 | opcode, "reserved")])
    }

    static let fragments: [Case] = [
        Case("5.1", "fragmented-control-frame", [TestFrame(0x09, "frag"), TestFrame(0x80, "ment")]),
        Case("5.2", "fragmented-control-frame", [TestFrame(0x0A, "frag"), TestFrame(0x80, "ment")]),
        Case("5.3", nil, [TestFrame(0x01, "frag"), TestFrame(0x80, "ment")]),
        Case("5.6", nil, [TestFrame(0x01, "frag"), TestFrame(0x89, "ping"), TestFrame(0x80, "ment")]),
        Case("5.9", "unexpected-continuation", [TestFrame(0x80, "cont"), TestFrame(0x81, "Hello")]),
        Case("5.12", "unexpected-continuation", [TestFrame(0x00, "cont"), TestFrame(0x81, "Hello")]),
        Case(
            "5.15",
            "unexpected-continuation",
            [
                TestFrame(0x01, "1"), TestFrame(0x80, "2"), TestFrame(0x00, "3"), TestFrame(0x01, "4"),
                TestFrame(0x80, "5"),
            ]
        ),
        Case("5.18", "unfinished-message", [TestFrame(0x01, "frag"), TestFrame(0x81, "ment")]),
        Case(
            "5.19",
            nil,
            [
                TestFrame(0x01, "1"), TestFrame(0x00, "2"), TestFrame(0x89, "pongme 1!"), TestFrame(0x00, "3"),
                TestFrame(0x00, "4"), TestFrame(0x89, "pongme 2!"), TestFrame(0x80, "5"),
            ]
        ),
        Case("6.1.1", nil, text([])),
        Case("6.1.2", nil, [TestFrame(0x01), TestFrame(0x00), TestFrame(0x80)]),
        Case("6.1.3", nil, [TestFrame(0x01), TestFrame(0x00, "middle frame payload"), TestFrame(0x80)]),
        Case("6.2.1", nil, [TestFrame(0x81, "Hello-µ@ßöäüàá-UTF-8!!")]),
        Case("6.2.2", nil, [TestFrame(0x01, "Hello-µ@ßöä"), TestFrame(0x80, "üàá-UTF-8!!")]),
        Case(
            "6.2.3",
            nil,
            "Hello-µ@ßöäüàá-UTF-8!!".utf8.enumerated().map { TestFrame($0 == 0 ? 1 : 0, [$1]) }
                + [TestFrame(0x80)]
        ),
        Case("6.3.1", "invalid-utf-8", text(greek + [0xED, 0xA0, 0x80] + Array("edited".utf8))),
        Case(
            "6.3.2",
            "invalid-utf-8",
            (greek + [0xED, 0xA0, 0x80]).enumerated().map {
                TestFrame($0 == 0 ? 1 : 0, [$1])
            }
        ),
        Case("6.4.1", "invalid-utf-8", [TestFrame(0x01, greek), TestFrame(0x00, [0xF4, 0x90, 0x80, 0x80])]),
        Case("6.4.2", "invalid-utf-8", [TestFrame(0x01, greek + [0xF4]), TestFrame(0x00, [0x90])]),
    ]

    /// Sections 6.5 to 6.23: texts in one frame.
    static let texts: [Case] = {
        let valid: [(String, [UInt8])] = [
            ("6.5.5", greek), ("6.6.2", [0xCE, 0xBA]), ("6.6.5", [0xCE, 0xBA, 0xE1, 0xBD, 0xB9]), ("6.7.1", [0]),
            ("6.7.2", [0xC2, 0x80]), ("6.7.3", [0xE0, 0xA0, 0x80]), ("6.7.4", [0xF0, 0x90, 0x80, 0x80]),
            ("6.9.1", [0x7F]),
            ("6.9.2", [0xDF, 0xBF]), ("6.9.3", [0xEF, 0xBF, 0xBF]), ("6.9.4", [0xF4, 0x8F, 0xBF, 0xBF]),
            ("6.11.1", [0xED, 0x9F, 0xBF]), ("6.11.2", [0xEE, 0x80, 0x80]), ("6.11.3", [0xEF, 0xBF, 0xBD]),
            ("6.11.4", [0xF4, 0x8F, 0xBF, 0xBF]), ("6.22.1", [0xEF, 0xBF, 0xBE]), ("6.22.3", [0xF0, 0x9F, 0xBF, 0xBE]),
            ("6.23.1", [0xEF, 0xBF, 0xBD]),
        ]
        let invalid: [(String, [UInt8])] = [
            ("6.6.1", [0xCE]), ("6.6.3", [0xCE, 0xBA, 0xE1]), ("6.6.4", [0xCE, 0xBA, 0xE1, 0xBD]),
            ("6.8.1", [0xF8, 0x88, 0x80, 0x80, 0x80]), ("6.8.2", [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80]),
            ("6.10.1", [0xF7, 0xBF, 0xBF, 0xBF]), ("6.10.2", [0xFB, 0xBF, 0xBF, 0xBF, 0xBF]),
            ("6.11.5", [0xF4, 0x90, 0x80, 0x80]), ("6.12.1", [0x80]), ("6.12.2", [0xBF]), ("6.12.3", [0x80, 0xBF]),
            ("6.13.1", [0xC0, 0x20, 0xC1, 0x20]), ("6.13.2", [0xE0, 0x20]), ("6.13.3", [0xF0, 0x20]),
            ("6.13.4", [0xF8, 0x20]),
            ("6.14.1", [0xC0]), ("6.14.2", [0xE0, 0x80]), ("6.14.3", [0xF0, 0x80, 0x80]), ("6.14.6", [0xDF]),
            ("6.14.7", [0xEF, 0xBF]), ("6.14.8", [0xF7, 0xBF, 0xBF]), ("6.16.1", [0xFE]), ("6.16.2", [0xFF]),
            ("6.17.1", [0xC0, 0xAF]), ("6.17.2", [0xE0, 0x80, 0xAF]), ("6.17.3", [0xF0, 0x80, 0x80, 0xAF]),
            ("6.18.1", [0xC1, 0xBF]), ("6.18.2", [0xE0, 0x9F, 0xBF]), ("6.18.3", [0xF0, 0x8F, 0xBF, 0xBF]),
            ("6.19.1", [0xC0, 0x80]), ("6.19.2", [0xE0, 0x80, 0x80]), ("6.20.1", [0xED, 0xA0, 0x80]),
            ("6.20.7", [0xED, 0xBF, 0xBF]), ("6.21.1", [0xED, 0xA0, 0x80, 0xED, 0xB0, 0x80]),
        ]
        return valid.map { Case($0, nil, text($1)) } + invalid.map { Case($0, "invalid-utf-8", text($1)) }
    }()

    static let closes: [Case] =
        [
            Case("7.1.1", nil, [TestFrame(0x81, "Hello World!"), TestFrame(0x88)]),
            Case("7.1.2", "after-close", [TestFrame(0x88), TestFrame(0x88)]),
            Case("7.1.3", "after-close", [TestFrame(0x88), TestFrame(0x89)]),
            Case("7.1.4", "after-close", [TestFrame(0x88), TestFrame(0x81, "Hello World!")]),
            Case("7.1.5", "after-close", [TestFrame(0x01, "fragment1"), close(1000), TestFrame(0x80, "fragment2")]),
            Case("7.3.1", nil, [TestFrame(0x88)]), Case("7.3.2", "malformed-close", [TestFrame(0x88, "a")]),
            Case("7.3.3", nil, [close(1000)]), Case("7.3.4", nil, [close(1000, Array("Hello World!".utf8))]),
            Case("7.3.5", nil, [close(1000, [UInt8](repeating: 0x2A, count: 123))]),
            Case("7.3.6", "limit-control-frame", [close(1000, [UInt8](repeating: 0x2A, count: 124))]),
            Case("7.5.1", "invalid-utf-8", [close(1000, greek + [0xED, 0xA0, 0x80])]),
            Case("7.13.1", "close-code", [close(5000)]), Case("7.13.2", "close-code", [TestFrame(0x88, [0, 1, 0, 0])]),
        ]
        + [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999].enumerated()
        .map { Case("7.7.\($0 + 1)", nil, [close($1)]) }
        + [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999].enumerated()
        .map { Case("7.9.\($0 + 1)", "close-code", [close($1)]) }

    @Test(arguments: control + opcodes + fragments + texts + closes) func `the Autobahn cases are judged as expected`(
        _ one: Case
    ) {
        for sender in [WebSocketSender.client, .server] {
            let input = one.frames.flatMap { frame -> [UInt8] in
                var frame = frame
                if sender == .client { frame.maskKey = 0x5A3C_0FF1 }
                return frame.bytes
            }
            let transcript = FrameTranscript(input, from: sender)
            #expect(transcript.fault?.split(separator: " ")[1].description == one.fault)
            if one.fault == nil { #expect(transcript.offset == UInt64(input.count) && transcript.isBetweenMessages) }
            if let difference = FrameTranscript.difference(input, from: sender) { Issue.record("\(difference)") }
        }
    }
}
