import XMPPCore

/// One kind of payload: the namespaces it is told by, the document that defines it, and how it is told.
struct SummaryFormatter: Sendable {
    /// Appends what a payload says. `stanza` is the stanza it came in, where it came in one.
    typealias Telling = @Sendable (_ payload: Element, _ line: inout SummaryLine) -> Void

    /// Where it is defined, `XEP-0045` or `RFC 6121`.
    let source: StaticString
    let namespaces: [Namespace]
    let tell: Telling

    init(_ source: StaticString, _ namespaces: Namespace..., tell: @escaping Telling) {
        self.source = source
        self.namespaces = namespaces
        self.tell = tell
    }

    /// How a payload of that namespace is told; nil where no family knows it.
    static func telling(_ namespace: Namespace) -> Telling? { tellings[Int(namespace.rawValue)] }

    /// The table. What stands in no family is told as `{namespace}name`.
    static let all: [SummaryFormatter] =
        core + messages + copies + contacts + discovery + people + rooms + pubsub + bookmarks + blocking + files + calls
        + encryption + streams + queries + forms

    /// By the raw value of the namespace.
    private static let tellings: [Telling?] = {
        var tellings = [Telling?](repeating: nil, count: 256)
        for family in all {
            for namespace in family.namespaces { tellings[Int(namespace.rawValue)] = family.tell }
        }
        return tellings
    }()
}
