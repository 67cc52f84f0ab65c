/// A whole JSON value in memory, for short texts: requests and answers of the control interface.
package enum JSONValue: Sendable, Hashable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number, as written.
    case number(String)
    case text(String)
    case array([JSONValue])
    /// An object: its fields in order.
    case object([Field])

    /// A field of an object.
    package struct Field: Sendable, Hashable {
        /// The name of the field.
        package let name: String
        /// The value of the field.
        package let value: JSONValue

        package init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    /// Parses one JSON text, nested at most ``JSONReader/maximumDepth`` levels.
    package init(_ json: RawSpan) throws(JSONError) {
        var reader = JSONReader(json)
        self = try Self.read(reader.next(), &reader)
        // Throws if something follows the value.
        _ = try reader.next()
    }

    private static func read(_ token: JSONReader.Token, _ reader: inout JSONReader) throws(JSONError) -> JSONValue {
        switch token {
        case .bool(let flag): return .bool(flag)
        case .number(let slice): return .number(reader.string(slice))
        case .text(let slice): return .text(reader.string(slice))
        case .arrayStart:
            var values: [JSONValue] = []
            while true {
                let next = try reader.next()
                if next == .arrayEnd { return .array(values) }
                values.append(try read(next, &reader))
            }
        case .objectStart:
            var fields: [Field] = []
            while case .name(let slice) = try reader.next() {
                fields.append(Field(reader.string(slice), try read(reader.next(), &reader)))
            }
            return .object(fields)
        // Besides `null`, the reader returns these tokens only inside an array or object.
        case .null, .arrayEnd, .objectEnd, .name, .end: return .null
        }
    }

    /// The value of a field; nil if this is not an object, the field is missing, or it is `null`.
    package subscript(_ name: String) -> JSONValue? {
        guard let value = fields.first(where: { $0.name == name })?.value, value != .null else { return nil }
        return value
    }

    /// The fields of an object; empty for other values.
    package var fields: [Field] {
        if case .object(let fields) = self { fields } else { [] }
    }

    /// The values of an array; empty for other values.
    package var values: [JSONValue] {
        if case .array(let values) = self { values } else { [] }
    }

    /// The text; nil for other values.
    package var text: String? {
        if case .text(let text) = self { text } else { nil }
    }

    /// The Boolean; nil for other values.
    package var bool: Bool? {
        if case .bool(let flag) = self { flag } else { nil }
    }

    /// The integer; nil for other values, and for numbers with fraction or exponent or beyond 64 bits.
    package var integer: Int64? {
        if case .number(let digits) = self { Int64(digits) } else { nil }
    }

    /// The value as JSON, in one line.
    package var json: String { LineBuffer.text { append(to: &$0) } }

    private func append(to line: inout LineBuffer) {
        switch self {
        case .null: append("null", to: &line)
        case .bool(let flag): append(flag ? "true" : "false", to: &line)
        case .number(let digits): append(digits, to: &line)
        case .text(let text):
            line.separate()
            line.appendJSONString(text)
        case .array(let values):
            line.openArray()
            for value in values { value.append(to: &line) }
            line.closeArray()
        case .object(let fields):
            line.openObject()
            for field in fields {
                line.field(named: field.name)
                field.value.append(to: &line)
            }
            line.closeObject()
        }
    }

    private func append(_ word: String, to line: inout LineBuffer) {
        line.separate()
        line.append(string: word)
    }
}
