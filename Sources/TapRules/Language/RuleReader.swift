internal import TapRecord

/// Parses a line of a rule file from left to right, and creates faults with the column.
struct RuleReader {
    let place: RulePlace
    private let line: String
    /// The unread part.
    private(set) var rest: Substring

    /// Creates a reader of a line, or of its part from `start` on.
    init(_ line: String, at place: RulePlace, from start: String.Index? = nil) {
        self.line = line
        self.place = place
        rest = line[(start ?? line.startIndex)...]
    }

    /// Returns a reader of the text up to `end`.
    func prefix(upTo end: RuleReader) -> RuleReader {
        var part = self
        part.rest = rest[..<end.rest.startIndex]
        return part
    }

    /// The column of the next character, from 1.
    var column: Int { line.distance(from: line.startIndex, to: rest.startIndex) + 1 }

    var isAtEnd: Bool { rest.isEmpty }

    /// Returns a fault at the position of `start`; nil means the current position.
    func fault(_ found: String, _ expected: String? = nil, nearest: String? = nil, at start: RuleReader? = nil)
        -> RuleFault
    {
        RuleFault(place: place, column: (start ?? self).column, found: found, expected: expected, nearest: nearest)
    }

    mutating func skipSpaces() { rest = rest.drop(while: \.isWhitespace) }

    /// Consumes a text; returns false if the rest does not begin with it.
    mutating func consume(_ text: String) -> Bool {
        guard rest.hasPrefix(text) else { return false }
        rest = rest.dropFirst(text.count)
        return true
    }

    /// Consumes the longest prefix of characters that satisfy a predicate.
    mutating func consume(while isTaken: (Character) -> Bool) -> String {
        let taken = rest.prefix(while: isTaken)
        rest = rest[taken.endIndex...]
        return String(taken)
    }

    /// Consumes the text up to white space.
    mutating func word() -> String { consume { !$0.isWhitespace } }

    /// Consumes the rest.
    mutating func consumeRest() -> String {
        defer { rest = rest[rest.endIndex...] }
        return String(rest)
    }

    /// Consumes a list separated by commas, and also by white space and `|` if `isSpaced`. Each item has a reader at
    /// its start.
    mutating func list(isSpaced: Bool = false) -> [(text: String, reader: RuleReader)] {
        var items: [(String, RuleReader)] = []
        while !isAtEnd {
            skipSpaces()
            let start = self
            let item = consume { $0 != "," && !(isSpaced && ($0.isWhitespace || $0 == "|")) }
            let text = Self.trimmed(item)
            if !text.isEmpty { items.append((text, start)) }
            rest = rest.dropFirst()
        }
        return items
    }

    /// Consumes a list like ``list(isSpaced:)``; throws if it is empty.
    mutating func filledList(isSpaced: Bool = false) throws(RuleFault) -> [(text: String, reader: RuleReader)] {
        let start = self
        let items = list(isSpaced: isSpaced)
        guard !items.isEmpty else { throw fault("the list is empty", at: start) }
        return items
    }

    static func trimmed(_ text: String) -> String {
        var text = text[...].drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }

    // MARK: Values

    /// Throws unless the line ends here.
    mutating func end() throws(RuleFault) {
        skipSpaces()
        guard isAtEnd else {
            throw fault(
                "unexpected \"\(rest)\"",
                "expected the end of the line" + (rest.hasPrefix("#") ? " (comments need a separate line)" : "")
            )
        }
    }

    /// Consumes a name: a letter, then letters, digits and `_`.
    mutating func name(of what: String) throws(RuleFault) -> String {
        let start = self
        let name = consume { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        guard let first = name.first, first.isLetter else {
            throw fault(
                name.isEmpty ? "missing name of the \(what)" : "\"\(name)\" is not a name of a \(what)",
                "expected letters, digits and _, a letter first",
                at: start
            )
        }
        return name
    }

    /// Consumes an integer within a range.
    mutating func integer(_ what: String, in range: ClosedRange<Int>) throws(RuleFault) -> Int {
        let start = self
        let digits = consume { $0.isASCII && $0.isNumber }
        guard let value = Int(digits), range.contains(value) else {
            let most =
                range.upperBound == .max
                ? "a whole number from \(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
            throw fault(
                digits.isEmpty ? "missing \(what)" : "\(digits) is not a valid \(what)",
                "expected \(most)",
                at: start
            )
        }
        return value
    }

    /// Consumes a number with an optional decimal point.
    mutating func decimal(_ what: String) throws(RuleFault) -> Double {
        let start = self
        let digits = consume { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let value = Double(digits), value.isFinite else {
            throw fault(
                digits.isEmpty ? "missing \(what)" : "\"\(digits)\" is not a valid \(what)",
                "expected a number",
                at: start
            )
        }
        return value
    }

    /// Consumes a duration such as `500ms`, `2s`, `1.5min` or `1h`; returns nanoseconds.
    mutating func duration() throws(RuleFault) -> Int64 {
        let start = self
        let value = try decimal("duration")
        skipSpaces()
        let unit = consume { $0.isLetter }
        let scales: [String: Double] = ["ms": 1e6, "s": 1e9, "min": 6e10, "m": 6e10, "h": 3.6e12]
        guard let scale = scales[unit] else {
            throw fault(
                unit.isEmpty ? "a duration without a unit" : "\"\(unit)\" is not a unit of time",
                "expected ms, s, min or h, as in 500ms",
                at: start
            )
        }
        guard value * scale <= 1e18 else {
            throw fault("the duration is too long", "expected less than 30 years", at: start)
        }
        return Int64(value * scale)
    }

    /// Consumes a size such as `120`, `10kB` or `1MiB`; returns bytes.
    mutating func size(_ what: String = "size") throws(RuleFault) -> Int {
        let start = self
        let value = try integer(what, in: 0...(1 << 40))
        skipSpaces()
        let unit = consume { $0.isLetter }
        let scales = ["": 1, "b": 1, "kb": 1000, "mb": 1_000_000, "kib": 1 << 10, "mib": 1 << 20]
        guard let scale = scales[unit.lowercased()] else {
            throw fault("\"\(unit)\" is not a unit of size", "expected B, kB, MB, KiB or MiB", at: start)
        }
        return value * scale
    }

    /// Consumes the sign of a comparison such as `> 10`.
    mutating func comparison() throws(RuleFault) -> Comparison {
        skipSpaces()
        let start = self
        let sign = consume { "<>=".contains($0) }
        skipSpaces()
        guard let comparison = Comparison(sign: sign) else {
            throw fault(
                sign.isEmpty ? "missing comparison" : "\"\(sign)\" is not a comparison",
                "expected >, <, >=, <= or =",
                at: start
            )
        }
        return comparison
    }

    /// Consumes the options at the end of the line: `(jitter 500ms) (entries 4096)`. Returns a reader for each.
    mutating func options() throws(RuleFault) -> [RuleReader] {
        var found: [RuleReader] = []
        skipSpaces()
        while !isAtEnd {
            let start = self
            guard consume("("), let end = rest.firstIndex(of: ")") else {
                throw fault(
                    "unexpected \"\(start.rest)\"",
                    "expected an option in parentheses, as in (\(start.rest.drop { $0 == "(" })), or the end of the line",
                    at: start
                )
            }
            var option = self
            option.rest = rest[..<end]
            option.skipSpaces()
            found.append(option)
            rest = rest[rest.index(after: end)...]
            skipSpaces()
        }
        return found
    }

    /// Consumes one of several words.
    mutating func choice<Value>(_ what: String, _ values: [(String, Value)]) throws(RuleFault) -> Value {
        skipSpaces()
        let start = self
        let word = consume { !$0.isWhitespace && $0 != "," }
        if let value = values.first(where: { $0.0 == word.lowercased() }) { return value.1 }
        throw fault(
            word.isEmpty ? "missing \(what)" : "\"\(word)\" is not a valid \(what)",
            "expected \(values.map(\.0).joined(separator: ", "))",
            nearest: Spelling.nearest(to: word, among: values.map(\.0)),
            at: start
        )
    }
}

/// A comparison of two numbers.
enum Comparison: Sendable, Hashable {
    case less, lessOrEqual, equal, greaterOrEqual, greater

    init?(sign: String) {
        switch sign {
        case "<": self = .less
        case "<=": self = .lessOrEqual
        case "=", "==": self = .equal
        case ">=": self = .greaterOrEqual
        case ">": self = .greater
        default: return nil
        }
    }

    func holds<Value: Comparable>(_ left: Value, _ right: Value) -> Bool {
        switch self {
        case .less: left < right
        case .lessOrEqual: left <= right
        case .equal: left == right
        case .greaterOrEqual: left >= right
        case .greater: left > right
        }
    }
}
