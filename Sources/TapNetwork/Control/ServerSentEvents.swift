/// An event of a stream of server-sent events.
package struct ServerSentEvent: Sendable, Hashable {
    /// The event's type; `message` if the stream does not name one.
    package var name = "message"
    /// Its data, lines joined by newlines.
    package var data: [UInt8] = []
}

/// Reads server-sent events from bytes as they arrive (HTML, "Server-sent events", §9.2.6). Comments, ids and times of
/// reconnection are passed over.
struct ServerSentEvents {
    /// An event is larger than the limit, so this is not a stream of events.
    struct TooLarge: Error {}

    /// Bytes of an event beyond which it is not kept.
    private let limit: Int
    private var line: [UInt8] = []
    private var event = ServerSentEvent()
    private var hasData = false
    /// The last byte was a carriage return, which ends a line with or without a newline after it.
    private var endsInReturn = false

    init(limit: Int = 64 << 20) { self.limit = limit }

    /// Takes bytes, and hands over the events that are complete with them.
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

    /// The event that an empty line ends.
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
