import NIOCore
import TapRecord
import TapTestKit
import Testing

@testable import TapControl

/// Live records for a client that reads too slowly.
struct EventStreamTests {
    private func write(_ count: Int, to stream: EventStream) {
        for number in 0..<count {
            let record = Record(
                sequence: UInt64(number),
                time: Timestamp(nanoseconds: 0),
                monotonic: 0,
                kind: .note,
                level: .info,
                part: .session
            )
            stream.write(record.shown, content: Span())
        }
    }

    @Test func `records that a slow client does not read are dropped, and an event has their number`() {
        let stream = EventStream("record", level: .info, run: "run") { record, _, data in
            data.append(string: String(repeating: "x", count: 1000))
            data.endLine()
            return true
        }
        #expect(!stream.isCongested)
        write(5000, to: stream)
        #expect(!stream.isCongested)
        let text = String(buffer: stream.take())
        let kept = text.split(separator: "\n").count { $0.hasPrefix("data: x") }
        #expect(kept > 1000 && kept < 1049)
        #expect(text.hasSuffix("event: lost\ndata: {\"records\":\(5000 - kept)}\n\n"))
        // Later records are sent again.
        write(1, to: stream)
        #expect(String(buffer: stream.take()).hasPrefix("event: record\nid: run-0\ndata: x"))
        #expect(String(buffer: stream.take()) == ": still here\n\n")
    }

    @Test func `records without an event and records after the end are not sent`() {
        let stream = EventStream("hit", level: .info) { record, _, data in
            data.openObject()
            data.closeObject()
            data.endLine()
            return record.sequence % 2 == 0
        }
        write(5, to: stream)
        #expect(String(buffer: stream.take()) == String(repeating: "event: hit\ndata: {}\n\n", count: 3))
        stream.finish()
        write(5, to: stream)
        #expect(String(buffer: stream.take()) == ": still here\n\n")
    }
}
