import NIOCore
import TapCore
import TapRecord
import Testing

@testable import TapNetwork

/// Tests the queue of events that a session has not handled yet.
@Suite struct DeferredEventsTests {
    @Test func `Reads of single bytes are joined and keep their order`() {
        var queue = DeferredEvents()
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        for byte in bytes.dropLast(10) { queue.append(.received(.client, ByteBuffer(bytes: [byte]))) }
        #expect(queue.count <= DeferredEvents.separateReads)
        queue.append(.received(.server, ByteBuffer(string: "server")))
        for byte in bytes.suffix(10) { queue.append(.received(.client, ByteBuffer(bytes: [byte]))) }
        queue.append(.ended(.client, .finished))
        #expect(queue.count == DeferredEvents.separateReads + 3)
        var client: [UInt8] = []
        var server = ""
        var hasEnded = false
        while let event = queue.takeFirst() {
            switch event {
            case .received(.client, let buffer, _): client += buffer.readableBytesView
            case .received(.server, let buffer, _): server += String(buffer: buffer)
            case .ended: hasEnded = queue.isEmpty
            case .tls: Issue.record("nothing of TLS")
            }
        }
        #expect(client == bytes && server == "server" && hasEnded && queue.count == 0)
    }

    @Test func `Joined reads keep the borders of TLS records`() {
        var queue = DeferredEvents()
        for _ in 0..<DeferredEvents.separateReads {
            queue.append(.received(.client, ByteBuffer(string: "ab"), records: [1]))
        }
        queue.append(.received(.client, ByteBuffer(string: "cde"), records: [2]))
        var last: [Int]?
        while case .received(_, _, let records)? = queue.takeFirst() { last = records }
        #expect(last == [1, 2, 4])
        for _ in 0...DeferredEvents.separateReads { queue.append(.received(.client, ByteBuffer(string: "ab"))) }
        while case .received(_, _, let records)? = queue.takeFirst() { #expect(records == nil) }
    }

    @Test func `All reads of a leg are joined, and can be moved to the front or removed`() {
        var queue = DeferredEvents()
        for text in ["gone", "a", "b"] { queue.append(.received(.client, ByteBuffer(string: text))) }
        queue.append(.received(.server, ByteBuffer(string: "s")))
        queue.append(.received(.client, ByteBuffer(string: "c")))
        _ = queue.takeFirst()
        queue.join(.client)
        #expect(queue.count == 2)
        guard case .received(.client, let joined, _) = queue.takeFirst() else {
            Issue.record("no bytes of the client")
            return
        }
        #expect(String(buffer: joined) == "abc")
        queue.append(.ended(.client, .finished))
        queue.append(.received(.server, ByteBuffer(string: "t")))
        #expect(String(buffer: queue.takeReads(of: .server)) == "st")
        #expect(queue.takeReads(of: .server).readableBytes == 0 && queue.count == 1)
    }
}
