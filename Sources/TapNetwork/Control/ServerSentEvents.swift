/// An event in a `text/event-stream` answer.
package struct ServerSentEvent: Sendable, Hashable {
    /// The event's type; `message` if the stream does not name one.
    package var name = "message"
    /// The event's data: its lines, joined by newlines.
    package var data: [UInt8] = []
}

/// Parses server-sent events from bytes as they arrive (HTML, "Server-sent events", §9.2.6). Comments, ids and
/// reconnection times are ignored.
struct ServerSentEvents {
    /// An event exceeds the limit; probably the data is not an event stream.
    struct TooLarge: Error {}

    /// Maximum size of an event in bytes.
    private let limit: Int
    private var line: [UInt8] = []
    private var event = ServerSentEvent()
    private var hasData = false
    /// Whether the last byte was a carriage return. It ends the line; a newline directly after it is skipped.
    private var endsInReturn = false

    init(limit: Int = 64 << 20) { self.limit = limit }

    /// Parses bytes, and calls `body` with each event that they complete.
    mutating func read(_ bytes: some Sequence<UInt8>, _ body: (ServerSentEvent) throws -> Void) throws {
        for byte in bytes {
            defer { endsInReturn = byte == 0x0D }
            switch byte {
            case 0x0A where endsInReturn: break
            case 0x0A, 0x0D: if let event = endLine() { try body(event) }
            default:
                guard line.count + event.data.count < limit else { throw TooLarge() }
                line.append(byte)
            }
        }
    }

    /// Ends a line. Returns the event if the line is empty and an event is complete.
    private mutating func endLine() -> ServerSentEvent? {
        defer { line.removeAll(keepingCapacity: true) }
        guard !line.isEmpty else {
            defer {
                event = ServerSentEvent()
                hasData = false
            }
            return hasData ? event : nil
        }
        let colon = line.firstIndex(of: 0x3A) ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == 0x20 { value.removeFirst() }
        if line[..<colon].elementsEqual("data".utf8) {
            if hasData { event.data.append(0x0A) }
            event.data += value
            hasData = true
        } else if line[..<colon].elementsEqual("event".utf8) {
            event.name = String(decoding: value, as: UTF8.self)
        }
        return nil
    }
}
