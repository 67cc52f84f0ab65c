internal import Glibc

/// Reads a file line by line, in large pieces and without a copy per line.
struct LineReader: ~Copyable {
    enum Line {
        /// The range of a complete line without its newline, for ``LineReader/withBytes(of:_:)``.
        case whole(Range<Int>)
        /// The range of the bytes after the file's last newline.
        case incomplete(Range<Int>)
        /// A line longer than the limit. It was skipped if `skipsTooLong` was true.
        case tooLong
        case end
        case failed(errno: Int32)
        /// A compressed file is damaged or truncated at this place. The beginning of the current line is discarded.
        case damaged(CompressionFault)
    }

    private static let piece = 256 << 10

    let maximumLineLength: Int
    private var buffer: [UInt8] = []
    private let input: InputBytes
    /// The start of the part of the buffer that has not been returned.
    private var start = 0
    private var hasEnded = false
    /// Whether the file may grow. If so, an incomplete last line is returned only after its newline was written.
    var follows = false
    /// Whether the data read ends within a line.
    var endsWithinLine: Bool { start < buffer.count }

    /// Creates a reader of an open file; closes the file at the end if it is `owned`.
    init(descriptor: Int32, owned: Bool, longestLine: Int) {
        input = InputBytes(descriptor: descriptor, owned: owned)
        self.maximumLineLength = longestLine
    }

    /// Returns the next line.
    ///
    /// - Parameter skipsTooLong: Whether the rest of a line that is longer than the limit is read and skipped. If
    ///   false, it is not read: such a line may have no end.
    mutating func next(skipsTooLong: Bool = true) -> Line {
        var searched = start
        var isTooLong = false
        while true {
            if let newline = firstNewline(from: searched) {
                let line = start..<newline
                start = newline + 1
                return isTooLong ? .tooLong : .whole(line)
            }
            searched = buffer.count
            if buffer.count - start > maximumLineLength {
                guard skipsTooLong else { return .tooLong }
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
                guard rest.isEmpty else { return .incomplete(rest) }
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

    /// Returns whether ``next(skipsTooLong:)`` can be called without waiting. A pipe may have no more data for now.
    func hasMore() -> Bool { firstNewline(from: start) != nil || hasEnded || input.isReady }

    /// Returns a fault at the end of the file, once, if its compressed data is truncated; otherwise nil.
    func takeTruncation() -> CompressionFault? { input.takeTruncation() }

    /// Returns up to `count` bytes from the beginning of the file; may return fewer, because it reads only once. Must
    /// be called before the first line is read. Does not consume the bytes. A read error is reported by the first
    /// ``next(skipsTooLong:)``.
    mutating func beginning(_ count: Int) -> [UInt8] {
        if buffer.isEmpty, !hasEnded { fill() }
        return Array(buffer[start...].prefix(count))
    }

    /// Returns the bytes of the file from its beginning, for callers that do not read lines. Must not be called after
    /// a line was read.
    func bytes() -> InputBytes {
        input.putBack(buffer[start...])
        return input
    }

    /// Calls `body` with the bytes of a line. Valid only until the next line is read.
    func withBytes<Result, Failure: Error>(
        of line: Range<Int>,
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(buffer.span.bytes.extracting(line))
    }

    /// Skips lines in which a sieve finds none of its texts, and reads more data as long as there are only such
    /// lines.
    ///
    /// - Returns: The number of skipped lines.
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
            // The rest is a line with a hit, or an incomplete line; ``next()`` reads the rest of a long line.
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
        Self.firstNewline(in: buffer, offset..<max(offset, buffer.count))
    }

    /// Returns the index of the first newline in a part of some bytes.
    static func firstNewline(in bytes: [UInt8], _ range: Range<Int>) -> Int? {
        bytes.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, !range.isEmpty, range.lowerBound >= 0, range.upperBound <= bytes.count,
                let found = memchr(base + range.lowerBound, 0x0A, range.count)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// Moves the unread bytes to the front of the buffer and reads more bytes after them.
    ///
    /// - Returns: Whether the read succeeded.
    @discardableResult
    private mutating func fill() -> Bool {
        buffer.removeSubrange(..<start)
        start = 0
        let found = buffer.append(upTo: Self.piece) { input.read(into: $0, Self.piece) }
        if found == 0 { hasEnded = true }
        return found >= 0
    }
}
