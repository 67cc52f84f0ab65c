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

    @Test func `A record in use cannot be taken, used again or moved by another`() async {
        // Each of these closures would access a record that was removed, or memory that was freed.
        await #expect(processExitsWith: .failure) {
            let queue = CommandQueueTests.filled(1)
            queue.records.useFirst { _ in _ = queue.records.takeFirst() }
        }
        await #expect(processExitsWith: .failure) {
            let queue = CommandQueueTests.filled(2)
            queue.records.useFirst { _ in queue.records.useFirst { _ in } }
        }
        await #expect(processExitsWith: .failure) {
            let queue = CommandQueueTests.filled(2)
            let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
            queue.records.useFirst { _ in
                queue.records.append(CommandQueueTests.record(2), by: redactor, at: nil)
            }
        }
        await #expect(processExitsWith: .failure) {
            _ = CommandQueue().records.takeFirst()
        }
        await #expect(processExitsWith: .failure) {
            CommandQueue().records.useFirst { _ in }
        }
        let queue = Self.filled(2)
        queue.records.useFirst { #expect($0.record.sequence == 0) }
        #expect(queue.records.takeFirst().record.sequence == 1)
    }

    private static func filled(_ count: UInt64) -> CommandQueue {
        var queue = CommandQueue()
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        for number in 0..<count { queue.append(record(number), by: redactor, at: nil) }
        return queue
    }

    @Test func `commands of all kinds come in the order in which they were put in, however many wait`() {
        var queue = CommandQueue()
        var expected: [String] = []
        var found: [String] = []
        var next: UInt64 = 0
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        func take(_ queue: inout CommandQueue) {
            switch queue.advance() {
            case .record where found.count % 2 == 0:
                queue.records.useFirst { found.append("record \($0.record.sequence)") }
            case .record: found.append("record \(queue.records.takeFirst().record.sequence)")
            case .send: found.append("send")
            case .recv: found.append("recv")
            case .other:
                guard case .displace(let number) = queue.takeCommand() else { return found.append("another") }
                found.append("displace \(number)")
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
        #expect(found == expected && found.count > 900)
    }
}
