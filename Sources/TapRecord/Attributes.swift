/// An ordered list of named values: what a decoder found in an item, ready for people and for JSON.
public struct Attributes: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// A value of a fact.
    public enum Value: Sendable, Hashable {
        case string(String)
        case integer(Int64)
        case boolean(Bool)
        case strings([String])
    }

    /// A name and its value. Names are JSON keys: lower case, words joined by `_`.
    public struct Entry: Sendable, Hashable {
        /// The name.
        public var name: String
        /// The value.
        public var value: Value
    }

    /// The facts in the order in which they were found.
    public private(set) var entries: [Entry] = []

    /// No facts yet.
    public init() {}

    /// Attributes in the order given.
    public init(dictionaryLiteral elements: (String, Value)...) {
        entries = elements.map { Entry(name: $0.0, value: $0.1) }
    }

    /// Whether there are none.
    public var isEmpty: Bool { entries.isEmpty }

    /// Gives each text, with the name that it stands under, to be changed.
    mutating func change(_ body: (String, inout String) -> Void) {
        for position in entries.indices {
            let name = entries[position].name
            switch entries[position].value {
            case .string(var text):
                body(name, &text)
                entries[position].value = .string(text)
            case .strings(var list):
                for index in list.indices { body(name, &list[index]) }
                entries[position].value = .strings(list)
            case .integer, .boolean: break
            }
        }
    }

    /// The value of `name`. Setting nil takes the fact away; a new one goes to the end.
    public subscript(_ name: String) -> Value? {
        get { entries.first { $0.name == name }?.value }
        set {
            guard let position = entries.firstIndex(where: { $0.name == name }) else {
                if let newValue { entries.append(Entry(name: name, value: newValue)) }
                return
            }
            if let newValue {
                entries[position].value = newValue
            } else {
                entries.remove(at: position)
            }
        }
    }
}

extension Attributes.Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A yes or no.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }

    /// The value as people read it; a list is joined by commas.
    public var text: String {
        switch self {
        case .string(let text): text
        case .integer(let number): String(number)
        case .boolean(let flag): flag ? "yes" : "no"
        case .strings(let list): list.joined(separator: ", ")
        }
    }
}
