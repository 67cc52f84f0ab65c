/// Changes to an item by byte ranges: every byte outside of them stays as it came.
public struct ItemEdit: Sendable {
    private var changes: [(range: ByteRange, bytes: [UInt8])] = []

    /// No change.
    public init() {}

    /// Whether nothing is changed.
    public var isEmpty: Bool { changes.isEmpty }

    /// Puts `bytes` in the place of a range; an empty range inserts them, no bytes remove it.
    ///
    /// A change inside another one's range is left out.
    public mutating func replace(_ range: ByteRange, with bytes: [UInt8] = []) { changes.append((range, bytes)) }

    /// The item with the changes.
    public func applied(to item: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var position = 0
        // The outer one of two changes that begin together comes first.
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
