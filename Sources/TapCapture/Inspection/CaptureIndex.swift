internal import Glibc
internal import TapRecord

/// Finds the lines of a JSON log or capture without parsing them.
///
/// Only headers are parsed, because they name the run of the following records, and show how many records are missing
/// before them.
struct CaptureIndex {
    private static let piece = 1 << 20
    /// Maximum number of lines of a block.
    private static let blockLines = 1 << 16
    /// Number of bytes from which on a block is complete. With a longest line, ends still fit 32 bits.
    private static let blockBytes: UInt64 = 1 << 30
    private static let longestLine = UInt64(RecordReader.maximumLineLength)
    /// The beginning of a header.
    private static let head = Array("{\"xtap\"".utf8)

    private let table: RecordTable
    /// The name of the file, for remarks.
    private let name: String
    /// Number of bytes read before the current piece.
    private var offset: UInt64 = 0
    private var lineStart: UInt64 = 0
    private var blockStart: UInt64 = 0
    private var ends: [UInt32] = []
    /// Number of lines read.
    private var number = 0
    private var continuity = Continuity()

    /// Creates an index of the file of a table.
    ///
    /// - Parameter name: The name of the file.
    init(_ table: RecordTable, of name: String) {
        self.table = table
        self.name = name
    }

    /// Reads the file to its end.
    ///
    /// - Parameter onProgress: Called with the number of bytes read; returns whether to continue.
    /// - Returns: 0, or the number of the error (errno).
    mutating func read(_ onProgress: (UInt64) -> Bool) -> Int32 {
        var buffer = [UInt8](repeating: 0, count: Self.piece)
        while true {
            let got = pread(table.descriptor, &buffer, Self.piece, off_t(clamping: offset))
            guard got >= 0 else { return errno }
            guard got > 0 else { break }
            addLines(buffer, got)
            offset += UInt64(got)
            guard onProgress(offset) else { break }
        }
        // A last line without a newline: the program that writes it has not finished it.
        if offset > lineStart { endLine(at: offset, mayBeHeader: true) }
        flush()
        return 0
    }

    /// Adds the lines that end in the first `count` bytes.
    private mutating func addLines(_ bytes: [UInt8], _ count: Int) {
        var start = 0
        while let newline = LineReader.firstNewline(in: bytes, start..<count) {
            // The beginning of the first line may be in the piece before.
            let mayBeHeader = lineStart < offset || Self.beginsHeader(bytes, start..<newline)
            endLine(at: offset + UInt64(newline) + 1, mayBeHeader: mayBeHeader)
            start = newline + 1
        }
    }

    private static func beginsHeader(_ bytes: [UInt8], _ line: Range<Int>) -> Bool {
        guard line.count >= head.count else { return false }
        for index in head.indices where bytes[line.lowerBound + index] != head[index] { return false }
        return true
    }

    /// Adds a line.
    private mutating func endLine(at end: UInt64, mayBeHeader: Bool) {
        let start = lineStart
        let length = end - start
        lineStart = end
        number += 1
        guard length <= Self.longestLine else {
            flush()
            blockStart = end
            continuity.countLines()
            let damage = DamagedLine(reason: .tooLong, path: name, line: number)
            return table.append(StoredLine.Remark(.damage, "\(damage)"))
        }
        // Empty lines are not records; they become a part of the line before them.
        guard length > 1 else { return skipEmptyLine(end) }
        if mayBeHeader, let header = header(start, Int(length)) {
            flush()
            let missing = continuity.missing(before: header)
            if missing > 0 {
                let gap = MissingRecords(count: missing, path: name, line: number)
                table.append(StoredLine.Remark(.gap, "\(gap)"))
            }
            table.begin(header)
        } else {
            continuity.countLines()
        }
        ends.append(UInt32(clamping: end - blockStart))
        if ends.count >= Self.blockLines || end - blockStart >= Self.blockBytes { flush() }
    }

    private mutating func skipEmptyLine(_ end: UInt64) {
        let last = ends.count > 1 ? UInt64(ends[ends.count - 2]) : 0
        if !ends.isEmpty, end - blockStart - last <= Self.longestLine {
            ends[ends.count - 1] = UInt32(clamping: end - blockStart)
        } else {
            flush()
            blockStart = end
        }
    }

    /// Returns the header in a line; nil if the line is not one.
    private func header(_ start: UInt64, _ length: Int) -> RecordHeader? {
        guard length >= Self.head.count, bytes(start, Self.head.count) == Self.head else { return nil }
        let line = bytes(start, length)
        guard RecordHeader.isHeader(line.span.bytes) else { return nil }
        return try? RecordHeader(json: line.span.bytes)
    }

    private func bytes(_ start: UInt64, _ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = max(0, pread(table.descriptor, buffer.baseAddress, count, off_t(clamping: start)))
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
