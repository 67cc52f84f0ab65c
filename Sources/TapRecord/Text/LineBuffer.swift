/// The bytes of a log line (or several) in the making: append-only, reused from line to line.
///
/// Everything that writes records appends here, so that a line costs no string and, once the buffer has its size, no
/// allocation. What `append` takes goes in as it is; text from the wire belongs to ``appendEscaped(_:)-(RawSpan)`` or
/// ``appendJSONString(_:)-(RawSpan)``.
public struct LineBuffer: Sendable {
    /// What has been appended so far.
    public private(set) var bytes: [UInt8] = []

    /// Above this capacity ``removeAll()`` gives the memory back: one huge stanza must not be paid for ever after.
    private static let keptCapacity = 1 << 18

    /// An empty buffer with room for `capacity` bytes.
    public init(capacity: Int = 1024) {
        bytes.reserveCapacity(capacity)
    }

    /// How many bytes there are.
    public var count: Int { bytes.count }

    /// Whether nothing has been appended.
    public var isEmpty: Bool { bytes.isEmpty }

    /// What has been appended, which is UTF-8, as a string.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// What `body` appends, which is UTF-8, as a string.
    public static func text(_ body: (inout LineBuffer) -> Void) -> String {
        var line = LineBuffer(capacity: 64)
        body(&line)
        return line.text
    }

    /// The bytes, borrowed until the next change.
    public var span: RawSpan {
        @_lifetime(borrow self)
        get { bytes.span.bytes }
    }

    /// Empties the buffer and keeps its memory for the next line, unless it has grown out of proportion.
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
    }

    /// Takes back everything appended after the buffer was `count` bytes long; a larger `count` changes nothing.
    public mutating func truncate(to count: Int) {
        guard count < bytes.count else { return }
        bytes.removeSubrange(max(0, count)...)
    }

    /// Replaces a byte wherever it stands from the place `start` on.
    mutating func replace(_ byte: UInt8, by other: UInt8, from start: Int) {
        for place in max(0, start)..<max(0, start, bytes.count) where bytes[place] == byte { bytes[place] = other }
    }

    /// Makes room for `count` more bytes, growing by doubling.
    public mutating func reserve(_ count: Int) {
        let needed = bytes.count + count
        if needed > bytes.capacity { bytes.reserveCapacity(max(needed, bytes.capacity * 2)) }
    }

    /// Appends one byte.
    public mutating func append(_ byte: UInt8) {
        bytes.append(byte)
    }

    /// Appends a literal.
    public mutating func append(_ literal: StaticString) {
        guard literal.hasPointerRepresentation else { return append(string: literal.description) }
        bytes.append(contentsOf: UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
    }

    /// Appends a text of this program (never of the wire) as UTF-8.
    public mutating func append(string: String) {
        bytes.append(contentsOf: string.utf8)
    }

    /// Appends bytes as they are.
    public mutating func append(bytes span: RawSpan) {
        span.withUnsafeBytes { bytes.append(contentsOf: $0) }
    }

    /// Appends bytes as they are.
    public mutating func append(bytes more: [UInt8]) {
        bytes.append(contentsOf: more)
    }

    /// Ends the line.
    public mutating func endLine() {
        bytes.append(0x0A)
    }

    /// Appends up to `capacity` bytes that `body` writes to raw memory, returning how many it wrote.
    ///
    /// The loops of this folder write through this: no bounds check and no uniqueness check per byte.
    mutating func append(atMost capacity: Int, _ body: (UnsafeMutablePointer<UInt8>) -> Int) {
        reserve(capacity)
        bytes.append(addingCapacity: capacity) { output in
            output.withUnsafeMutableBufferPointer { buffer, count in
                guard let start = buffer.baseAddress else { return }
                count += body(start + count)
            }
        }
    }
}
