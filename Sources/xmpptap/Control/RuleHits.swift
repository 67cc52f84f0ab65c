internal import TapRecord

/// The hits of a running proxy's rules, for people.
struct RuleHits {
    /// The rules, as the proxy lists them.
    let rules: [JSONValue]

    /// The lines, each at most `width` columns wide, if that can be; nil cuts nothing. Of a long path the end stays, which
    /// has the rule's line.
    func lines(width: Int?) -> [String] {
        let rows = rules.map { rule in
            let line = rule["line"]?.integer.map { ":\($0)" } ?? ""
            return [rule["hits"]?.integer.map { "\($0)" } ?? "-", "\(rule["file"]?.text ?? "")\(line)"]
        }
        var table = TextTable(header: ["HITS", "RULE"], rows: rows, numeric: [0], flexible: [1])
        table.cutAtStart = [1]
        return table.lines(width: width)
    }
}
