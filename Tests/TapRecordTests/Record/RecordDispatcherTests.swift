import Synchronization
import TapRecord
import TapTestKit
import Testing

/// Tests sinks that are added, are removed or change their level while records are written.
@Suite struct RecordDispatcherTests {
    private let note = Sample(.note, .info).record.shown
    private let chunk = Sample(.chunk, .trace).record.shown

    @Test func `a sink gets the records of its level while it is attached`() {
        let first = CountingSink(.info)
        let dispatcher = RecordDispatcher([first])
        let producer = RecordDispatcher.Producer(dispatcher)
        #expect(dispatcher.level.current == .info)
        producer.write(note, content: [UInt8]().span)
        producer.write(chunk, content: [UInt8]().span)

        let second = CountingSink(.trace)
        dispatcher.add(second)
        #expect(dispatcher.level.current == .trace)
        producer.write(note, content: [UInt8]().span)
        producer.write(chunk, content: [UInt8]().span)
        #expect(first.count == 2 && second.count == 2)

        dispatcher.remove(first)
        producer.write(note, content: [UInt8]().span)
        #expect(first.count == 2 && second.count == 3)
        dispatcher.remove(second)
        producer.write(note, content: [UInt8]().span)
        #expect(second.count == 3 && dispatcher.level.current == .off)
    }

    @Test func `the level of the dispatcher follows its sinks`() {
        let sinks = [CountingSink(.warn), CountingSink(.error)]
        let dispatcher = RecordDispatcher(sinks)
        let producer = RecordDispatcher.Producer(dispatcher)
        sinks[1].set(.verbose)
        dispatcher.updateLevels()
        #expect(dispatcher.level.current == .verbose)
        producer.write(note, content: [UInt8]().span)
        #expect(sinks.map(\.count) == [0, 1])
        sinks[1].set(.off)
        dispatcher.updateLevels()
        #expect(dispatcher.level.current == .warn)
        producer.write(note, content: [UInt8]().span)
        #expect(sinks.map(\.count) == [0, 1])
    }

    @Test func `a removed sink is released, and its congestion is ignored`() {
        let dispatcher = RecordDispatcher([])
        let producer = RecordDispatcher.Producer(dispatcher)
        weak var kept: CountingSink?
        do {
            let sink = CountingSink(.info, isCongested: true)
            kept = sink
            dispatcher.add(sink)
            #expect(producer.isCongested)
            dispatcher.remove(sink)
        }
        #expect(!producer.isCongested)
        #expect(kept == nil)
    }

    @Test func `no record is lost while other sinks are added and removed`() async {
        let sink = CountingSink(.info)
        let dispatcher = RecordDispatcher([sink])
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    let producer = RecordDispatcher.Producer(dispatcher)
                    for _ in 0..<2000 { producer.write(Sample(.note, .info).record.shown, content: [UInt8]().span) }
                }
            }
            group.addTask {
                for _ in 0..<500 {
                    let other = CountingSink(.trace)
                    dispatcher.add(other)
                    dispatcher.remove(other)
                }
            }
        }
        #expect(sink.count == 8000)
        #expect(dispatcher.level.current == .info)
    }
}

/// Counts the records that it receives.
private final class CountingSink: Sink {
    let isCongested: Bool
    private let wanted: RecordLevel
    private let written = Atomic(0)

    init(_ level: Level, isCongested: Bool = false) {
        wanted = RecordLevel(level)
        self.isCongested = isCongested
    }

    var level: Level { wanted.current }
    var count: Int { written.load(ordering: .relaxed) }

    func set(_ level: Level) { wanted.set(level) }

    func write(_ record: borrowing RedactedRecord, content: Span<UInt8>) { written.add(1, ordering: .relaxed) }
}
