/// The words of the messages of a transaction, which are inserted in the order of their numbers.
///
/// Each time a number is less than the one before it, SQLite would begin another list.
struct WordBuffer {
    private struct Entry {
        let part: StorePart
        let number: Int64
        let range: Range<Int>
    }

    /// The number of bytes from which on the words are inserted before the end of the transaction.
    private static let limit = 4 << 20

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []

    var isFull: Bool { bytes.count >= Self.limit }

    /// Adds the words that `body` appends.
    mutating func add(_ number: Int64, _ part: StorePart, _ body: (inout [UInt8]) -> Void) {
        let start = bytes.count
        body(&bytes)
        entries.append(Entry(part: part, number: number, range: start..<bytes.count))
    }

    /// Inserts the words. A transaction must be open.
    mutating func write(to parts: StoreParts) throws(StoreFault) {
        entries.sort { ($0.part.number, $0.number) < ($1.part.number, $1.number) }
        try bytes.withUnsafeBufferPointer { bytes throws(StoreFault) in
            for entry in entries {
                try parts.add(UnsafeBufferPointer(rebasing: bytes[entry.range]), entry.number, to: entry.part)
            }
        }
        removeAll()
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: !isFull)
        entries.removeAll(keepingCapacity: true)
    }
}
