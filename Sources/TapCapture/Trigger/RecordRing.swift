/// A queue of the lines of records: appended at the end, removed from the beginning.
struct RecordRing {
    /// The properties of a line, which are known without parsing it.
    struct Entry {
        /// The number of bytes of the line.
        var length: Int
        var place: RecordPlace
        /// Whether the line is written even without a match near it.
        var isKept: Bool
    }

    /// The capacity in bytes that is kept for later lines.
    private static let keptCapacity = 1 << 14

    private var bytes: [UInt8] = []
    private var start = 0
    private var entries: [Entry] = []
    private var taken = 0

    /// The number of lines.
    var count: Int { entries.count - taken }
    /// The number of bytes of all lines.
    var byteCount: Int { bytes.count - start }
    /// The oldest line's entry.
    var first: Entry? { taken < entries.count ? entries[taken] : nil }
    /// The oldest line; empty if there is none.
    var firstLine: RawSpan {
        @_lifetime(borrow self)
        get { bytes.span.extracting(start..<start + (first?.length ?? 0)).bytes }
    }

    mutating func append(_ line: RawSpan, _ place: RecordPlace, isKept: Bool) {
        line.withUnsafeBytes { bytes.append(contentsOf: $0) }
        entries.append(Entry(length: line.byteCount, place: place, isKept: isKept))
    }

    /// Removes the oldest line; does nothing if the ring is empty.
    mutating func dropFirst() {
        guard let entry = first else { return }
        taken += 1
        start += entry.length
        // The space of removed lines is reclaimed once it equals the rest, so that a line is moved twice at most.
        guard start >= byteCount else { return }
        if bytes.capacity > Self.keptCapacity, byteCount < bytes.capacity / 4 {
            // Copy the rest: after a removal, the arrays would keep their largest capacity.
            bytes = Array(bytes[start...])
            entries = Array(entries[taken...])
        } else {
            bytes.removeFirst(start)
            entries.removeFirst(taken)
        }
        (start, taken) = (0, 0)
    }
}
