import TapTestKit
import Testing

@testable import TapCore
@testable import TapRecord

@Suite struct CommandQueueTests {
    fileprivate static func record(_ sequence: UInt64) -> Record {
        Record(
            sequence: sequence,
            time: Timestamp(nanoseconds: 0),
            monotonic: 0,
            kind: .note,
            level: .info,
            part: .session,
            jid: "juliet@example.net/balcony number \(sequence)"
        )
    }

    @Test func `commands of all kinds leave the queue in the order in which they were added`() {
        var queue = CommandQueue()
        var expected: [String] = []
        var found: [String] = []
        var next: UInt64 = 0
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        func take(_ queue: inout CommandQueue) {
            switch queue.advance() {
            case .record where found.count.isMultiple(of: 2):
                found.append("record \(queue.takeRecord()?.record.sequence ?? 0)")
            case .record:
                queue.withRecord { found.append("record \($0.record.sequence)") }
                queue.removeRecord()
            case .send: found.append("send")
            case .recv: found.append("recv")
            case .other:
                guard case .displace(let number) = queue.takeCommand() else { return found.append("another") }
                found.append("displace \(number)")
            case nil: found.append("none")
            }
        }
        var random = SeededGenerator(seed: 7)
        for round in 0..<200 {
            for _ in 0..<Int.random(in: 0...(round % 10 == 0 ? 90 : 6), using: &random) {
                next += 1
                switch next % 5 {
                case 0:
                    queue.append(forwarding: .send)
                    expected.append("send")
                case 1:
                    queue.append(forwarding: .recv)
                    expected.append("recv")
                case 2:
                    queue.append(.displace(next))
                    expected.append("displace \(next)")
                default:
                    queue.append(Self.record(next), by: redactor, at: nil)
                    expected.append("record \(next)")
                }
            }
            let waiting = expected.count - found.count
            for _ in 0..<Int.random(in: 0...waiting, using: &random) { take(&queue) }
            #expect(queue.isEmpty == (found.count == expected.count))
        }
        while !queue.isEmpty { take(&queue) }
        #expect(queue.advance() == nil && queue.takeRecord() == nil)
        // Neither does anything without a record.
        queue.withRecord { _ in Issue.record("a record of an empty queue") }
        queue.removeRecord()
        #expect(queue.isEmpty == true)
        #expect(found == expected && found.count > 900)
    }
}
