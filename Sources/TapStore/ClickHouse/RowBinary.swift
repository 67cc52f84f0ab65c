internal import XMPPCore

/// Values in ClickHouse's format RowBinary: integers in little-endian order, texts with their length before them.
struct RowBinaryWriter {
    private(set) var bytes: [UInt8] = []

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            append(length: utf8.count)
            bytes.append(contentsOf: utf8)
        }
    }

    mutating func append(_ data: [UInt8]) {
        append(length: data.count)
        bytes += data
    }

    /// Appends a value of a column that can be null.
    mutating func append(nullable text: String?) {
        guard let text else { return bytes.append(1) }
        bytes.append(0)
        append(text)
    }

    mutating func append(nullable value: Int64?) {
        guard let value else { return bytes.append(1) }
        bytes.append(0)
        append(value)
    }

    /// Appends a length as LEB128.
    mutating func append(length: Int) {
        var rest = UInt64(length)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }
}

/// Reads values in the format RowBinary. If the bytes end too early, ``isComplete`` is false and the values are empty.
struct RowBinaryReader {
    private let bytes: [UInt8]
    private(set) var position = 0
    private(set) var isComplete = true

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position >= bytes.count }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type = Value.self) -> Value {
        guard let range = take(MemoryLayout<Value>.size) else { return 0 }
        var value: Value = 0
        for index in range.reversed() { value = value << 8 | Value(truncatingIfNeeded: bytes[index]) }
        return value
    }

    mutating func data() -> [UInt8] {
        guard let count = length(), let range = take(count) else { return [] }
        return Array(bytes[range])
    }

    mutating func text() -> String {
        guard let count = length(), let range = take(count) else { return "" }
        return String(decoding: bytes[range], as: UTF8.self)
    }

    /// Reads a text that often is the same as the one before, which is then used again: a long one needs memory.
    mutating func text(repeating known: inout String) -> String {
        guard let count = length(), let range = take(count) else { return "" }
        let span = bytes.span.extracting(range)
        if !known.utf8Span.span.equals(span) { known = span.string() }
        return known
    }

    mutating func nullableText() -> String? { integer(UInt8.self) == 0 ? text() : nil }
    mutating func nullableInteger() -> Int64? { integer(UInt8.self) == 0 ? integer() : nil }

    private mutating func length() -> Int? {
        var length: UInt64 = 0
        var shift: UInt64 = 0
        while shift < 63, let place = take(1) {
            let byte = bytes[place.lowerBound]
            length |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return Int(exactly: length) }
            shift += 7
        }
        isComplete = false
        return nil
    }

    private mutating func take(_ count: Int) -> Range<Int>? {
        guard isComplete, count <= bytes.count - position else {
            isComplete = false
            return nil
        }
        defer { position += count }
        return position..<(position + count)
    }
}
