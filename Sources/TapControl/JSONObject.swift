internal import TapRecord

/// The fields of a JSON object in a request. Duplicate and unknown fields are refused.
struct JSONObject {
    private var fields: [String: JSONValue] = [:]

    /// Parses the body of a request; an empty body is an object without fields.
    init(_ bytes: [UInt8]) throws(Problem) {
        let body: JSONValue
        do throws(JSONError) {
            body = bytes.isEmpty ? .object([]) : try JSONValue(bytes.span.bytes)
        } catch {
            throw .bad("the body is not JSON: \(error.code) at byte \(error.offset)")
        }
        guard case .object(let fields) = body else { throw .bad("the body is not a JSON object") }
        try self.init(fields: fields)
    }

    private init(fields list: [JSONValue.Field]) throws(Problem) {
        for field in list {
            guard fields.updateValue(field.value, forKey: field.name) == nil else {
                throw .bad("duplicate field \"\(field.name)\"")
            }
        }
    }

    /// Throws a problem if there are fields with other names.
    func allow(_ names: String...) throws(Problem) {
        guard let unknown = fields.keys.filter({ !names.contains($0) }).min() else { return }
        throw .refused("unknown field \"\(unknown)\"; known are \(names.joined(separator: ", "))")
    }

    /// Returns whether the field is present, even with null.
    func has(_ name: String) -> Bool { fields[name] != nil }

    /// Returns a string field; nil if it is absent, or null if that is allowed.
    func text(_ name: String, orNull: Bool = false) throws(Problem) -> String? {
        switch fields[name] {
        case .text(let text): return text
        case nil: return nil
        case .null where orNull: return nil
        default: throw .refused("\"\(name)\" must be a string")
        }
    }

    /// Returns a boolean field; nil if it is absent.
    func bool(_ name: String) throws(Problem) -> Bool? {
        switch fields[name] {
        case .bool(let value): return value
        case nil: return nil
        default: throw .refused("\"\(name)\" must be true or false")
        }
    }

    /// Returns an integer field within bounds; nil if it is absent.
    func integer(_ name: String, in bounds: ClosedRange<Int64>) throws(Problem) -> Int64? {
        guard let field = fields[name] else { return nil }
        guard let value = field.integer, bounds.contains(value) else {
            throw .refused("\"\(name)\" must be an integer from \(bounds.lowerBound) to \(bounds.upperBound)")
        }
        return value
    }

    /// Returns an object field; nil if it is absent.
    func object(_ name: String) throws(Problem) -> JSONObject? {
        switch fields[name] {
        case .object(let fields): return try JSONObject(fields: fields)
        case nil: return nil
        default: throw .refused("\"\(name)\" must be an object")
        }
    }

    /// Returns a required string field.
    func required(_ name: String) throws(Problem) -> String {
        guard let text = try text(name) else { throw .refused("\"\(name)\" is missing") }
        return text
    }
}
