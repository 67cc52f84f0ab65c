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

    /// Consecutive lines. A block is not changed after another one follows it, until it is removed.
    private final class Block {
        private(set) var first: Int
        /// The end of each line, counted from the beginning of the block.
        var ends: [UInt32] = []
        /// The lines, unless they are in a file, or the texts of packed records.
        var bytes: LineBuffer
        /// The packed records; nil for a line. The last lines may have no element.
        var packed: [PackedRecord?] = []
        /// The open file and the offset of the block in it; nil if the lines are in ``bytes``.
        var place: (descriptor: Int32, offset: UInt64)?

        init(first: Int, capacity: Int = 0) {
            self.first = first
            bytes = LineBuffer(capacity: capacity)
        }

        var end: Int { first + ends.count }
        /// Number of bytes of the lines and texts.
        var textCount: Int { Int(ends.last ?? 0) }
        /// Number of bytes in all.
        var byteCount: Int { textCount + packed.count * MemoryLayout<PackedRecord?>.stride }

        /// Removes all lines, and keeps the memory for other ones.
        func reset(first: Int) {
            self.first = first
            place = nil
            ends.removeAll(keepingCapacity: true)
            packed.removeAll(keepingCapacity: true)
            bytes.removeAll()
        }

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
        var runs = TableRuns()
        /// A block that was removed: its memory is used again, because memory that is new to a process costs more than the
        /// records that are copied to it.
        var spare: Block?
        var form = JSONForm()
        var spill: Int32 = -1
        var spillEnd: UInt64 = 0
        var spillFailure: Int32 = 0
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

    /// Number of bytes of all lines, and of packed records, which are smaller than their lines.
    package var byteCount: Int { state.withLock { $0.bytes } }

    /// The runs of the records so far, and how they were redacted. They include all headers before the upper bound of
    /// a ``range`` that was read before.
    var runs: TableRuns { state.withLock { $0.runs } }

    /// Appends a record of a running proxy. Most become a line only when they are read.
    func append(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        // A file of lines has no place for the fields of packed records.
        guard !spills, let packed = PackedRecord(redacted, content: content) else {
            var form = JSONForm()
            var line = LineBuffer()
            form.append(redacted.record, content: content, [.content, .chunks], to: &line)
            return append(line.span)
        }
        state.withLock { state in
            let block = block(&state, room: packed.textCount)
            let before = block.byteCount
            PackedRecord.appendTexts(of: redacted, content: content, to: &block.bytes)
            while block.packed.count < block.ends.count { block.packed.append(nil) }
            block.packed.append(packed)
            finish(block, before, &state)
        }
    }

    /// Appends a copy of a line.
    private func append(_ line: RawSpan) {
        guard line.byteCount <= RecordReader.maximumLineLength else {
            return append(StoredLine.Remark(.damage, "a record of \(line.byteCount) bytes is too long to be shown"))
        }
        append { $0.append(bytes: line) }
    }

    /// Appends an entry of files.
    package func append(_ entry: RecordReader.Entry) {
        switch entry {
        case .record(let line):
            state.withLock { state in
                let block = block(&state)
                let before = block.byteCount
                state.form.append(line, [.content, .chunks], to: &block.bytes)
                finish(block, before, &state)
            }
        case .header(let header):
            begin(header)
            append { header.append(to: &$0) }
        case .damage(let line): append(StoredLine.Remark(.damage, "\(line.withFileName)"))
        case .gap(let gap): append(StoredLine.Remark(.gap, "\(gap.withFileName)"))
        }
    }

    /// Appends a remark.
    func append(_ remark: StoredLine.Remark) { append { remark.append(to: &$0) } }

    /// Appends a line that `body` writes.
    package func append(_ body: (inout LineBuffer) -> Void) {
        state.withLock { state in
            let block = block(&state)
            let before = block.byteCount
            body(&block.bytes)
            finish(block, before, &state)
        }
    }

    /// Returns the block for the next line.
    ///
    /// - Parameter room: The size of the line, if it is known.
    private func block(_ state: inout State, room: Int = 1) -> Block {
        let limit = spills ? Self.spilledBytes : Self.blockBytes
        if let last = state.blocks.last, last.place == nil {
            if last.ends.count < Self.blockLines, last.textCount + room <= limit { return last }
            if spills { spill(last, &state) }
        }
        let block: Block
        if let spare = state.spare.take() {
            spare.reset(first: state.end)
            block = spare
        } else {
            block = Block(first: state.end, capacity: capacity(limit))
        }
        state.blocks.append(block)
        return block
    }

    /// The initial size of a block with at most `limit` bytes.
    private func capacity(_ limit: Int) -> Int {
        // Beside the lines of a file there are only a few remarks.
        if descriptor >= 0 { return 256 }
        // A buffer that grows is copied under the lock.
        return limits.bytes < .max ? limit : min(limit, 64 << 10)
    }

    private func finish(_ block: Block, _ before: Int, _ state: inout State) {
        block.ends.append(UInt32(clamping: block.bytes.count))
        state.end += 1
        state.bytes += block.byteCount - before
        while state.blocks.count > 1,
            let first = state.blocks.first, state.end - first.end >= limits.records || state.bytes > limits.bytes
        {
            state.bytes -= first.byteCount
            state.spare = state.blocks.removeFirst()
        }
    }

    /// The number of the error (errno) with which the temporary file could not be written; 0 if there is none. Lines
    /// that are added later stay in memory.
    private var spillFailure: Int32 { state.withLock { $0.spillFailure } }

    /// Why no more lines can be kept in the temporary file, as a sentence; nil if they can.
    package var spillFault: String? {
        let failure = spillFailure
        guard failure != 0 else { return nil }
        let reason = String(cString: strerror(failure))
        return "no more than \(range.count) records are shown: the temporary file cannot be written: \(reason)"
    }

    /// Writes a block to the temporary file. If that fails, it stays in memory.
    private func spill(_ block: Block, _ state: inout State) {
        guard state.spillFailure == 0 else { return }
        if state.spill < 0 {
            let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
            var path = Array("\(folder)/xmpptap-XXXXXX".utf8CString)
            state.spill = mkstemp(&path)
            guard state.spill >= 0 else {
                state.spillFailure = errno
                return
            }
            _ = fcntl(state.spill, F_SETFD, FD_CLOEXEC)
            // Without a name, the file disappears with the process.
            unlink(path)
        }
        let lines = block.bytes.bytes
        let count = lines.count
        let failure: Int32 = lines.withUnsafeBytes { bytes in
            var done = 0
            while done < count {
                let written = pwrite(
                    state.spill,
                    bytes.baseAddress?.advanced(by: done),
                    count - done,
                    off_t(state.spillEnd) + off_t(done)
                )
                guard written > 0 else { return written < 0 ? errno : ENOSPC }
                done += written
            }
            return 0
        }
        guard failure == 0 else {
            state.spillFailure = failure
            return
        }
        block.place = (state.spill, state.spillEnd)
        block.bytes = LineBuffer(capacity: 0)
        state.spillEnd += UInt64(count)
    }

    /// Notes that the next line is a header.
    func begin(_ header: RecordHeader) { state.withLock { $0.runs.begin(header, at: $0.end) } }

    /// Assigns the next lines to a run, of which no header is known.
    package func begin(run: String) { state.withLock { $0.runs.begin(run, at: $0.end) } }

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

    /// Calls `body` with each position of a range that is, or was, in the table, in ascending order.
    ///
    /// The line is nil if the table no longer has it, or if the file has become shorter. So the lines of an answer keep
    /// their places, whatever is missing.
    func read(_ positions: Range<Int>, _ body: (Int, RawSpan?) -> Void) {
        var next = max(0, positions.lowerBound)
        let end = min(positions.upperBound, range.upperBound)
        var form = JSONForm()
        var formatted = LineBuffer()
        func skip(to position: Int) {
            while next < min(position, end) {
                body(next, nil)
                next += 1
            }
        }
        while next < end, let part = part(from: next, to: end) {
            skip(to: part.first)
            for (index, line) in part.lines.enumerated() {
                if line.upperBound > part.bytes.count {
                    body(next, nil)
                } else if index < part.packed.count, let packed = part.packed[index] {
                    formatted.removeAll()
                    packed.appendLine(texts: part.bytes.span.extracting(line), &form, to: &formatted)
                    body(next, formatted.span)
                } else {
                    body(next, part.bytes.span.extracting(line).bytes)
                }
                next += 1
            }
        }
        skip(to: end)
    }

    /// Calls `body` with each of these positions, which must be in ascending order; see the other method.
    func read(_ positions: ArraySlice<Int>, _ body: (Int, RawSpan?) -> Void) {
        var rest = positions
        while let first = rest.popFirst() {
            // Neighbours are read at once.
            var end = first + 1
            while let following = rest.first, following == end {
                end += 1
                rest.removeFirst()
            }
            read(first..<end, body)
        }
    }

    /// Returns the number of bytes of each of these lines, or of the texts of a packed record; 0 if the table does not have it.
    func byteCounts(of positions: ArraySlice<Int>) -> [Int] {
        state.withLock { state in
            positions.map { Self.block(of: $0, state.blocks)?.range(of: $0)?.count ?? 0 }
        }
    }

    private struct Part {
        let first: Int
        let lines: [Range<Int>]
        let packed: [PackedRecord?]
        let bytes: [UInt8]
    }

    /// Maximum number of bytes that are read from a file at once.
    private static let piece = 1 << 20
    /// Maximum number of bytes of lines or texts that are copied at once, during which event loops wait.
    private static let copiedPiece = 32 << 10

    /// Returns a copy of the next lines of one block; nil if there are none.
    private func part(from position: Int, to end: Int) -> Part? {
        // Files are read without the lock.
        let found: (part: Part, place: (descriptor: Int32, offset: UInt64)?)? =
            state.withLock { state in
                guard let block = Self.block(of: max(position, state.blocks.first?.first ?? 0), state.blocks) else {
                    return nil
                }
                let start = max(position, block.first)
                let piece = block.place == nil ? Self.copiedPiece : Self.piece
                var lines: [Range<Int>] = []
                var next = start
                let base = block.range(of: start)?.lowerBound ?? 0
                while next < min(end, block.end), let line = block.range(of: next),
                    lines.isEmpty || line.upperBound - base <= piece
                {
                    lines.append(line.lowerBound - base..<line.upperBound - base)
                    next += 1
                }
                guard let last = lines.last else { return nil }
                if let place = block.place {
                    let part = Part(first: start, lines: lines, packed: [], bytes: [])
                    return (part, (place.descriptor, place.offset + UInt64(base)))
                }
                var bytes: [UInt8] = []
                block.bytes.copy(base..<base + last.upperBound, to: &bytes)
                let packed = block.packed.dropFirst(start - block.first).prefix(lines.count)
                return (Part(first: start, lines: lines, packed: Array(packed), bytes: bytes), nil)
            }
        guard let found, let place = found.place, let last = found.part.lines.last else { return found?.part }
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
        return Part(first: found.part.first, lines: found.part.lines, packed: [], bytes: bytes)
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
