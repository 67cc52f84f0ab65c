import TapTestKit
import Testing
import XMPPCore

private let key: UInt32 = 0x37FA_213D

/// Frames of a client are masked, those of a server are not.
private func bytes(_ frames: [TestFrame], from sender: WebSocketSender) -> [UInt8] {
    frames.flatMap { frame -> [UInt8] in
        var frame = frame
        if sender == .client { frame.maskKey = frame.maskKey ?? key }
        return frame.bytes
    }
}

@Suite struct WebSocketFrameDecoderTests {
    /// The examples of RFC 6455 §5.7.
    @Test func `the examples of RFC 6455 are decoded`() {
        let hello: [UInt8] = [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F]
        #expect(FrameTranscript(hello, from: .server).lines == ["0 text final 5 header 2", "text 1 5"])
        #expect(FrameTranscript(hello, from: .server).messages == [Array("Hello".utf8), []])
        let masked: [UInt8] = [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58]
        let transcript = FrameTranscript(masked, from: .client)
        #expect(transcript.lines == ["0 text final 5 key 37fa213d header 6", "text 1 5"])
        #expect(transcript.messages == [Array("Hello".utf8), []])
        let fragments: [UInt8] = [0x01, 0x03, 0x48, 0x65, 0x6C, 0x80, 0x02, 0x6C, 0x6F]
        #expect(
            FrameTranscript(fragments, from: .server).lines == [
                "0 text 3 header 2", "5 continuation final 2 header 2", "text 2 5",
            ]
        )
        #expect(FrameTranscript([0x89] + hello.dropFirst(), from: .server).lines.last == "ping: Hello")
        #expect(FrameTranscript([0x8A] + masked.dropFirst(), from: .client).lines.last == "pong: Hello")
        for count in [256, 65536] {
            let frame = TestFrame(0x82, [UInt8](repeating: 7, count: count))
            #expect(frame.bytes[1] == (count == 256 ? 0x7E : 0x7F))
            #expect(FrameTranscript(frame.bytes, from: .server).lines.last == "binary 1 \(count)")
        }
    }

    @Test(
        arguments: [0, 1, 15, 16, 17, 124, 125, 126, 127, 128, 65535, 65536, 65537],
        [WebSocketSender.client, .server]
    )
    func `all encodings of lengths are decoded`(_ count: Int, _ sender: WebSocketSender) {
        let payload = (0..<count).map { UInt8($0 % 127) }
        let input = bytes([TestFrame(0x81, payload), TestFrame(0x81, "next")], from: sender)
        let transcript = FrameTranscript(input, from: sender)
        #expect(transcript.messages == [payload, Array("next".utf8), []])
        #expect(transcript.isBetweenMessages && transcript.offset == UInt64(input.count))
        // Header and ends at each byte; in the middle of large payloads, a few places.
        let near = Set((1..<min(40, input.count)).map { $0 } + (max(1, input.count - 20)..<input.count))
        let cuts = near.sorted().map { [$0] } + [Array(stride(from: 7, to: input.count, by: max(7, count / 50)))]
        if let difference = FrameTranscript.difference(input, from: sender, cuts: cuts) {
            Issue.record("\(difference)")
        }
    }

    struct Refusal: CustomTestStringConvertible {
        var sender = WebSocketSender.server
        var frames: [TestFrame]
        var fault: String
        var testDescription: String { fault + " from \(sender)" }

        init(_ fault: String, _ frames: TestFrame..., from sender: WebSocketSender = .server) {
            self.sender = sender
            self.frames = frames
            self.fault = fault
        }
    }

    static let refusals: [Refusal] = [
        Refusal("reserved-bit at 0 0", TestFrame(0xC1, "a")),
        Refusal("reserved-bit at 3 0", TestFrame(0x01, "a"), TestFrame(0xA0, "b")),
        Refusal("reserved-bit at 0 0", TestFrame(0x99)),
        Refusal("reserved-bit at 0 0", TestFrame(0xF3)),
        Refusal("reserved-opcode at 0 0", TestFrame(0x83)),
        Refusal("reserved-opcode at 0 0", TestFrame(0x07)),
        Refusal("reserved-opcode at 0 0", TestFrame(0x8B)),
        Refusal("reserved-opcode at 2 0", TestFrame(0x89), TestFrame(0x8F)),
        Refusal("masked-frame at 1 0", TestFrame(0x81, "a", maskKey: 0)),
        Refusal("masked-frame at 4 0", TestFrame(0x89, "a"), TestFrame(0x8A, "a", maskKey: 1)),
        Refusal("fragmented-control-frame at 0 0", TestFrame(0x09, "a")),
        Refusal("fragmented-control-frame at 0 0", TestFrame(0x08)),
        Refusal("fragmented-control-frame at 3 0", TestFrame(0x01, "a"), TestFrame(0x0A)),
        Refusal("limit-control-frame at 1 125", TestFrame(0x89, [UInt8](repeating: 1, count: 126))),
        Refusal("limit-control-frame at 1 125", TestFrame(0x88, length: [127])),
        Refusal("unexpected-continuation at 0 0", TestFrame(0x80, "a")),
        Refusal("unexpected-continuation at 0 0", TestFrame(0x00)),
        Refusal("unexpected-continuation at 3 0", TestFrame(0x81, "a"), TestFrame(0x80, "b")),
        Refusal("unfinished-message at 3 0", TestFrame(0x01, "a"), TestFrame(0x81, "b")),
        Refusal("unfinished-message at 5 0", TestFrame(0x01, "a"), TestFrame(0x89), TestFrame(0x02, "b")),
        Refusal("length-not-minimal at 2 0", TestFrame(0x81, length: [126, 0, 125])),
        Refusal("length-not-minimal at 2 0", TestFrame(0x81, length: [127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF])),
        Refusal("length-not-minimal at 2 0", TestFrame(0x82, length: [127, 0, 0, 0, 0, 0, 0, 0, 0])),
        Refusal("length-overflow at 2 0", TestFrame(0x82, length: [127, 0x80, 0, 0, 0, 0, 0, 0, 0])),
        Refusal(
            "length-overflow at 2 0",
            TestFrame(0x82, length: [127] + [UInt8](repeating: 0xFF, count: 8))
        ),
        Refusal("limit-message at 1 1048576", TestFrame(0x82, length: [127, 0, 0, 0, 0, 0, 0x10, 0, 1])),
        Refusal(
            "limit-message at 1 1048576",
            TestFrame(0x81, length: [127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        ),
        Refusal(
            "limit-message at 4 1048576",
            TestFrame(0x01, "a"),
            TestFrame(0x80, length: [127, 0, 0, 0, 0, 0, 0x10, 0, 0])
        ),
        Refusal("malformed-close at 2 0", TestFrame(0x88, [3])),
        Refusal("invalid-utf-8 at 2 0", TestFrame(0x81, [0xFF])),
        Refusal("invalid-utf-8 at 8 0", TestFrame(0x01, "\u{1F600}"), TestFrame(0x80, [0x80])),
        Refusal("invalid-utf-8 at 6 0", TestFrame(0x01, [0x61, 0xE2]), TestFrame(0x80, [0x28])),
        Refusal("invalid-utf-8 at 5 0", TestFrame(0x81, [0x61, 0xE2, 0x82])),
        Refusal("invalid-utf-8 at 6 0", TestFrame(0x01, [0x61, 0xE2]), TestFrame(0x80)),
        Refusal("invalid-utf-8 at 5 0", TestFrame(0x88, [0x03, 0xE8, 0x61, 0xFF])),
        Refusal("invalid-utf-8 at 6 0", TestFrame(0x88, [0x03, 0xE8, 0xF0, 0x9F])),
        Refusal("after-close at 2 0", TestFrame(0x88), TestFrame(0x81, "a")),
        Refusal("after-close at 4 0", TestFrame(0x88, [0x03, 0xE8]), TestFrame(0x88)),
    ]

    @Test(arguments: refusals) func `a protocol violation is refused with its code`(_ refusal: Refusal) {
        let input = refusal.frames.flatMap(\.bytes)
        #expect(FrameTranscript(input, from: refusal.sender).fault == "fault " + refusal.fault)
        if let difference = FrameTranscript.difference(input, from: refusal.sender) { Issue.record("\(difference)") }
    }

    @Test func `clients must mask their frames`() {
        let input = TestFrame(0x81, "a", maskKey: 9).bytes + TestFrame(0x81, "b").bytes
        #expect(FrameTranscript(input, from: .client).fault == "fault unmasked-frame at 8 0")
        #expect(FrameTranscript.difference(input, from: .client) == nil)
        let zero = TestFrame(0x81, "a", maskKey: 0).bytes
        #expect(FrameTranscript(zero, from: .client).messages == [[0x61], []])
    }

    @Test func `only close codes that may be sent are accepted`() {
        for code in Array(0...5) + Array(990...1020) + [1100, 2000, 2999, 3000, 3999, 4000, 4999, 5000, 65535] {
            let isAllowed =
                (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code)
            let frame = TestFrame(0x88, [UInt8(code >> 8), UInt8(code & 255)] + Array("bye".utf8))
            let transcript = FrameTranscript(frame.bytes, from: .server)
            #expect(transcript.lines.last == (isAllowed ? "close \(code): bye" : "fault close-code at 2 0"))
        }
    }

    @Test func `control frames may arrive between fragments`() {
        let frames = [
            TestFrame(0x01, "<mess"), TestFrame(0x89, "1"), TestFrame(0x00),
            TestFrame(0x8A, [UInt8](repeating: 65, count: 125)),
            TestFrame(0x80, "age/>"), TestFrame(0x88, [0x03, 0xE9]),
        ]
        for sender in [WebSocketSender.client, .server] {
            let input = bytes(frames, from: sender)
            let transcript = FrameTranscript(input, from: sender)
            #expect(transcript.messages.first == Array("<message/>".utf8))
            #expect(transcript.lines.filter { $0.hasPrefix("text") } == ["text 3 10"])
            #expect(transcript.lines.last == "close 1001: ")
            #expect(FrameTranscript.difference(input, from: sender) == nil)
        }
    }

    @Test func `a binary message is accepted and marked as binary`() {
        let transcript = FrameTranscript(TestFrame(0x82, [0xFF, 0xFE]).bytes, from: .server)
        #expect(transcript.lines == ["0 binary final 2 header 2", "binary 1 2"])
    }

    @Test func `compressed messages are accepted if negotiated`() {
        let input = TestFrame(0x41, [0xFF, 0xFE]).bytes + TestFrame(0x80, [0xFD]).bytes
        let transcript = FrameTranscript(input, from: .server, acceptsCompression: true)
        #expect(transcript.lines.first == "0 text 2 compressed header 2")
        #expect(transcript.lines.last == "text 2 3")
        #expect(FrameTranscript.difference(input, from: .server, acceptsCompression: true) == nil)
        for (frames, offset) in [
            ([TestFrame(0xC9)], 0), ([TestFrame(0xC8)], 0), ([TestFrame(0xA1)], 0), ([TestFrame(0x91)], 0),
            ([TestFrame(0x01, "a"), TestFrame(0xC0)], 3),
        ] {
            let input = frames.flatMap(\.bytes)
            #expect(
                FrameTranscript(input, from: .server, acceptsCompression: true).fault
                    == "fault reserved-bit at \(offset) 0"
            )
        }
        let plain = FrameTranscript(TestFrame(0x81, [0xFF]).bytes, from: .server, acceptsCompression: true)
        #expect(plain.fault == "fault invalid-utf-8 at 2 0")
    }

    @Test func `the limit applies to the sum of the fragments`() {
        let frames = [TestFrame(0x01, "12345"), TestFrame(0x00, "12345"), TestFrame(0x80, "1")]
        let input = frames.flatMap(\.bytes)
        #expect(FrameTranscript(input, from: .server, messageBytes: 11).lines.last == "text 3 11")
        #expect(FrameTranscript(input, from: .server, messageBytes: 10).fault == "fault limit-message at 15 10")
        #expect(FrameTranscript.difference(input, from: .server, messageBytes: 10) == nil)
        #expect(FrameTranscript(input, from: .server, messageBytes: -1).fault == "fault limit-message at 1 -1")
        let large = FrameTranscript(
            TestFrame(0x82, length: [127, 0x7F] + [UInt8](repeating: 0xFF, count: 7)).bytes,
            from: .server,
            messageBytes: .max
        )
        #expect(large.lines == ["0 binary final \(Int.max) header 10"])
    }

    @Test func `a frame of any size passes without being stored`() {
        var decoder = WebSocketFrameDecoder(.client, messageBytes: .max)
        var payload: [UInt8] = []
        let header: [UInt8] = [0x82, 0xFF, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4]
        #expect(decoder.next(header.span, into: &payload) == .header(length: 14))
        let piece = (0..<10_007).map { UInt8(truncatingIfNeeded: 1 + $0 % 4) }
        var read = 0
        for _ in 0..<100 {
            let shifted = Array(piece[(read % 4)...])
            #expect(decoder.next(shifted.span, into: &payload) == .payload(length: shifted.count, endsMessage: false))
            #expect(payload.allSatisfy { $0 == 0 })
            read += shifted.count
            payload.removeAll(keepingCapacity: true)
        }
        #expect(decoder.offset == UInt64(14 + read) && !decoder.isBetweenFrames)
    }
}
