/// Writes JSON (RFC 8259) into a line: objects, arrays and fields in the order of the calls.
///
/// It needs neither a writer object nor state: the last byte shows whether a comma is needed. Names of fields are
/// literals of plain ASCII without quote or backslash; ``field(named:)`` writes a name from data. The caller must close
/// everything it opens.
extension LineBuffer {
    /// Returns an object with the fields that `body` writes, as text.
    package static func object(_ body: (inout LineBuffer) -> Void) -> String {
        text { line in
            line.openObject()
            body(&line)
            line.closeObject()
        }
    }

    /// Opens an object as a value.
    package mutating func openObject() {
        separate()
        append(0x7B)
    }

    package mutating func closeObject() {
        append(0x7D)
    }

    /// Opens an array as a value.
    package mutating func openArray() {
        separate()
        append(0x5B)
    }

    /// Closes an array.
    package mutating func closeArray() {
        append(0x5D)
    }

    /// Writes the name of a field; the value must be written next.
    package mutating func field(_ name: StaticString) {
        guard name.hasPointerRepresentation else { return field(named: name.description) }
        let length = name.utf8CodeUnitCount
        let isFirst = !needsComma
        // Writes comma, quote, name, quote and colon in one pass, because a record has dozens of fields.
        append(atMost: length + 4) { output in
            output[0] = 0x2C
            let start = isFirst ? output : output + 1
            start[0] = 0x22
            (start + 1).update(from: name.utf8Start, count: length)
            start[length + 1] = 0x22
            start[length + 2] = 0x3A
            return length + (isFirst ? 3 : 4)
        }
    }

    /// Writes the name of a field from data.
    package mutating func field(named name: String) {
        separate()
        appendJSONString(name)
        append(0x3A)
    }

    /// Writes a field with a text.
    package mutating func field(_ name: StaticString, _ value: String) {
        field(name)
        appendJSONString(value)
    }

    /// Writes a field with a literal of plain ASCII without quote or backslash.
    package mutating func field(_ name: StaticString, literal value: StaticString) {
        field(name)
        append(0x22)
        append(value)
        append(0x22)
    }

    /// Writes a field with an integer.
    package mutating func field(_ name: StaticString, _ value: Int) {
        field(name)
        append(decimal: value)
    }

    /// Writes a field with an integer.
    package mutating func field(_ name: StaticString, _ value: UInt64) {
        field(name)
        append(decimal: value)
    }

    /// Writes a field with a Boolean.
    package mutating func field(_ name: StaticString, _ value: Bool) {
        field(name)
        append(value ? "true" : "false")
    }

    /// Writes a field with decimal seconds.
    package mutating func field(_ name: StaticString, seconds nanoseconds: Int64) {
        field(name)
        append(seconds: nanoseconds)
    }

    /// Writes a field with bytes: as a text under `name` if they are UTF-8, otherwise in base64 under `fallback`.
    package mutating func field(_ name: StaticString, _ bytes: RawSpan, orBase64 fallback: StaticString) {
        let start = count
        field(name)
        if appendJSONString(bytes) { return }
        truncate(to: start)
        field(fallback)
        append(0x22)
        append(base64: bytes)
        append(0x22)
    }

    /// Writes a comma if one is needed before another name or value.
    ///
    /// Callers need it only for values that are appended directly, such as numbers in an array.
    package mutating func separate() {
        if needsComma { append(0x2C) }
    }

    /// Whether a comma is needed: not after an opening bracket, a colon or a line's end, nor at the beginning.
    private var needsComma: Bool {
        switch last {
        case nil, 0x7B, 0x5B, 0x3A, 0x0A: false
        default: true
        }
    }
}
