internal import TapRecord

/// The hit counts of a running proxy's rules, as text for users.
struct RuleHits {
    /// The rules, as the proxy lists them.
    let rules: [JSONValue]

    /// Returns the lines, at most `width` columns wide if possible; with nil, nothing is cut. Long paths are cut at the
    /// start, because their end contains the line number of the rule.
    func lines(width: Int?) -> [String] {
        let rows = rules.map { rule in
            let line = rule["line"]?.integer.map { ":\($0)" } ?? ""
            let state = rule["on"] == .bool(false) ? " (off)" : ""
            return [rule["hits"]?.integer.map { "\($0)" } ?? "-", "\(rule["file"]?.text ?? "")\(line)\(state)"]
        }
        var table = TextTable(header: ["HITS", "RULE"], rows: rows, numeric: [0], flexible: [1])
        table.cutAtStart = [1]
        return table.lines(width: width)
    }
}
