/// Formats counts for users.
enum Plural {
    /// Formats a count with its noun: `1 rule`, `2 rules`.
    static func of(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
}
