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
    }

    private static let piece = 256 << 10

    let longestLine: Int
    private var buffer: [UInt8] = []
    private let descriptor: Int32
    private let isOwned: Bool
    /// Where the part of the buffer begins that has not been given out.
    private var start = 0
    private var hasEnded = false

    /// A reader of an open file, which it closes at its end if it is `owned`.
    init(descriptor: Int32, owned: Bool, longestLine: Int) {
        self.descriptor = descriptor
        self.isOwned = owned
        self.longestLine = longestLine
    }

    deinit {
        if isOwned { close(descriptor) }
    }

    mutating func next() -> Line {
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
                isTooLong = true
                start = buffer.count
            }
            guard !hasEnded else {
                let rest = start..<buffer.count
                start = buffer.count
                if isTooLong { return .tooLong }
                return rest.isEmpty ? .end : .torn(rest)
            }
            searched -= start
            if let cause = fill() { return .failed(errno: cause) }
        }
    }

    /// How the file begins: up to `count` bytes of what the first read brings. To be asked before the first line is read,
    /// which then is the same; a failure to read is left to that as well.
    mutating func beginning(_ count: Int) -> [UInt8] {
        if buffer.isEmpty, !hasEnded { _ = fill() }
        return Array(buffer[start...].prefix(count))
    }

    /// Hands out the bytes of a line, until the next one is read.
    func withBytes<Result, Failure: Error>(
        of line: Range<Int>,
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(buffer.span.bytes.extracting(line))
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
    private mutating func fill() -> Int32? {
        buffer.removeSubrange(..<start)
        start = 0
        var cause: Int32?
        buffer.append(addingCapacity: Self.piece) { output in
            output.withUnsafeMutableBufferPointer { free, count in
                while true {
                    let found = read(descriptor, free.baseAddress?.advanced(by: count), Self.piece)
                    if found < 0, errno == EINTR { continue }
                    if found < 0 { cause = errno }
                    count += max(0, found)
                    if found == 0 { hasEnded = true }
                    return
                }
            }
        }
        return cause
    }
}
