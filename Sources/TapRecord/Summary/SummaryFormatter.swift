import XMPPCore

/// Formats one kind of payload, recognised by its namespaces.
struct SummaryFormatter: Sendable {
    /// Appends what a payload says. `stanza` is the stanza it came in, where it came in one.
    typealias Telling = @Sendable (_ payload: Element, _ line: inout SummaryLine) -> Void

    let namespaces: [Namespace]
    let tell: Telling

    /// - Parameter source: Where it is defined, `XEP-0045` or `RFC 6121`.
    init(_ source: StaticString, _ namespaces: Namespace..., tell: @escaping Telling) {
        self.namespaces = namespaces
        self.tell = tell
    }

    /// The formatter of payloads of that namespace; nil if there is none.
    static func telling(_ namespace: Namespace) -> Telling? { tellings[Int(namespace.rawValue)] }

    /// The table. A payload without a formatter is shown as `{namespace}name`.
    static let all: [SummaryFormatter] =
        core + messages + copies + people + queries + rooms + pubsub + media

    /// By the raw value of the namespace.
    private static let tellings: [Telling?] = {
        var tellings = [Telling?](repeating: nil, count: 256)
        for family in all {
            for namespace in family.namespaces { tellings[Int(namespace.rawValue)] = family.tell }
        }
        return tellings
    }()
}
