internal import Glibc

/// Finds the lines of a JSON log or capture without parsing them.
struct CaptureIndex {
    private static let piece = 1 << 20
    /// Maximum number of lines of a block.
    private static let blockLines = 1 << 16
    /// Maximum number of bytes of a block, so that ends fit 32 bits.
    private static let blockBytes = 1 << 30

    private let table: RecordTable
    private var offset: UInt64 = 0
    private var blockStart: UInt64 = 0
    private var ends: [UInt32] = []

    /// Creates an index of the file of a table.
    init(_ table: RecordTable) { self.table = table }

    /// Reads the file to its end.
    ///
    /// - Parameter onProgress: Called with the number of bytes read; returns whether to continue.
    /// - Returns: 0, or the number of the error (errno).
    mutating func read(_ onProgress: (UInt64) -> Bool) -> Int32 {
        var buffer = [UInt8](repeating: 0, count: Self.piece)
        while true {
            let got = pread(table.descriptor, &buffer, Self.piece, off_t(offset))
            guard got >= 0 else { return errno }
            guard got > 0 else { break }
            add(buffer, got)
            offset += UInt64(got)
            guard onProgress(offset) else { break }
        }
        // A last line without a newline: the program that writes it has not finished it.
        if offset - blockStart > UInt64(ends.last ?? 0) { ends.append(UInt32(clamping: offset - blockStart)) }
        flush()
        return 0
    }

    /// Adds the ends of lines in the first `count` bytes.
    private mutating func add(_ bytes: [UInt8], _ count: Int) {
        var start = 0
        while let newline = LineReader.firstNewline(in: bytes, start..<count) {
            start = newline + 1
            let end = offset + UInt64(start)
            ends.append(UInt32(clamping: end - blockStart))
            if ends.count >= Self.blockLines || end - blockStart >= UInt64(Self.blockBytes) { flush() }
        }
    }

    /// Adds the lines to the table.
    private mutating func flush() {
        guard !ends.isEmpty else { return }
        table.append(ends: ends, at: blockStart)
        blockStart += UInt64(ends.last ?? 0)
        ends.removeAll(keepingCapacity: true)
    }
}
