/// The reason why a stanza cannot be sent with its addresses, as a clause.
package enum AddressFault: CustomStringConvertible {
    /// The stanza lacks `from` or `to`, which streams between servers (RFC 6120 §8.1.1.2, §8.1.2.2) and of components
    /// (XEP-0114) require.
    case missing(attribute: String)
    /// The stanza goes to the server, but its `from` is not the session's JID (RFC 6120 §8.1.2.1).
    case foreignSender(String, jid: String)
    /// The stanza goes to the server, but the domain of its `from` is not that of the sending server or component (RFC
    /// 6120 §8.1.2.2, XEP-0114).
    case foreignDomain(String, domain: String)

    /// The value of an address is not a JID (RFC 6120 §8.1).
    case notJID(String, attribute: String)

    package var description: String {
        switch self {
        case .notJID(let value, let attribute): "\(attribute)='\(value)' is not a JID"
        case .missing(let attribute): "it has no \(attribute); in this stream each stanza has from and to"
        case .foreignSender(let from, let jid):
            "from='\(from)' is not the session's JID (\(jid)); the server would close the stream (invalid-from)"
        case .foreignDomain(let from, let domain):
            "from='\(from)' is not of \(domain), the domain of this stream; the server would close it (invalid-from)"
        }
    }
}
