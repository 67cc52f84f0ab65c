import Testing

@testable import TapNetwork

@Suite struct ServerSentEventsTests {
    /// Returns the events of a stream that arrives in pieces of this size.
    private static func events(_ stream: String, pieces: Int = 1) throws -> [String] {
        var reader = ServerSentEvents(limit: 1000)
        var events: [String] = []
        let bytes = Array(stream.utf8)
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            try reader.read(bytes[start..<min(start + pieces, bytes.count)]) { event in
                events.append("\(event.name)|\(String(decoding: event.data, as: UTF8.self))")
            }
        }
        return events
    }

    @Test(arguments: [
        ("event: record\nid: a-1\ndata: {\"x\":1}\n\n", ["record|{\"x\":1}"]),
        ("data:a\n\ndata: b\n\n", ["message|a", "message|b"]),
        (": heartbeat\n\n:\n\ndata: a\n\n", ["message|a"]), ("data: a\ndata\ndata:  b\n\n", ["message|a\n\n b"]),
        ("event: x\n\ndata: a\n\n", ["message|a"]), ("data: a\r\n\r\nevent: e\rdata: b\r\r", ["message|a", "e|b"]),
        ("retry: 5\nnonsense\ndata: é\n\n", ["message|é"]), ("data: torn\n", []),
    ])
    func `events are parsed in pieces of any size`(stream: String, events: [String]) throws {
        for pieces in [1, 2, 3, 1000] { #expect(try Self.events(stream, pieces: pieces) == events) }
    }

    @Test func `an event beyond the size limit throws an error`() throws {
        #expect(throws: ServerSentEvents.TooLarge.self) {
            try Self.events("data: " + String(repeating: "x", count: 2000))
        }
        #expect(throws: ServerSentEvents.TooLarge.self) {
            try Self.events(String(repeating: "data: xxxxxxxx\n", count: 200))
        }
    }
}
