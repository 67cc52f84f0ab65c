/// An iq stanza: a request or its answer (RFC 6120 §8.2.3).
public struct IQ: Stanza {
    /// What an iq is; there is no default.
    public enum Kind: String, Sendable, CaseIterable {
        case get, set, result, error
    }

    /// The element itself.
    public let element: Element

    /// The view of an `<iq/>`; nil for any other element. An iq without a valid type is viewed too.
    public init?(_ element: Element) {
        guard element.isStanza("iq") else { return nil }
        self.element = element
    }

    /// Its type; nil where the attribute is absent or none of the four, which RFC 6120 forbids.
    public var type: Kind? { element.attribute("type").flatMap(Kind.init) }

    /// A get or set: the receiver owes an answer.
    public var isRequest: Bool { type == .get || type == .set }
    /// A result or error: it answers the request with the same id.
    public var isResponse: Bool { type == .result || type == .error }

    /// What it is about: the first child that is not the error. Of a result it may be absent.
    public var payload: Element? {
        element.firstChild { !($0.namespace == element.namespace && $0.isNamed("error")) }
    }
}
