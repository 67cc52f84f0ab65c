/// The namespace declarations in force, innermost last, with the bytes of prefixes and URIs in one arena.
///
/// Bytes are copied once when a declaration comes into force, so the tag it stood in may go.
struct NamespaceScope {
    private struct Binding {
        var prefix: ByteRange
        var uri: ByteRange
        var namespace: Namespace
        /// Where the URI stands in the item, or empty when it was declared before the item began.
        var source: ByteRange
    }

    private var bindings: [Binding] = []
    private var arena: [UInt8] = []

    /// Number of declarations in force: give it to ``leave(to:)`` when the element that made more of them ends.
    var count: Int { bindings.count }

    mutating func removeAll() {
        bindings.removeAll(keepingCapacity: true)
        arena.removeAll(keepingCapacity: true)
    }

    /// Makes this a copy of `other`, in memory of its own.
    mutating func assign(_ other: borrowing NamespaceScope) {
        removeAll()
        bindings.append(contentsOf: other.bindings)
        arena.append(contentsOf: other.arena)
    }

    /// Brings the declarations of a tag into force. `isHeader`: they outlive the item they stand in.
    mutating func enter(_ tag: borrowing Tag, in bytes: Span<UInt8>, isHeader: Bool) -> ScanFault.Code? {
        for attribute in tag.attributes where attribute.isDeclaration {
            let prefix =
                attribute.colon < 0
                ? bytes.extracting(0..<0) : bytes.extracting((Int(attribute.colon) + 1)..<Int(attribute.name.end))
            let prefixStart = arena.count
            arena.append(prefix)
            let uriStart = arena.count
            AttributeValue.decode(bytes.extracting(attribute.value.range), into: &arena)
            let namespace = Namespace(uri: arena.span.extracting(uriStart..<arena.count))
            let isEmpty = uriStart == arena.count
            if let fault = Self.check(prefix: prefix, namespace: namespace, isEmpty: isEmpty) { return fault }
            bindings.append(
                Binding(
                    prefix: ByteRange(prefixStart, uriStart),
                    uri: ByteRange(uriStart, arena.count),
                    namespace: namespace,
                    source: isHeader ? .empty : attribute.value
                )
            )
        }
        return nil
    }

    /// The rules of Namespaces in XML 1.0 §3 and §5 for what may be declared.
    private static func check(prefix: Span<UInt8>, namespace: Namespace, isEmpty: Bool) -> ScanFault.Code? {
        if prefix.equals("xml") { return namespace == .xml ? nil : .reservedPrefix }
        if prefix.equals("xmlns") || namespace == .xml || namespace == .xmlns { return .reservedPrefix }
        return isEmpty && !prefix.isEmpty ? .unboundPrefix : nil
    }

    /// Ends the declarations made since there were `count`.
    @inline(__always)
    mutating func leave(to count: Int) {
        while bindings.count > count, let last = bindings.popLast() {
            arena.removeLast(arena.count - Int(last.prefix.start))
        }
    }

    /// The binding of `prefix` (empty for the default namespace), innermost first; nil where there is none.
    func find(_ prefix: Span<UInt8>) -> Int? {
        var index = bindings.count
        while index > 0 {
            index -= 1
            let candidate = bindings[index].prefix
            if candidate.count == prefix.count, arena.span.extracting(candidate.range).equals(prefix) { return index }
        }
        return nil
    }

    /// What the binding at `index` names.
    @inline(__always)
    func namespace(_ index: Int) -> Namespace { bindings[index].namespace }

    /// How to find the URI of the binding at `index` after its element has ended.
    func name(_ index: Int) -> NamespaceName {
        let binding = bindings[index]
        guard binding.namespace == .other else { return NamespaceName(binding.namespace) }
        return binding.source.isEmpty
            ? NamespaceName(inherited: binding.uri) : NamespaceName(declared: binding.source)
    }

    /// The URI of the binding at `index`.
    @_lifetime(borrow self)
    func uri(_ index: Int) -> Span<UInt8> {
        arena.span.extracting(bindings[index].uri.range)
    }

    /// The bytes of an inherited URI.
    @_lifetime(borrow self)
    func inherited(_ range: ByteRange) -> Span<UInt8> { arena.span.slice(range) }

    /// Calls `body` with each prefix and URI in force, outermost first.
    func forEach(_ body: (_ prefix: Span<UInt8>, _ uri: Span<UInt8>) -> Void) {
        for binding in bindings {
            body(arena.span.extracting(binding.prefix.range), arena.span.extracting(binding.uri.range))
        }
    }
}

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

/// The value an attribute means, as against the bytes it is written with (XML 1.0 §3.3.3).
public enum AttributeValue {
    /// Appends what `raw` means: references replaced, each tab, line feed or carriage return a space.
    ///
    /// `raw` has passed the scanner; what is not a reference is taken as it stands.
    public static func decode(_ raw: Span<UInt8>, into output: inout [UInt8]) {
        decode(raw, normalising: true, into: &output)
    }

    /// Appends what character data means: references replaced, line ends as they are.
    public static func decodeText(_ raw: Span<UInt8>, into output: inout [UInt8]) {
        decode(raw, normalising: false, into: &output)
    }

    private static func decode(_ raw: Span<UInt8>, normalising: Bool, into output: inout [UInt8]) {
        var index = 0
        while index < raw.count {
            let byte = raw[index]
            if byte == 0x26, let end = semicolon(raw, from: index) {
                let body = raw.extracting((index + 1)..<end)
                if let entity = TextScan.Entity(body) {
                    output.append(entity.byte)
                    index = end + 1
                    continue
                }
                if !body.isEmpty, body[0] == 0x23, let value = TextScan.characterReference(body),
                    let scalar = Unicode.Scalar(value)
                {
                    output.append(contentsOf: Array(String(scalar).utf8))
                    index = end + 1
                    continue
                }
            }
            output.append(normalising && byte < 0x20 ? 0x20 : byte)
            index += 1
        }
    }

    private static func semicolon(_ raw: Span<UInt8>, from index: Int) -> Int? {
        var end = index + 1
        while end < raw.count {
            if raw[end] == 0x3B { return end }
            end += 1
        }
        return nil
    }
}
