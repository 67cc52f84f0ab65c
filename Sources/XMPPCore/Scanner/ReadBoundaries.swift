/// Positions at which reads ended, ascending, consumed item by item.
///
/// An item costs O(1) beyond the positions it consumes, also where many items and many small reads are buffered.
struct ReadBoundaries {
    private var positions: [UInt64] = []
    /// Index of the first position that was not consumed.
    private var next = 0
    /// Number of comparisons so far.
    private(set) var comparisons = 0

    var isEmpty: Bool { next == positions.count }

    /// Adds a position, which is greater than all before.
    mutating func append(_ position: UInt64) { positions.append(position) }

    /// Consumes the positions up to `end`, and returns those inside the item, relative to `start`.
    mutating func take(from start: UInt64, to end: UInt64) -> [UInt64] {
        var inside: [UInt64] = []
        while next < positions.count {
            comparisons += 1
            let position = positions[next]
            guard position <= end else { return inside }
            if position > start, position < end { inside.append(position - start) }
            next += 1
        }
        positions.removeAll(keepingCapacity: positions.count <= 64)
        next = 0
        return inside
    }
}
