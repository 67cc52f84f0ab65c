/// Changes to an item by byte ranges: all other bytes stay unchanged.
package struct ItemEdit: Sendable {
    private var changes: [(range: ByteRange, bytes: [UInt8])] = []

    /// Creates an edit without changes.
    package init() {}

    /// Whether the edit has no changes.
    package var isEmpty: Bool { changes.isEmpty }

    /// Replaces a range by `bytes`; an empty range inserts them, empty `bytes` remove the range.
    ///
    /// A change inside the range of another one is ignored.
    package mutating func replace(_ range: ByteRange, with bytes: [UInt8] = []) { changes.append((range, bytes)) }

    /// Returns the item with the changes.
    package func applied(to item: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var position = 0
        // If two changes begin at the same offset, the outer one comes first.
        for change in changes.sorted(by: { ($0.range.start, $1.range.end) < ($1.range.start, $0.range.end) }) {
            let start = Int(change.range.start)
            guard start >= position else { continue }
            bytes.append(item.slice(ByteRange(position, start)))
            bytes += change.bytes
            position = Int(change.range.end)
        }
        bytes.append(item.slice(ByteRange(position, item.count)))
        return bytes
    }
}
