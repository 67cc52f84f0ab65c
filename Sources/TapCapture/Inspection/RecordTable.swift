internal import Glibc
internal import Synchronization
package import TapRecord

/// The lines of stored records by position, from 0: those of files, or the newest of a run.
///
/// A position never changes. If the table is limited, the oldest lines are removed, and ``range`` begins later.
package final class RecordTable: Sendable {
    /// How much a table keeps.
    package struct Limits: Sendable {
        /// Maximum number of lines.
        package var records: Int
        /// Maximum number of bytes.
        package var bytes: Int

        package init(records: Int, bytes: Int) {
            self.records = records
            self.bytes = bytes
        }

        /// No limits, for files.
        package static let none = Limits(records: .max, bytes: .max)
    }

    /// Consecutive lines. A block is not changed after another one follows it.
    private final class Block {
        let first: Int
        /// The end of each line, counted from the beginning of the block.
        var ends: [UInt32] = []
        /// The lines, unless they are in a file.
        var bytes: LineBuffer
        /// The open file and the offset of the block in it; nil if the lines are in ``bytes``.
        var place: (descriptor: Int32, offset: UInt64)?

        init(first: Int, capacity: Int = 0) {
            self.first = first
            bytes = LineBuffer(capacity: capacity)
        }

        var end: Int { first + ends.count }
        var byteCount: Int { Int(ends.last ?? 0) }

        /// Returns the bytes of a line, without its newline.
        func range(of position: Int) -> Range<Int>? {
            let index = position - first
            guard ends.indices.contains(index) else { return nil }
            return (index == 0 ? 0 : Int(ends[index - 1]))..<Int(ends[index])
        }
    }

    private static let blockLines = 1024
    private static let blockBytes = 256 << 10
    private static let spilledBytes = 1 << 20

    private let limits: Limits
    private let spills: Bool
    /// A file with lines, which is closed with the table; -1 if there is none.
    let descriptor: Int32
    private let state = Mutex(State())

    private struct State: ~Copyable {
        var blocks: [Block] = []
        var end = 0
        var bytes = 0
        var form = JSONForm()
        var spill: Int32 = -1
        var spillEnd: UInt64 = 0
    }

    /// Creates an empty table.
    ///
    /// - Parameters:
    ///   - limits: How much the table keeps.
    ///   - spills: Whether lines are kept in a temporary file without a name rather than in memory.
    ///   - descriptor: An open file for lines that are added by their places; the table closes it.
    package init(_ limits: Limits = .none, spills: Bool = false, descriptor: Int32 = -1) {
        self.limits = limits
        self.spills = spills
        self.descriptor = descriptor
    }

    deinit {
        state.withLock { if $0.spill >= 0 { close($0.spill) } }
        if descriptor >= 0 { close(descriptor) }
    }

    /// The positions of the lines.
    package var range: Range<Int> {
        state.withLock { ($0.blocks.first?.first ?? $0.end)..<$0.end }
    }

    /// Number of bytes of all lines.
    package var byteCount: Int { state.withLock { $0.bytes } }

    /// Appends a record. Does not block.
    package func append(_ record: borrowing Record, content: Span<UInt8>) {
        state.withLock { state in
            let block = self.block(&state)
            let before = block.bytes.count
            state.form.append(record, content: content, .content, to: &block.bytes)
            finish(block, before, &state)
        }
    }

    /// Appends a stored record.
    package func append(_ line: RecordLine) {
        state.withLock { state in
            let block = self.block(&state)
            let before = block.bytes.count
            state.form.append(line, .content, to: &block.bytes)
            finish(block, before, &state)
        }
    }

    /// Appends a line that `body` writes.
    package func append(_ body: (inout LineBuffer) -> Void) {
        state.withLock { state in
            let block = self.block(&state)
            let before = block.bytes.count
            body(&block.bytes)
            finish(block, before, &state)
        }
    }

    /// Returns the block for the next line.
    private func block(_ state: inout State) -> Block {
        let limit = spills ? Self.spilledBytes : Self.blockBytes
        if let last = state.blocks.last, last.place == nil {
            if last.ends.count < Self.blockLines, last.byteCount < limit { return last }
            if spills { spill(last, &state) }
        }
        let block = Block(first: state.end, capacity: min(limit, 64 << 10))
        state.blocks.append(block)
        return block
    }

    private func finish(_ block: Block, _ before: Int, _ state: inout State) {
        block.ends.append(UInt32(clamping: block.bytes.count))
        state.end += 1
        state.bytes += block.bytes.count - before
        while state.blocks.count > 1,
            let first = state.blocks.first, state.end - first.end >= limits.records || state.bytes > limits.bytes
        {
            state.bytes -= first.byteCount
            state.blocks.removeFirst()
        }
    }

    /// Writes a block to the temporary file. If that fails, it stays in memory.
    private func spill(_ block: Block, _ state: inout State) {
        if state.spill < 0 {
            let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
            var path = Array("\(folder)/xmpptap-XXXXXX".utf8CString)
            state.spill = mkstemp(&path)
            guard state.spill >= 0 else { return }
            _ = fcntl(state.spill, F_SETFD, FD_CLOEXEC)
            // Without a name, the file disappears with the process.
            unlink(path)
        }
        let lines = block.bytes.bytes
        let count = lines.count
        let isWritten = lines.withUnsafeBytes { bytes in
            var done = 0
            while done < count {
                let written = pwrite(
                    state.spill,
                    bytes.baseAddress?.advanced(by: done),
                    count - done,
                    off_t(state.spillEnd) + off_t(done)
                )
                guard written > 0 else { return false }
                done += written
            }
            return true
        }
        guard isWritten else { return }
        block.place = (state.spill, state.spillEnd)
        block.bytes = LineBuffer(capacity: 0)
        state.spillEnd += UInt64(count)
    }

    /// Appends lines that are in the file already.
    ///
    /// - Parameters:
    ///   - ends: The end of each line, with its newline, counted from `offset`.
    ///   - offset: The offset of the first line in the file.
    func append(ends: [UInt32], at offset: UInt64) {
        state.withLock { [descriptor] state in
            let block = Block(first: state.end)
            block.ends = ends
            block.place = (descriptor, offset)
            state.blocks.append(block)
            state.end += ends.count
            state.bytes += block.byteCount
        }
    }

    /// Calls `body` with each line of a range that the table still has.
    package func read(_ positions: Range<Int>, _ body: (Int, RawSpan) -> Void) {
        var next = positions.lowerBound
        while next < positions.upperBound {
            guard let part = part(from: next, to: positions.upperBound) else { return }
            next = part.first + part.lines.count
            for (index, line) in part.lines.enumerated() where line.upperBound <= part.bytes.count {
                body(part.first + index, part.bytes.span.extracting(line).bytes)
            }
        }
    }

    /// Calls `body` with the lines at these positions, which must be in ascending order.
    package func read(_ positions: ArraySlice<UInt32>, _ body: (Int, RawSpan) -> Void) {
        var rest = positions
        while let first = rest.first {
            // Neighbours are read at once.
            var end = first + 1
            rest.removeFirst()
            while let following = rest.first, following == end {
                end += 1
                rest.removeFirst()
            }
            read(Int(first)..<Int(end), body)
        }
    }

    private struct Part {
        let first: Int
        let lines: [Range<Int>]
        let bytes: [UInt8]
    }

    /// Maximum number of bytes that are read at once.
    private static let piece = 1 << 20

    /// Returns a copy of the next lines of one block; nil if there are none.
    private func part(from position: Int, to end: Int) -> Part? {
        // The lock is held for a copy of at most one block; files are read without it.
        let found: (first: Int, ends: [Range<Int>], bytes: [UInt8], place: (descriptor: Int32, offset: UInt64)?)? =
            state.withLock { state in
                guard let block = Self.block(of: max(position, state.blocks.first?.first ?? 0), state.blocks) else {
                    return nil
                }
                let start = max(position, block.first)
                var lines: [Range<Int>] = []
                var next = start
                let base = block.range(of: start)?.lowerBound ?? 0
                while next < min(end, block.end), let line = block.range(of: next),
                    lines.isEmpty || line.upperBound - base <= Self.piece
                {
                    lines.append(line.lowerBound - base..<line.upperBound - base)
                    next += 1
                }
                guard let last = lines.last else { return nil }
                var bytes: [UInt8] = []
                if let place = block.place {
                    return (start, lines, [], (place.descriptor, place.offset + UInt64(base)))
                }
                block.bytes.copy(base..<base + last.upperBound, to: &bytes)
                return (start, lines, bytes, nil)
            }
        guard let found, let last = found.ends.last else { return nil }
        guard let place = found.place else { return Part(first: found.first, lines: found.ends, bytes: found.bytes) }
        let count = last.upperBound
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let got = pread(
                    place.descriptor,
                    buffer.baseAddress?.advanced(by: filled),
                    count - filled,
                    off_t(place.offset) + off_t(filled)
                )
                guard got > 0 else { break }
                filled += got
            }
        }
        return Part(first: found.first, lines: found.ends, bytes: bytes)
    }

    private static func block(of position: Int, _ blocks: [Block]) -> Block? {
        var (low, high) = (0, blocks.count)
        while low < high {
            let middle = (low + high) / 2
            if blocks[middle].end <= position { low = middle + 1 } else { high = middle }
        }
        guard low < blocks.count else { return nil }
        return blocks[low]
    }
}
