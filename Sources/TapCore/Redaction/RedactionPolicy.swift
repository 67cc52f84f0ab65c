/// What is hidden from every sink.
public enum RedactionPolicy: String, Sendable, Hashable {
    /// Nothing: passwords, tokens and proofs are shown as they are. Only when the user asked for it.
    case none
    /// Secrets.
    case secrets
}
