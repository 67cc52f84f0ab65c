/// The kind of a volatile value: one that a server, client or clock generates, so that it differs between sessions.
///
/// Values of different classes never share a binding: an id `1` of a request is not a stream-management id `1`.
package enum ValueClass: String, Sendable, Hashable, CaseIterable {
    /// The id of a stream header.
    case streamID = "stream-id"
    /// The id of an iq, message or presence.
    case stanzaID = "id"
    /// A resource, or a full JID with this resource.
    case resource
    /// A bare JID.
    case account
    /// A domain.
    case domain
    /// The id of a stream management session (XEP-0198).
    case streamManagementID = "stream-management-id"
    /// The id of a stanza-id element or of an archived message, which are the same (XEP-0359, XEP-0313).
    case archiveID = "archive-id"
    /// The id of an origin-id element (XEP-0359).
    case originID = "origin-id"
    /// The id of a pubsub item (XEP-0060).
    case itemID = "item-id"
    /// The version of a roster (RFC 6121 §2.6).
    case rosterVersion = "roster-version"
    /// A version or hash of entity capabilities.
    case version
    /// The id of an exchange of several stanzas: Jingle, ad-hoc command, in-band bytestream.
    case exchangeID = "exchange-id"
    /// A URL that a server generated for one use.
    case url
    /// Key material, a device id, a token, a nonce.
    case token
}
