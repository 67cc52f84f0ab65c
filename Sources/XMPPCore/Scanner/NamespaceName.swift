/// A namespace as a head names it: one of the table, or a URI to be looked up where it was declared.
public struct NamespaceName: Sendable, Hashable {
    /// Where an unknown URI stands.
    public enum Source: Sendable, Hashable {
        /// In the table of known namespaces.
        case known
        /// In the item, as written in its `xmlns` attribute.
        case item(ByteRange)
        /// Declared by the stream header.
        case inherited(ByteRange)
    }

    /// The namespace, ``Namespace/other`` for an unknown one.
    public var namespace: Namespace
    /// Where an unknown URI stands.
    public var source: Source

    /// A namespace of the table.
    public init(_ namespace: Namespace) {
        self.namespace = namespace
        source = .known
    }

    init(declared range: ByteRange) {
        namespace = .other
        source = .item(range)
    }

    init(inherited range: ByteRange) {
        namespace = .other
        source = .inherited(range)
    }
}
