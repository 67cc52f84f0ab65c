/// The content hidden from every sink: logs, captures, stores, error texts. The raw value is used in a file's header.
///
/// Each case hides everything that the previous one hides, and more.
public enum RedactionPolicy: String, Sendable, Hashable, CaseIterable {
    /// Nothing is hidden: passwords, tokens and proofs are shown unchanged. Used only if the user requests it.
    case none
    /// Secrets, by the catalogue of rules.
    case secrets
    /// Secrets and everything that people write to each other and about themselves: bodies, subjects, statuses, names,
    /// files, forms, in any wrapping. Addresses, ids and the protocol's own words are shown.
    case bodies
    /// Everything except kind, time, size, sender and recipient; the local part and resource of addresses are
    /// pseudonyms.
    case metadata

    /// Whether texts other than secrets are hidden, so that every item must be checked.
    package var hidesTexts: Bool { self == .bodies || self == .metadata }

    /// Whether unparsed bytes may be shown: chunks, pieces of items beyond a limit, invalid XML, truncated items. No
    /// other code decides this.
    package var showsRawBytes: Bool { self == .none }
}
