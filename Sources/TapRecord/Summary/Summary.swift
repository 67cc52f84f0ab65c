public import XMPPCore

/// What an item says, in a line for people: `roster: 2 contacts`, `joins the room`, `publishes avatar metadata: image/png 2.1 kB`.
///
/// Made of what may be shown of the item, so that nothing that redaction hides can come into it; bodies, subjects and
/// other texts that people write are told by their size. At most ``longest`` bytes, whatever the item holds. Texts of
/// the wire in it (addresses, names, nodes) are as they came: a sink escapes them, as it does all texts.
public enum Summary {
    /// The most bytes of UTF-8 that a summary has.
    public static let longest = SummaryLine.limit

    /// What is known beside the item.
    public struct Context: Sendable {
        /// Which way it goes; nil where that is not known.
        public var direction: Direction?
        /// The session's full JID, once it is bound.
        public var jid: String?
        /// The summary of the request that it answers.
        public var request: Prose?

        /// A context with nothing known.
        public init(direction: Direction? = nil, jid: String? = nil, request: Prose? = nil) {
            self.direction = direction
            self.jid = jid
            self.request = request
        }
    }

    /// The summary of a stanza or another element of a stream; nil where there is nothing to say beyond its name.
    public static func words(of element: Element, _ context: Context = Context()) -> String? {
        var line = SummaryLine(context)
        if element.namespace.isContent {
            line.append(stanza: element)
        } else {
            line.append(payload: element)
            if line.isEmpty { line.appendName(element) }
        }
        return line.isEmpty ? nil : line.text
    }

    /// The summary of an item of which only the head is known: what its payload is.
    public static func words(name: Span<UInt8>, namespace: Namespace, uri: Span<UInt8>) -> String? {
        guard !name.isEmpty else { return nil }
        var line = SummaryLine(Context())
        line.appendName(name.string(), namespace, uri.string())
        return line.text
    }

    /// What a presence of that type says (RFC 6121 §4.7.1); nil for one that this table does not know.
    static func presence(_ type: Span<UInt8>) -> String? {
        switch type.count {
        case 0: "available"
        case 11 where type.equals("unavailable"): "no longer available"
        case 9 where type.equals("subscribe"): "asks to subscribe"
        case 10 where type.equals("subscribed"): "approves the subscription"
        case 11 where type.equals("unsubscribe"): "unsubscribes"
        case 12 where type.equals("unsubscribed"): "denies or cancels the subscription"
        case 5 where type.equals("probe"): "asks for presence"
        default: nil
        }
    }
}
