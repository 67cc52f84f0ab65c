/// The namespace declarations in scope, innermost last.
///
/// Finding a prefix compares it with all declarations in scope: at most ``StreamLimits/namespaces`` comparisons.
///
/// Bytes needed later are copied when a declaration is added, so that its tag may be discarded: every prefix, and each
/// URI that is not in the table of known ones.
struct NamespaceScope: ~Copyable {
    /// Not private: other modules destroy scopes that are part of their types.
    struct Binding: BitwiseCopyable {
        /// Range in the arena.
        var prefix = ByteRange.empty
        /// Range in the arena; empty for a known namespace.
        var uri = ByteRange.empty
        var namespace = Namespace.none
        /// For an unknown namespace: the index of the outermost binding to the same URI.
        var first = NamespaceScope.unbound
        /// The range of the URI in the item; empty if it was declared before the item began.
        var source = ByteRange.empty
    }

    /// The binding of the prefix `xml`, which needs no declaration.
    static let xml: Int32 = -2
    /// The binding for no namespace.
    static let unbound: Int32 = -1

    private var bindings = UniqueArray<Binding>()
    private var arena: [UInt8] = []

    /// Whether a declaration that was added since this was last set to false contains a character that URIs cannot
    /// contain.
    var hasDoubtfulURI = false

    /// Number of declarations in scope: pass it to ``leave(to:)`` when the element that adds more ends.
    var count: Int { bindings.count }

    mutating func removeAll() {
        bindings.removeAll(keepingCapacity: 64)
        arena.removeAll(keepingCapacity: true)
    }

    /// Makes this a copy of `other`, in separate memory.
    mutating func assign(_ other: borrowing NamespaceScope) {
        removeAll()
        for index in 0..<other.bindings.count { bindings.append(other.bindings[index]) }
        arena.append(other.arena.span)
    }

    /// Adds the declarations of a tag; returns the fault of an invalid one. If `isHeader`, the declarations stay in
    /// scope after the item that contains them.
    mutating func enter(
        _ tag: borrowing Tag,
        in bytes: Span<UInt8>,
        isHeader: Bool,
        limit: Int
    ) -> ScanFault.Code? {
        for index in 0..<tag.attributes.count {
            let attribute = tag.attributes[index]
            guard attribute.isDeclaration else { continue }
            guard bindings.count < limit else { return .tooManyNamespaces }
            let prefix = bytes.extracting(attribute.declaredPrefix)
            let prefixStart = arena.count
            if !prefix.isEmpty { arena.append(prefix) }
            let uriStart = arena.count
            let namespace: Namespace
            if attribute.needsDecoding {
                AttributeValue.decode(bytes.extracting(attribute.value.range), into: &arena)
                namespace = Namespace(uri: arena.span.extracting(uriStart..<arena.count))
                if namespace != .other { arena.removeLast(arena.count - uriStart) }
            } else {
                let uri = bytes.extracting(attribute.value.range)
                namespace = Namespace(uri: uri)
                if namespace == .other { arena.append(uri) }
            }
            if let fault = Self.check(prefix: prefix, namespace: namespace) { return fault }
            if namespace == .other, !hasDoubtfulURI {
                hasDoubtfulURI = Self.isDoubtful(arena.span.extracting(uriStart..<arena.count))
            }
            let uri = ByteRange(uriStart, arena.count)
            bindings.append(
                Binding(
                    prefix: ByteRange(prefixStart, uriStart),
                    uri: uri,
                    namespace: namespace,
                    // Needed only to compare attributes: without a limit, the scanner has already checked the tag.
                    first: namespace == .other && limit < .max ? firstBinding(of: uri) : Self.unbound,
                    source: isHeader ? .empty : attribute.value
                )
            )
        }
        return nil
    }

    /// Returns the index of the outermost binding to a URI in the arena; the next index if there is none.
    private func firstBinding(of uri: ByteRange) -> Int32 {
        let bytes = arena.span.extracting(uri.range)
        for index in 0..<bindings.count where bindings[index].namespace == .other {
            let known = bindings[index].uri
            if known.count == uri.count, arena.span.extracting(known.range).equals(bytes) {
                return Int32(truncatingIfNeeded: index)
            }
        }
        return Int32(truncatingIfNeeded: bindings.count)
    }

    /// Returns whether a namespace contains a character that URIs cannot contain: white space, a control character, a
    /// quotation mark, a backquote, or one of `<>\^{|}`.
    private static func isDoubtful(_ uri: Span<UInt8>) -> Bool {
        for index in uri.indices {
            switch uri[index] {
            case 0...0x20, 0x7F, 0x22, 0x3C, 0x3E, 0x5C, 0x5E, 0x60, 0x7B...0x7D: return true
            default: continue
            }
        }
        return false
    }

    /// Checks the rules of Namespaces in XML 1.0 §3 and §5 for declarations.
    private static func check(prefix: Span<UInt8>, namespace: Namespace) -> ScanFault.Code? {
        if prefix.isEmpty { return namespace == .xml || namespace == .xmlns ? .reservedPrefix : nil }
        if prefix.equals("xml") { return namespace == .xml ? nil : .reservedPrefix }
        if prefix.equals("xmlns") || namespace == .xml || namespace == .xmlns { return .reservedPrefix }
        return namespace == .none ? .unboundPrefix : nil
    }

    /// Removes the declarations after the first `count`.
    @inline(__always)
    mutating func leave(to count: Int) {
        guard bindings.count > count else { return }
        let end = Int(bindings[count].prefix.start)
        if arena.count > end { arena.removeLast(arena.count &- end) }
        bindings.truncate(to: count)
    }

    /// The innermost binding of the default namespace; ``unbound`` if it is not declared.
    var defaultBinding: Int32 {
        var index = bindings.count
        while index > 0 {
            index &-= 1
            if bindings[index].prefix.isEmpty { return Int32(truncatingIfNeeded: index) }
        }
        return Self.unbound
    }

    /// Returns the innermost binding of `prefix`, which must not be empty; nil if it is not declared.
    func find(_ prefix: Span<UInt8>) -> Int32? {
        var index = bindings.count
        while index > 0 {
            index &-= 1
            let candidate = bindings[index].prefix
            if candidate.count == prefix.count, arena.span.extracting(candidate.range).equals(prefix) {
                return Int32(truncatingIfNeeded: index)
            }
        }
        return prefix.equals("xml") ? Self.xml : nil
    }

    /// Returns the namespace of a binding.
    @inline(__always)
    func namespace(_ binding: Int32) -> Namespace {
        binding >= 0 ? bindings[Int(binding)].namespace : binding == Self.xml ? .xml : .none
    }

    /// Returns a name with which the URI of a binding can be found after its element has ended.
    @inline(__always)
    func name(_ binding: Int32) -> NamespaceName {
        let namespace = namespace(binding)
        return namespace == .other ? nameOfOther(binding) : NamespaceName(namespace)
    }

    private func nameOfOther(_ binding: Int32) -> NamespaceName {
        let binding = bindings[Int(binding)]
        return binding.source.isEmpty ? NamespaceName(inherited: binding.uri) : NamespaceName(declared: binding.source)
    }

    /// Returns whether two bindings of prefixes have the same URI.
    func isSame(_ one: Int32, _ other: Int32) -> Bool {
        guard one != other else { return true }
        let namespace = namespace(one)
        guard namespace == self.namespace(other) else { return false }
        return namespace != .other || bindings[Int(one)].first == bindings[Int(other)].first
    }

    /// Appends the bytes of a URI that the stream header has declared.
    func appendInherited(_ range: ByteRange, to output: inout [UInt8]) { output.append(arena.span.slice(range)) }

    /// Appends the URI of a binding in scope; nothing for no namespace.
    func appendURI(of binding: Int32, to output: inout [UInt8]) {
        let namespace = namespace(binding)
        if namespace == .other, binding >= 0 { return output.append(arena.span.slice(bindings[Int(binding)].uri)) }
        output.append(namespace.uri)
    }

    /// Calls `body` with each prefix and URI in scope, outermost first.
    func forEach(_ body: (_ prefix: Span<UInt8>, _ uri: Span<UInt8>) -> Void) {
        for index in 0..<bindings.count {
            let binding = bindings[index]
            let prefix = arena.span.extracting(binding.prefix.range)
            if binding.namespace == .other {
                body(prefix, arena.span.extracting(binding.uri.range))
            } else {
                body(prefix, binding.namespace.uriBytes.span)
            }
        }
    }

    /// The declarations in scope as written in a tag: ` xmlns:prefix='uri'` for each.
    var declarations: [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(96)
        for index in 0..<bindings.count {
            let binding = bindings[index]
            output.append(" xmlns")
            if !binding.prefix.isEmpty {
                output.append(0x3A)
                output.append(arena.span.extracting(binding.prefix.range))
            }
            output.append("='")
            if binding.namespace == .other {
                Self.append(escaped: arena.span.extracting(binding.uri.range), to: &output)
            } else {
                // No known URI contains characters that must be escaped.
                output.append(binding.namespace.uri)
            }
            output.append(0x27)
        }
        return output
    }

    private static func append(escaped uri: Span<UInt8>, to output: inout [UInt8]) {
        var start = 0
        for index in uri.indices {
            let escape: StaticString
            switch uri[index] {
            case 0x26: escape = "&amp;"
            case 0x27: escape = "&apos;"
            case 0x3C: escape = "&lt;"
            // Without escapes, these characters would be read as spaces.
            case 0x09: escape = "&#9;"
            case 0x0A: escape = "&#10;"
            case 0x0D: escape = "&#13;"
            default: continue
            }
            output.append(uri.extracting(start..<index))
            output.append(escape)
            start = index + 1
        }
        output.append(uri.extracting(start..<uri.count))
    }
}
