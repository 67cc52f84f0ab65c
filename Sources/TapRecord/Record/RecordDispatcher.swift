internal import Synchronization

/// Passes each record of a run to the sinks that need it. Sinks can be added and removed, and their levels can change,
/// while sessions run.
///
/// Each event loop has one ``Producer``, which keeps a copy of the list of sinks. One relaxed atomic load per record
/// shows whether the list has changed; a lock is taken only after a change.
package final class RecordDispatcher: Sendable {
    /// The least severe level that a sink needs; less severe records need not be made.
    package let level = RecordLevel(.off)

    private let sinks: Mutex<[any Sink]>
    /// The number of changes to the sinks and their levels.
    private let generation = Atomic<UInt>(0)

    /// Creates a dispatcher for these sinks; without sinks, every record is dropped.
    package init(_ sinks: [any Sink]) {
        self.sinks = Mutex(sinks)
        updateLevels()
    }

    /// Adds a sink for later records.
    package func add(_ sink: any Sink) { change { $0.append(sink) } }

    /// Removes a sink. Until a producer sees the change, it may still write to the sink, and it keeps a reference to
    /// the sink until its own next record.
    package func remove(_ sink: any Sink) { change { sinks in sinks.removeAll { $0 === sink } } }

    /// Replaces a sink by another for later records; does nothing if the sink is unknown.
    package func replace(_ sink: any Sink, by other: any Sink) {
        change { sinks in
            for index in sinks.indices where sinks[index] === sink { sinks[index] = other }
        }
    }

    /// Updates the sinks' levels. Call it after a change of a ``Sink/level``.
    package func updateLevels() { change { _ in } }

    private func change(_ body: (inout [any Sink]) -> Void) {
        sinks.withLock { sinks in
            body(&sinks)
            level.set(sinks.map { $0.level }.max() ?? .off)
            generation.add(1, ordering: .relaxed)
        }
    }

    /// Writes the records of one event loop. Belongs to that loop.
    package final class Producer {
        private let dispatcher: RecordDispatcher
        private var generation: UInt
        private var sinks: [(level: Level, sink: any Sink)]

        /// Creates a producer for the current sinks of `dispatcher`.
        package init(_ dispatcher: RecordDispatcher) {
            self.dispatcher = dispatcher
            (generation, sinks) = dispatcher.snapshot()
        }

        /// Passes a record with its texts to the sinks. Does not block.
        package func write(_ record: borrowing RedactedRecord, content: Span<UInt8>) {
            update()
            // Iterates by index, because iterating over the array itself would retain the array and each sink.
            for index in sinks.indices where record.record.level <= sinks[index].level {
                sinks[index].sink.write(record, content: content)
            }
        }

        /// Whether a sink is full, so that sources should stop reading.
        package var isCongested: Bool {
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

/// The level up to which records are made, shared by a ``RecordDispatcher`` and all code that makes records for it.
///
/// Reading it is one relaxed atomic load; another thread's change is seen soon after.
package final class RecordLevel: Sendable {
    private let value: Atomic<UInt8>

    package init(_ level: Level) { value = Atomic(level.rawValue) }

    /// The least severe level of records that are made.
    package var current: Level { Level(rawValue: value.load(ordering: .relaxed)) ?? .off }

    /// Sets the level; sessions use it from their next item on.
    package func set(_ level: Level) { value.store(level.rawValue, ordering: .relaxed) }
}

/// A receiver of every record of a run: a log, a capture, a store, a live view.
///
/// A sink does not know the source of a record. It is called from any event loop, often from several at once, and must
/// not block: slow work belongs on another thread. When its buffer is full, the sink sets ``isCongested``, and the
/// sources stop reading until it is false again.
package protocol Sink: AnyObject, Sendable {
    /// The least severe level of records that this sink needs; less severe records need not be passed to it. Call
    /// ``RecordDispatcher/updateLevels()`` after a change.
    var level: Level { get }

    /// Receives one record. `content` holds the record's texts and is valid only during the call.
    func write(_ record: borrowing RedactedRecord, content: Span<UInt8>)

    /// Whether the sink's buffer is full.
    var isCongested: Bool { get }
}
