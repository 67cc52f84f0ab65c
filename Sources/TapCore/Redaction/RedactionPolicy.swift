/// What is hidden from every sink: logs, captures, stores, error texts. The raw value stands in a file's header.
///
/// Policies that hide more (bodies, addresses) will come after ``secrets`` in the order of severity.
public enum RedactionPolicy: String, Sendable, Hashable, CaseIterable {
    /// Nothing: passwords, tokens and proofs are shown as they are. Only when the user asked for it.
    case none
    /// Secrets, by the catalogue of rules.
    case secrets

    /// Whether bytes may be shown that were not taken apart: chunks, pieces of items beyond a limit, what cannot be
    /// parsed, what was torn off. The one place where that is decided.
    public var showsRawBytes: Bool { self == .none }
}
