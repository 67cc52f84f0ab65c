/// The content hidden from every sink: logs, captures, stores, error texts. The raw value is used in a file's header.
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
    /// Everything except kind, time, size, sender and recipient; the local part and resource of addresses are
    /// pseudonyms.
    case metadata

    /// Whether texts other than secrets are hidden, so that every item must be checked.
    public var hidesTexts: Bool { self == .bodies || self == .metadata }

    /// Whether unparsed bytes may be shown: chunks, pieces of items beyond a limit, invalid XML, truncated items. This
    /// is the only place that decides it.
    public var showsRawBytes: Bool { self == .none }
}
