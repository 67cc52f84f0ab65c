/// An ordered list of named values that a decoder found in an item, in a form suitable for people and for JSON.
package struct Attributes: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// The value of an attribute.
    package enum Value: Sendable, Hashable {
        case string(String)
        case integer(Int64)
        case boolean(Bool)
        case strings([String])
    }

    /// A name and its value. Names are JSON keys: lower case, words joined by `_`.
    package struct Entry: Sendable, Hashable {
        /// The name.
        package var name: String
        /// The value.
        package var value: Value
    }

    /// The attributes in the order in which they were found.
    package private(set) var entries: [Entry] = []

    package init() {}

    /// Creates attributes in the given order.
    package init(dictionaryLiteral elements: (String, Value)...) {
        entries = elements.map { Entry(name: $0.0, value: $0.1) }
    }

    /// Whether the list is empty.
    package var isEmpty: Bool { entries.isEmpty }

    /// Replaces each text by the result of `body`, which gets the name and the text; nil keeps the text.
    ///
    /// If all texts are kept, the list is not copied: the session may share it.
    mutating func change(_ body: (_ name: String, _ text: String) -> String?) {
        for position in entries.indices {
            switch entries[position].value {
            case .string(let text):
                if let changed = body(entries[position].name, text) { entries[position].value = .string(changed) }
            case .strings(var list):
                var isChanged = false
                for index in list.indices {
                    guard let changed = body(entries[position].name, list[index]) else { continue }
                    list[index] = changed
                    isChanged = true
                }
                if isChanged { entries[position].value = .strings(list) }
            case .integer, .boolean: break
            }
        }
    }

    /// Appends a value without checking that its name is new; nil adds nothing.
    package mutating func append(_ name: String, _ value: Value?) {
        if let value { entries.append(Entry(name: name, value: value)) }
    }

    /// Reserves space for `count` attributes.
    package mutating func reserveCapacity(_ count: Int) { entries.reserveCapacity(count) }

    /// The value of the attribute `name`. Setting nil removes the attribute; setting a value for a new name appends it.
    package subscript(_ name: String) -> Value? {
        get { entries.first { $0.name == name }?.value }
        set {
            guard let position = entries.firstIndex(where: { $0.name == name }) else {
                guard let newValue else { return }
                // Grows the array once instead of three times.
                if entries.count == entries.capacity, entries.count < 8 { entries.reserveCapacity(8) }
                return entries.append(Entry(name: name, value: newValue))
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
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates a Boolean.
    package init(booleanLiteral value: Bool) { self = .boolean(value) }

    /// The value, as human-readable text; a list is joined by commas.
    package var text: String {
        switch self {
        case .string(let text): text
        case .integer(let number): String(number)
        case .boolean(let flag): flag ? "yes" : "no"
        case .strings(let list): list.joined(separator: ", ")
        }
    }
}
