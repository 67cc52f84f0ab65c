internal import Glibc

/// Reads a file line by line, in large pieces and without a copy per line.
struct LineReader: ~Copyable {
    enum Line {
        /// A whole line, without its newline: for ``LineReader/withBytes(of:_:)``.
        case whole(Range<Int>)
        /// The rest of the file after its last newline.
        case torn(Range<Int>)
        /// A line over the limit; it has been passed over.
        case tooLong
        case end
        case failed(errno: Int32)
        /// A compressed file is damaged here, or cut off; the beginning of the line is discarded.
        case damaged(CompressionFault)
    }

    private static let piece = 256 << 10

    let longestLine: Int
    private var buffer: [UInt8] = []
    private let input: InputBytes
    /// The start of the part of the buffer that has not been returned.
    private var start = 0
    private var hasEnded = false
    /// The file may grow: its end is temporary, and an incomplete last line is not returned before its newline.
    var follows = false
    /// Whether the data read ends within a line.
    var endsWithinLine: Bool { start < buffer.count }

    /// A reader of an open file, which it closes at its end if it is `owned`.
    init(descriptor: Int32, owned: Bool, longestLine: Int) {
        input = InputBytes(descriptor: descriptor, owned: owned)
        self.longestLine = longestLine
    }

    /// The next line; of one over the limit the rest is read and passed over, if that is asked for: it may have no end.
    mutating func next(passesOver: Bool = true) -> Line {
        var searched = start
        var isTooLong = false
        while true {
            if let newline = firstNewline(from: searched) {
                let line = start..<newline
                start = newline + 1
                return isTooLong ? .tooLong : .whole(line)
            }
            searched = buffer.count
            if buffer.count - start > longestLine {
                guard passesOver else { return .tooLong }
                isTooLong = true
                start = buffer.count
            }
            guard !hasEnded else {
                if follows {
                    hasEnded = false
                    return .end
                }
                let rest = start..<buffer.count
                start = buffer.count
                if isTooLong { return .tooLong }
                guard rest.isEmpty else { return .torn(rest) }
                return takeTruncation().map { .damaged($0) } ?? .end
            }
            searched -= start
            if fill() { continue }
            if let fault = input.takeFault() {
                start = buffer.count
                return .damaged(fault)
            }
            return .failed(errno: input.failure ?? 0)
        }
    }

    /// Whether a line, the end or a failure is there to be read without waiting: a pipe may have nothing more for now.
    func hasMore() -> Bool { firstNewline(from: start) != nil || hasEnded || input.isReady }

    /// At the end, whether it comes before that of the file's compressed data; once.
    func takeTruncation() -> CompressionFault? { input.takeTruncation() }

    /// Returns up to `count` bytes of the file's beginning from the first read. Call it before the first line is read,
    /// which is not affected; the first line also reports a failure to read.
    mutating func beginning(_ count: Int) -> [UInt8] {
        if buffer.isEmpty, !hasEnded { fill() }
        return Array(buffer[start...].prefix(count))
    }

    /// Returns the file's bytes from its beginning, for callers that do not read lines; call it instead of reading the
    /// first line.
    func bytes() -> InputBytes {
        input.putBack(buffer[start...])
        return input
    }

    /// Hands out the bytes of a line, until the next one is read.
    func withBytes<Result, Failure: Error>(
        of line: Range<Int>,
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(buffer.span.bytes.extracting(line))
    }

    /// Passes over lines that a sieve holds back, and reads on as long as there are only those.
    ///
    /// - Returns: How many.
    mutating func pass(_ sieve: LineSieve) -> Int {
        var passed = 0
        while true {
            let (line, newlines, isClear) = buffer.withUnsafeBytes { bytes in
                let hit = sieve.firstHit(in: bytes, from: start)
                let (end, count) = Self.newlines(in: bytes, start..<(hit ?? bytes.count))
                return (end, count, hit == nil)
            }
            start = line
            passed += newlines
            // The rest is a line with a hit, or without an end; ``next()`` handles the rest of a long one.
            guard isClear, !hasEnded, buffer.count - start < Self.piece, fill() else { return passed }
        }
    }

    /// Returns the start of the last line of a range, and the number of lines that end in it.
    private static func newlines(in bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> (begin: Int, count: Int) {
        var begin = range.upperBound
        while begin > range.lowerBound, bytes[begin - 1] != 0x0A { begin -= 1 }
        var count = 0
        for index in range.lowerBound..<begin { count &+= bytes[index] == 0x0A ? 1 : 0 }
        return (begin, count)
    }

    private func firstNewline(from offset: Int) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, offset < bytes.count,
                let found = memchr(base + offset, 0x0A, bytes.count - offset)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// Moves what is left to the front of the buffer and reads on behind it.
    ///
    /// - Returns: whether the read succeeded.
    @discardableResult
    private mutating func fill() -> Bool {
        buffer.removeSubrange(..<start)
        start = 0
        let found = buffer.append(upTo: Self.piece) { input.read(into: $0, Self.piece) }
        if found == 0 { hasEnded = true }
        return found >= 0
    }
}
