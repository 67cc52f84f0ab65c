internal import XMPPCore

extension String {
    /// Calls `body` with the text as UTF-8. Cheaper than `utf8.span`, which calls the standard library each time.
    @inline(__always)
    func withBytes<Outcome>(_ body: (Span<UInt8>) -> Outcome) -> Outcome {
        utf8.withContiguousStorageIfAvailable { body($0.span) } ?? body(utf8.span)
    }
}

/// A buffer for the bytes of a log line (or several): append-only, reused for all lines.
///
/// All code that writes records appends to it, so that a line needs no string and, once the buffer is large enough, no
/// allocation. `append` does not escape; use ``appendEscaped(_:)-(RawSpan)`` or ``appendJSONString(_:)-(RawSpan)`` for
/// text from the wire.
///
/// It cannot be copied, so that appending needs no uniqueness check.
public struct LineBuffer: ~Copyable, @unchecked Sendable {
    /// The number of bytes.
    package private(set) var count = 0

    /// The bytes, followed by unused space.
    private var storage: UnsafeMutablePointer<UInt8>?

    /// The number of bytes that fit.
    private(set) var capacity = 0

    /// Above this capacity, ``removeAll()`` frees the memory, which only a huge stanza needed.
    private static let keptCapacity = 1 << 18

    /// Creates an empty buffer with space for `capacity` bytes.
    package init(capacity: Int = 1024) {
        grow(to: capacity)
    }

    deinit { storage?.deallocate() }

    private var buffer: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: storage, count: count) }

    /// A copy of the contents.
    package var bytes: [UInt8] { Array(buffer) }

    /// Appends a copy of the contents to `output`.
    package func copy(to output: inout [UInt8]) { output.append(contentsOf: buffer) }

    /// Appends a copy of these bytes to `output`. The range must be within the buffer.
    package func copy(_ range: Range<Int>, to output: inout [UInt8]) {
        // Unsafe buffers check their ranges in debug builds only.
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "a range beyond the buffer's end")
        output.append(contentsOf: UnsafeBufferPointer(rebasing: buffer[range]))
    }

    /// The contents, which must be UTF-8, as a string.
    package var text: String { String(decoding: buffer, as: UTF8.self) }

    /// The byte appended last.
    var last: UInt8? { buffer.last }

    /// Whether nothing has been appended.
    package var isEmpty: Bool { count == 0 }

    /// Returns the text that `body` appends, which must be UTF-8.
    public static func text(_ body: (inout LineBuffer) -> Void) -> String {
        var line = LineBuffer(capacity: 64)
        body(&line)
        return line.text
    }

    /// The bytes, borrowed until the next change.
    package var span: RawSpan {
        @_lifetime(borrow self)
        get { utf8.bytes }
    }

    /// The bytes, which are UTF-8, borrowed until the next change.
    var utf8: Span<UInt8> {
        @_lifetime(borrow self)
        get { _overrideLifetime(buffer.span, borrowing: self) }
    }

    /// Returns whether the text after `start` is ASCII, so that each byte uses one column.
    @inline(__always)
    func isPlain(from start: Int) -> Bool {
        guard let storage, start >= 0, start < count else { return true }
        let bytes = UnsafeRawPointer(storage + start)
        let length = count &- start
        // Compares words; the last word may overlap the previous one. Most cells of a row are shorter than 8 bytes:
        // these are compared as two words of 4 bytes.
        if length >= 8 {
            var offset = 0
            while offset < length &- 8 {
                if bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 {
                    return false
                }
                offset &+= 8
            }
            return bytes.loadUnaligned(fromByteOffset: length &- 8, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
        }
        if length >= 4 {
            return
                (bytes.loadUnaligned(as: UInt32.self)
                | bytes.loadUnaligned(fromByteOffset: length &- 4, as: UInt32.self)) & 0x8080_8080 == 0
        }
        for place in start..<count where storage[place] >= 0x80 { return false }
        return true
    }

    /// Removes trailing spaces.
    mutating func trimSpaces() {
        while last == 0x20 { count &-= 1 }
    }

    /// Removes `words` at `place`; returns false if they are not there.
    @discardableResult
    mutating func drop(_ words: StaticString, at place: Int) -> Bool {
        let end = place + words.utf8CodeUnitCount
        guard place >= 0, end <= count, utf8.extracting(place..<end).equals(words) else { return false }
        remove(end - place, at: place)
        return true
    }

    /// Removes `fewer` bytes at `place`; does nothing if the buffer ends before.
    mutating func remove(_ fewer: Int, at place: Int) {
        let end = place + fewer
        guard let storage, fewer > 0, place >= 0, end <= count else { return }
        (storage + place).update(from: storage + end, count: count - end)
        count -= fewer
    }

    /// Empties the buffer and keeps its memory for the next line, unless it is too large.
    package mutating func removeAll() {
        count = 0
        guard capacity > Self.keptCapacity else { return }
        storage?.deallocate()
        storage = nil
        capacity = 0
    }

    /// Removes everything after the first `count` bytes; a larger `count` has no effect.
    package mutating func truncate(to count: Int) {
        self.count = max(0, min(count, self.count))
    }

    /// Replaces all occurrences of a byte from `start` on.
    mutating func replace(_ byte: UInt8, by other: UInt8, from start: Int) {
        guard let storage else { return }
        for place in max(0, start)..<max(0, start, count) where storage[place] == byte { storage[place] = other }
    }

    /// Reserves space for `more` bytes, growing by doubling.
    @inline(__always)
    private mutating func reserve(_ more: Int) {
        if capacity &- count < more { grow(to: max(count + more, capacity * 2)) }
    }

    private mutating func grow(to larger: Int) {
        guard larger > 0 else { return }
        let new = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        if let storage {
            new.moveInitialize(from: storage, count: count)
            storage.deallocate()
        }
        storage = new
        capacity = larger
    }

    /// Appends one byte.
    @inline(__always)
    package mutating func append(_ byte: UInt8) {
        reserve(1)
        guard let storage else { return }
        storage[count] = byte
        count &+= 1
    }

    /// Appends a literal.
    @inline(__always)
    package mutating func append(_ literal: StaticString) {
        guard literal.hasPointerRepresentation else { return append(string: literal.description) }
        append(copying: UnsafeRawBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    /// Appends a string unchanged, as UTF-8; never used for text from the wire.
    package mutating func append(string: String) {
        string.withBytes { append(bytes: $0.bytes) }
    }

    /// Appends bytes unchanged.
    package mutating func append(bytes span: RawSpan) {
        let count = span.byteCount
        // Many pieces are short: they are copied as two words that may overlap, which is cheaper than a call.
        if count >= 8, count <= 16 {
            let first = span.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self)
            let last = span.unsafeLoadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
            append(first, last, count)
        } else if count >= 4, count < 8 {
            let first = span.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt32.self)
            let last = span.unsafeLoadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
            append(first, last, count)
        } else {
            span.withUnsafeBytes { append(copying: $0) }
        }
    }

    /// Appends `count` bytes; the two words are their beginning and end.
    @inline(__always)
    private mutating func append<Word: BitwiseCopyable>(_ first: Word, _ last: Word, _ count: Int) {
        append(atMost: count) { output in
            let output = UnsafeMutableRawPointer(output)
            output.storeBytes(of: first, as: Word.self)
            output.storeBytes(of: last, toByteOffset: count - MemoryLayout<Word>.size, as: Word.self)
            return count
        }
    }

    /// Appends bytes unchanged.
    package mutating func append(bytes more: [UInt8]) {
        append(bytes: more.span.bytes)
    }

    /// Appends a part of another buffer.
    package mutating func append(_ range: Range<Int>, of other: borrowing LineBuffer) {
        append(bytes: other.span.extracting(range))
    }

    /// Ends the line.
    package mutating func endLine() {
        append(0x0A)
    }

    @inline(__always)
    private mutating func append(copying source: UnsafeRawBufferPointer) {
        append(atMost: source.count) { output in
            if let start = source.baseAddress {
                UnsafeMutableRawPointer(output).copyMemory(from: start, byteCount: source.count)
            }
            return source.count
        }
    }

    /// Appends up to `capacity` bytes that `body` writes to raw memory; `body` returns how many it wrote.
    ///
    /// Loops use this to avoid a bounds check for each byte.
    @inline(__always)
    mutating func append(atMost capacity: Int, _ body: (UnsafeMutablePointer<UInt8>) -> Int) {
        reserve(capacity)
        guard let storage else { return }
        let written = body(storage + count)
        assert(written <= capacity, "more bytes written than reserved")
        count &+= written
    }
}
