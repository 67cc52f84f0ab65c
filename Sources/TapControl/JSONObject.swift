internal import TapRecord

/// The fields of a JSON object in a request. Duplicate and unknown fields are refused.
struct JSONObject {
    enum Value {
        case null
        case bool(Bool)
        case integer(Int64)
        case text(String)
        case object(JSONObject)
        /// An array, or a number that is not a 64-bit integer.
        case other
    }

    private var fields: [String: Value] = [:]

    /// Parses the body of a request; an empty body is an object without fields.
    init(_ bytes: [UInt8]) throws(Problem) {
        guard !bytes.isEmpty else { return }
        var reader = JSONReader(bytes.span.bytes)
        let problem: Problem
        do {
            guard case .objectStart = try reader.next() else { throw Problem.bad("the body is not a JSON object") }
            self = try JSONObject(&reader)
            _ = try reader.next()
            return
        } catch let error as JSONError {
            problem = .bad("the body is not JSON: \(error.code) at byte \(error.offset)")
        } catch {
            problem = error as? Problem ?? .bad("the body is not a JSON object")
        }
        throw problem
    }

    private init(_ reader: inout JSONReader) throws {
        while case .name(let slice) = try reader.next() {
            let name = reader.string(slice)
            let value: Value =
                switch try reader.next() {
                case .null: .null
                case .bool(let value): .bool(value)
                case .number(let number): reader.integer(number).map { .integer($0) } ?? .other
                case .text(let text): .text(reader.string(text))
                case .objectStart: .object(try JSONObject(&reader))
                case .arrayStart: try Self.skip(&reader)
                case .objectEnd, .arrayEnd, .name, .end: .other
                }
            guard fields.updateValue(value, forKey: name) == nil else {
                throw Problem.bad("duplicate field \"\(name)\"")
            }
        }
    }

    private static func skip(_ reader: inout JSONReader) throws -> Value {
        try reader.skipRest()
        return .other
    }

    /// Refuses fields with other names.
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
        switch fields[name] {
        case .integer(let value) where bounds.contains(value): return value
        case nil: return nil
        default: throw .refused("\"\(name)\" must be an integer from \(bounds.lowerBound) to \(bounds.upperBound)")
        }
    }

    /// Returns an object field; nil if it is absent.
    func object(_ name: String) throws(Problem) -> JSONObject? {
        switch fields[name] {
        case .object(let object): return object
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
