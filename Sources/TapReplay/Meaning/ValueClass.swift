/// What kind of value a server, a client or a clock made up, so that it differs from one session to the next.
///
/// Values of different classes never share a binding: an id `1` of a request is not a stream-management id `1`.
public enum ValueClass: String, Sendable, Hashable, CaseIterable {
    /// A stream's id, of the stream header.
    case streamID = "stream-id"
    /// An id of an iq, message or presence.
    case stanzaID = "id"
    /// A resource, or the full JID that ends in it.
    case resource
    /// A bare JID.
    case account
    /// A domain.
    case domain
    /// A stream-management id (XEP-0198).
    case streamManagementID = "stream-management-id"
    /// The id of a stanza-id element, or of an archived message, which are the same (XEP-0359, XEP-0313).
    case archiveID = "archive-id"
    /// The id of an origin-id element (XEP-0359).
    case originID = "origin-id"
    /// The id of a pubsub item (XEP-0060).
    case itemID = "item-id"
    /// A version of a roster (RFC 6121 §2.6).
    case rosterVersion = "roster-version"
    /// A version of capabilities, or the hash of one.
    case version
    /// The id of a negotiation over several stanzas: Jingle, ad-hoc command, in-band bytestream.
    case exchangeID = "exchange-id"
    /// A URL that a server made for one use.
    case url
    /// Key material, a device id, a token, a nonce.
    case token
}
