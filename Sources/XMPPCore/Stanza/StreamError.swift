/// The error that ends a stream (RFC 6120 §4.9).
public struct StreamError: Sendable, Equatable {
    /// The `<error/>` element of the streams namespace.
    public let element: Element

    /// The view of a stream error; nil for any other element.
    public init?(_ element: Element) {
        guard element.matches("error", .streams) else { return nil }
        self.element = element
    }

    /// The defined condition; nil where the element has none that RFC 6120 knows.
    public var condition: StreamErrorCondition? { conditionName.flatMap(StreamErrorCondition.init) }

    /// The defined condition as its element is named, known or not.
    public var conditionName: String? { conditionElement?.name }

    private var conditionElement: Element? {
        element.firstChild { $0.namespace == .streamErrors && !$0.isNamed("text") }
    }

    /// Words for people; where there is no text of RFC 6120, those of an old error.
    public var text: String? {
        if let text = element.childText("text", .streamErrors) { return text }
        let own = element.text
        return conditionElement == nil && !own.isEmpty ? own : nil
    }

    /// Where to go instead, as written: a host, a host and port, or an IPv6 address in brackets (RFC 6120 §4.9.3.19).
    public var otherHost: String? {
        guard let conditionElement, conditionElement.isNamed("see-other-host") else { return nil }
        return conditionElement.text
    }

    /// The application's own condition beside the defined one.
    public var applicationCondition: Element? { element.firstChild { $0.namespace != .streamErrors } }
}
