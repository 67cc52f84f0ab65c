internal import TapRules

/// Parses and formats noise files.
package enum NoiseFile {
    /// An error in a line.
    package struct Fault: Error, Sendable, Hashable, CustomStringConvertible {
        /// The file name as given.
        package let file: String
        /// Number of the line, from 1.
        package let line: Int
        /// Column in bytes, from 1.
        package let column: Int
        /// The human-readable message.
        package let message: String

        /// `FILE:LINE:COLUMN: MESSAGE`
        package var description: String { "\(file):\(line):\(column): \(message)" }
    }

    /// All errors of a file; none of its rules apply.
    package struct Faults: Error, Sendable, Hashable {
        /// The errors, at most one per line.
        package let faults: [Fault]
    }

    /// Parses the rules of a noise file.
    package static func rules(_ text: String, file: String) throws(Faults) -> [NoiseRules.Rule] {
        var rules: [NoiseRules.Rule] = []
        var faults: [Fault] = []
        for (number, line) in lines(of: text).enumerated() {
            do throws(LineFault) {
                if let rule = try rule(line) { rules.append(rule) }
            } catch {
                faults.append(Fault(file: file, line: number + 1, column: error.column + 1, message: error.message))
            }
        }
        guard faults.isEmpty else { throw Faults(faults: faults) }
        return rules
    }

    /// Splits a text into lines. Swift treats CR LF as a single `Character`.
    private static func lines(of text: String) -> [Substring] {
        text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    }

    private struct LineFault: Error {
        let column: Int
        let message: String
    }

    /// Parses a line; nil if it contains no rule.
    private static func rule(_ line: Substring) throws(LineFault) -> NoiseRules.Rule? {
        func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" || character == "\r" }
        func column(_ part: Substring) -> Int { line.utf8.distance(from: line.startIndex, to: part.startIndex) }
        let place = line.drop(while: isSpace).prefix { !isSpace($0) }
        guard let first = place.first, first != "#" else { return nil }
        let locator: Locator
        do throws(Locator.Fault) {
            locator = try Locator(String(place))
        } catch {
            throw LineFault(column: column(place) + error.offset, message: error.message)
        }
        let name = line[place.endIndex...].drop(while: isSpace).prefix { !isSpace($0) }
        var argument = line[name.endIndex...].drop(while: isSpace)
        while argument.last.map(isSpace) == true { argument.removeLast() }

        func needsValue() throws(LineFault) {
            guard locator.target == .element else { return }
            throw LineFault(column: column(name), message: "\(name) needs a place that ends in @NAME or text()")
        }
        func end() throws(LineFault) {
            guard argument.isEmpty || argument.first == "#" else {
                throw LineFault(column: column(argument), message: "expected the end of the line after \(name)")
            }
        }
        if let occurrence = try occurrence(name, argument, column) {
            switch (occurrence, locator.target) {
            case (_, .element), (.mayBeAbsent, .attribute): break
            case (.mayBeAbsent, .text):
                throw LineFault(
                    column: column(name),
                    message: "may be absent needs a place that ends in an element or @NAME"
                )
            case (.anyNumber, _), (.anyOrder, _):
                throw LineFault(
                    column: column(name),
                    message: "\(occurrence.rawValue) needs a place that ends in an element"
                )
            }
            let rest = argument.drop { $0 != "#" }.dropFirst()
            let source = rest.drop(while: isSpace)
            return NoiseRules.Rule(locator, .occurs(occurrence), source: source.isEmpty ? nil : String(source))
        }
        switch name {
        case "ignore":
            try end()
            return NoiseRules.Rule(locator, .ignore)
        case "present":
            try end()
            return NoiseRules.Rule(locator, .present)
        case "jid":
            try needsValue()
            try end()
            return NoiseRules.Rule(locator, .address)
        case "regex":
            try needsValue()
            guard !argument.isEmpty else {
                throw LineFault(column: column(argument), message: "expected a regular expression")
            }
            do throws(PatternFault) {
                return NoiseRules.Rule(locator, .matches(try NoiseRules.Expression(String(argument))))
            } catch {
                throw LineFault(column: column(argument) + error.offset, message: error.message)
            }
        case "number":
            try needsValue()
            let sign = argument.hasPrefix("±") ? 1 : argument.hasPrefix("+-") ? 2 : 0
            guard sign > 0,
                let number = Double(argument.dropFirst(sign).drop { $0 == " " }), number >= 0, number.isFinite
            else { throw LineFault(column: column(argument), message: "expected ± and a number, such as ± 0.5") }
            return NoiseRules.Rule(locator, .number(within: number))
        case "bind", "bind-suffix", "follow":
            try needsValue()
            guard let valueClass = ValueClass(rawValue: String(argument)) else {
                let names = ValueClass.allCases.map(\.rawValue).joined(separator: ", ")
                throw LineFault(column: column(argument), message: "expected a class of values: \(names)")
            }
            switch name {
            case "bind": return NoiseRules.Rule(locator, .bind(valueClass))
            case "follow": return NoiseRules.Rule(locator, .follow(valueClass))
            default: return NoiseRules.Rule(locator, .bindSuffix(valueClass))
            }
        default:
            throw LineFault(
                column: column(name),
                message: "expected ignore, present, regex, number, bind, bind-suffix, follow, jid, may be absent, "
                    + "any number or any order"
            )
        }
    }

    /// Parses `may be absent`, `any number` or `any order`, with its words separated by blanks; nil for other actions.
    private static func occurrence(
        _ first: Substring,
        _ argument: Substring,
        _ column: (Substring) -> Int
    ) throws(LineFault) -> NoiseRules.Occurrence? {
        guard first == "may" || first == "any" else { return nil }
        let words = argument.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
        let text = ([first] + words).joined(separator: " ")
        guard let occurrence = NoiseRules.Occurrence(rawValue: text) else {
            throw LineFault(column: column(first), message: "expected may be absent, any number or any order")
        }
        return occurrence
    }

    /// Formats rules, one per line.
    package static func text(_ rules: [NoiseRules.Rule]) -> String { rules.map { "\($0)\n" }.joined() }
}

extension NoiseRules.Rule: CustomStringConvertible {
    /// The rule as a line of a noise file.
    package var description: String {
        switch action {
        case .ignore: "\(locator.text) ignore"
        case .present: "\(locator.text) present"
        case .matches(let expression): "\(locator.text) regex \(expression.text)"
        case .number(let tolerance): "\(locator.text) number ± \(tolerance)"
        case .bind(let valueClass): "\(locator.text) bind \(valueClass.rawValue)"
        case .follow(let valueClass): "\(locator.text) follow \(valueClass.rawValue)"
        case .bindSuffix(let valueClass): "\(locator.text) bind-suffix \(valueClass.rawValue)"
        case .address: "\(locator.text) jid"
        case .occurs(let occurrence): "\(locator.text) \(occurrence.rawValue)\(source.map { " # \($0)" } ?? "")"
        }
    }
}
