/// What is hidden from every sink: logs, captures, stores, error texts. The raw value stands in a file's header.
///
/// Each hides what the one before it hides, and more.
public enum RedactionPolicy: String, Sendable, Hashable, CaseIterable {
    /// Nothing: passwords, tokens and proofs are shown as they are. Only when the user asked for it.
    case none
    /// Secrets, by the catalogue of rules.
    case secrets
    /// What people write to each other and about themselves, too: bodies, subjects, statuses, names, files, forms, in
    /// whatever they are wrapped. Addresses, ids and the protocol's own words are shown.
    case bodies
    /// All but what kind of thing went by, when, how large, and between whom; of addresses the local part and resource
    /// are pseudonyms.
    case metadata

    /// Whether texts that are no secrets are hidden, so that every item must be looked through.
    public var hidesTexts: Bool { self == .bodies || self == .metadata }

    /// Whether bytes may be shown that were not taken apart: chunks, pieces of items beyond a limit, what cannot be
    /// parsed, what was torn off. The one place where that is decided.
    public var showsRawBytes: Bool { self == .none }
}
