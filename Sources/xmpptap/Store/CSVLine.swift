/// A line of comma-separated values (RFC 4180).
enum CSVLine {
    /// Returns the line of some values, without its end.
    static func text(_ values: [String]) -> String { values.map(quoted).joined(separator: ",") }

    /// Quotes a value (RFC 4180 §2). A value that a spreadsheet would take for a formula gets an apostrophe before it.
    private static func quoted(_ value: String) -> String {
        let isFormula = value.first.map { "=+-@\t\r".contains($0) } ?? false
        let text = isFormula ? "'\(value)" : value
        guard text.contains(where: { "\",\r\n".contains($0) || $0 == "\r\n" }) || isFormula else { return text }
        return "\"\(text.replacing("\"", with: "\"\""))\""
    }
}
