/// A namespace to compare with: one of the table, or the URI of another.
public struct NamespaceKey: Sendable, Hashable {
    /// The namespace, ``Namespace/other`` for one that is not in the table.
    public let namespace: Namespace
    /// The URI.
    public let uri: [UInt8]

    /// The namespace of that URI; empty is none.
    public init(uri: [UInt8]) {
        namespace = Namespace(uri: uri.span)
        self.uri = uri
    }
}

// Lookups by names that are known only at run time, as those of a rule are.
extension Element {
    /// Whether the element is in a namespace.
    public func isIn(_ name: NamespaceKey) -> Bool {
        let node = arena.node(index)
        guard node.namespace == name.namespace else { return false }
        return node.namespace != .other || arena.bytes(node.uri).span.equals(name.uri.span)
    }

    /// Whether both elements are in the same namespace.
    public func isInNamespace(of other: Element) -> Bool {
        let (node, otherNode) = (arena.node(index), other.arena.node(other.index))
        guard node.namespace == otherNode.namespace else { return false }
        return node.namespace != .other || arena.bytes(node.uri).span.equals(other.arena.bytes(otherNode.uri).span)
    }

    /// Whether the local name is `name`, in whatever namespace.
    public func isNamed(_ name: [UInt8]) -> Bool { withName { $0.equals(name.span) } }

    /// The bytes of the value of an attribute; nil where it is absent.
    public func attribute(named name: [UInt8], in namespace: NamespaceKey) -> [UInt8]? {
        let node = arena.node(index)
        for position in Int(node.firstAttribute)..<(Int(node.firstAttribute) &+ Int(node.attributeCount)) {
            let attribute = arena.attribute(position)
            guard attribute.namespace == namespace.namespace, arena.bytes(attribute.name).span.equals(name.span),
                attribute.namespace != .other || arena.bytes(attribute.uri).span.equals(namespace.uri.span)
            else { continue }
            return Array(arena.bytes(attribute.value))
        }
        return nil
    }
}
