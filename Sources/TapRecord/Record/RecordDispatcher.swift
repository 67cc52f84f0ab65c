internal import Synchronization

/// Hands each record of a run to the sinks that want it. Sinks can be added and removed, and their levels can change,
/// while sessions run.
///
/// Each event loop has one ``Producer``, which keeps a copy of the list of sinks. One relaxed
/// atomic load per record shows whether the list has changed; only then a lock is taken.
public final class RecordDispatcher: Sendable {
    /// The least severe level that any sink wants; a record beyond it need not be made.
    public let level = RecordLevel(.off)

    private let sinks: Mutex<[any Sink]>
    /// Counts the changes of the sinks and their levels.
    private let generation = Atomic<UInt>(0)

    /// A dispatcher for these sinks; with none every record is dropped.
    public init(_ sinks: [any Sink]) {
        self.sinks = Mutex(sinks)
        updateLevels()
    }

    /// Hands records to this sink too from now on.
    public func add(_ sink: any Sink) { change { $0.append(sink) } }

    /// Hands no more records to this sink. A producer may still write to it until the producer sees the change, and keeps
    /// its reference until its next use.
    public func remove(_ sink: any Sink) { change { sinks in sinks.removeAll { $0 === sink } } }

    /// Replaces a sink by another from now on; does nothing if the sink is unknown.
    public func replace(_ sink: any Sink, by other: any Sink) {
        change { sinks in
            for index in sinks.indices where sinks[index] === sink { sinks[index] = other }
        }
    }

    /// Reads the sinks' levels again. Call it after the ``Sink/level`` of one has changed.
    public func updateLevels() { change { _ in } }

    private func change(_ body: (inout [any Sink]) -> Void) {
        sinks.withLock { sinks in
            body(&sinks)
            level.set(sinks.map { $0.level }.max() ?? .off)
            generation.add(1, ordering: .relaxed)
        }
    }

    /// Writes the records of one event loop. Belongs to that loop.
    public final class Producer {
        private let dispatcher: RecordDispatcher
        private var generation: UInt
        private var sinks: [(level: Level, sink: any Sink)]

        /// A producer for the sinks of `dispatcher`, whichever these are at the time.
        public init(_ dispatcher: RecordDispatcher) {
            self.dispatcher = dispatcher
            (generation, sinks) = dispatcher.snapshot()
        }

        /// Hands over a record with its texts. Does not block.
        public func write(_ record: borrowing RedactedRecord, content: Span<UInt8>) {
            update()
            // By index: to go through the array itself would count a reference more, of it and of each sink.
            for index in sinks.indices where record.record.level <= sinks[index].level {
                sinks[index].sink.write(record, content: content)
            }
        }

        /// Whether some sink has no room for more, so that sources should stop reading.
        public var isCongested: Bool {
            update()
            for entry in sinks where entry.sink.isCongested { return true }
            return false
        }

        @inline(__always)
        private func update() {
            guard dispatcher.generation.load(ordering: .relaxed) != generation else { return }
            (generation, sinks) = dispatcher.snapshot()
        }
    }

    private func snapshot() -> (generation: UInt, sinks: [(level: Level, sink: any Sink)]) {
        sinks.withLock { (generation.load(ordering: .relaxed), $0.map { ($0.level, $0) }) }
    }
}

/// The level up to which records are made, shared by a ``RecordDispatcher`` and all that make records for it.
///
/// Reading it is one relaxed atomic load; another thread's change is seen soon after.
public final class RecordLevel: Sendable {
    private let value: Atomic<UInt8>

    /// A level that holds until it is set.
    public init(_ level: Level) { value = Atomic(level.rawValue) }

    /// The least severe level of records that are made.
    public var current: Level { Level(rawValue: value.load(ordering: .relaxed)) ?? .off }

    /// Sets the level; sessions follow from their next item on.
    public func set(_ level: Level) { value.store(level.rawValue, ordering: .relaxed) }
}

/// Something that takes every record of a run: a log, a capture, a store, a live view.
///
/// A sink cannot tell which source a record came from. It is called from any event loop, often from several at once,
/// and must not block: slow work is done elsewhere. When its buffer is full the sink sets ``isCongested``, and the
/// sources stop reading until it is false again.
public protocol Sink: AnyObject, Sendable {
    /// The least severe level of records this sink wants; records beyond it need not be offered. After a change
    /// ``RecordDispatcher/updateLevels()`` is to be called.
    var level: Level { get }

    /// Takes one record. `content` holds the record's texts and is gone after the call.
    func write(_ record: borrowing RedactedRecord, content: Span<UInt8>)

    /// Whether the sink has no room for more at the moment.
    var isCongested: Bool { get }
}
