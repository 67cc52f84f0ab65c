/// The bytes of a log line (or several) in the making: append-only, reused from line to line.
///
/// Everything that writes records appends here, so that a line costs no string and, once the buffer has its size, no
/// allocation. What `append` takes goes in as it is; text from the wire belongs to ``appendEscaped(_:)-(RawSpan)`` or
/// ``appendJSONString(_:)-(RawSpan)``.
public struct LineBuffer: Sendable {
    /// How many bytes there are.
    public private(set) var count = 0

    /// The bytes, and behind ``count`` room for more, which is set to zero once: an append is a copy.
    private var storage: [UInt8] = []

    /// Above this capacity ``removeAll()`` gives the memory back: one huge stanza must not be paid for ever after.
    private static let keptCapacity = 1 << 18

    /// An empty buffer with room for `capacity` bytes.
    public init(capacity: Int = 1024) {
        grow(to: capacity)
    }

    /// How many bytes there is room for.
    var capacity: Int { storage.count }

    /// A copy of what has been appended so far.
    public var bytes: [UInt8] { Array(storage[..<count]) }

    /// What has been appended, which is UTF-8, as a string.
    public var text: String {
        storage.withUnsafeBufferPointer { String(decoding: UnsafeBufferPointer(rebasing: $0[..<count]), as: UTF8.self) }
    }

    /// The byte appended last.
    var last: UInt8? { count > 0 ? storage[count &- 1] : nil }

    /// Whether nothing has been appended.
    public var isEmpty: Bool { count == 0 }

    /// What `body` appends, which is UTF-8, as a string.
    public static func text(_ body: (inout LineBuffer) -> Void) -> String {
        var line = LineBuffer(capacity: 64)
        body(&line)
        return line.text
    }

    /// The bytes, borrowed until the next change.
    public var span: RawSpan {
        @_lifetime(borrow self)
        get { storage.span.extracting(0..<count).bytes }
    }

    /// The bytes, borrowed until the next change, which are UTF-8.
    var utf8: Span<UInt8> {
        @_lifetime(borrow self)
        get { storage.span.extracting(0..<count) }
    }

    /// Takes back the spaces at the end.
    mutating func trimSpaces() {
        while last == 0x20 { count &-= 1 }
    }

    /// Takes out the byte at `place`, if it is `byte`.
    mutating func drop(_ byte: UInt8, at place: Int) {
        guard place >= 0, place < count, storage[place] == byte else { return }
        let rest = count - place - 1
        storage.withUnsafeMutableBufferPointer { buffer in
            if let start = buffer.baseAddress { (start + place).update(from: start + place + 1, count: rest) }
        }
        count -= 1
    }

    /// Empties the buffer and keeps its memory for the next line, unless it has grown out of proportion.
    public mutating func removeAll() {
        count = 0
        if storage.count > Self.keptCapacity { storage = [] }
    }

    /// Takes back everything appended after the buffer was `count` bytes long; a larger `count` changes nothing.
    public mutating func truncate(to count: Int) {
        self.count = max(0, min(count, self.count))
    }

    /// Replaces a byte wherever it stands from the place `start` on.
    mutating func replace(_ byte: UInt8, by other: UInt8, from start: Int) {
        for place in max(0, start)..<max(0, start, count) where storage[place] == byte { storage[place] = other }
    }

    /// Makes room for `more` bytes, growing by doubling.
    @inline(__always)
    private mutating func reserve(_ more: Int) {
        if storage.count &- count < more { grow(to: max(count + more, storage.count * 2)) }
    }

    private mutating func grow(to capacity: Int) {
        let more = capacity - storage.count
        storage.append(addingCapacity: more) { $0.append(repeating: 0, count: more) }
    }

    /// Appends one byte.
    @inline(__always)
    public mutating func append(_ byte: UInt8) {
        reserve(1)
        storage[count] = byte
        count &+= 1
    }

    /// Appends a literal.
    public mutating func append(_ literal: StaticString) {
        guard literal.hasPointerRepresentation else { return append(string: literal.description) }
        append(copying: UnsafeRawBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    /// Appends a text of this program (never of the wire) as UTF-8.
    public mutating func append(string: String) {
        append(bytes: string.utf8Span.span.bytes)
    }

    /// Appends bytes as they are.
    public mutating func append(bytes span: RawSpan) {
        span.withUnsafeBytes { append(copying: $0) }
    }

    /// Appends bytes as they are.
    public mutating func append(bytes more: [UInt8]) {
        append(bytes: more.span.bytes)
    }

    /// Ends the line.
    public mutating func endLine() {
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

    /// Appends up to `capacity` bytes that `body` writes to raw memory, returning how many it wrote.
    ///
    /// The loops of this folder write through this: no bounds check and no uniqueness check per byte.
    @inline(__always)
    mutating func append(atMost capacity: Int, _ body: (UnsafeMutablePointer<UInt8>) -> Int) {
        reserve(capacity)
        let end = count
        count &+= storage.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.map { body($0 + end) } ?? 0
        }
    }
}
