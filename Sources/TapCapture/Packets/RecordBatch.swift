internal import TapCore
internal import TapRecord

/// Records that are made in one place and given out in another, each once: without a copy, which would count a reference
/// more of each of a record's texts.
///
/// Sendable: one thread fills it, and then another empties it.
final class RecordBatch: RecordConsumer, @unchecked Sendable {
    @exclusivity(unchecked) private var place: UnsafeMutablePointer<RecordLine>
    @exclusivity(unchecked) private var capacity: Int
    /// Records that were put in.
    @exclusivity(unchecked) private(set) var count = 0
    /// Records that were given out.
    @exclusivity(unchecked) private(set) var given = 0

    /// A batch with room for so many at first.
    init(capacity: Int = 16) {
        self.capacity = max(16, capacity)
        place = .allocate(capacity: self.capacity)
    }

    deinit {
        (place + given).deinitialize(count: count - given)
        place.deallocate()
    }

    func take(_ records: WaitingRecords, content: Span<UInt8>) {
        append(RecordLine(records.takeFirst(), content: content))
    }

    func take(_ line: consuming RecordLine) { append(line) }

    /// Puts one in behind the others.
    func append(_ line: consuming RecordLine) {
        if count == capacity { grow() }
        (place + count).initialize(to: line)
        count += 1
    }

    private func grow() {
        let larger = UnsafeMutablePointer<RecordLine>.allocate(capacity: capacity * 2)
        (larger + given).moveInitialize(from: place + given, count: count - given)
        place.deallocate()
        place = larger
        capacity *= 2
    }

    /// Gives out the next one, after a change; nil where there is none.
    func next(_ change: (inout RecordLine) -> Void = { _ in }) -> RecordLine? {
        guard given < count else { return nil }
        change(&place[given])
        given += 1
        return (place + given - 1).move()
    }

    /// Empties the batch, of which all were given out, to be filled again.
    func clear() {
        (place + given).deinitialize(count: count - given)
        (count, given) = (0, 0)
    }
}
