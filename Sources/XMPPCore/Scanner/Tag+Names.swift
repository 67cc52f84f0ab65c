/// What the names in a tag mean where the tag stands.
extension Tag {
    enum Resolution {
        /// The binding of the element's own name.
        case binding(Int32)
        case fault(ScanFault.Code, at: Int)
    }

    /// Resolves the element's prefix, and checks that each attribute's prefix is bound and none stands there twice.
    ///
    /// Each prefix is resolved once. The check for duplicates compares each pair of attributes at worst: with
    /// ``StreamLimits/attributes`` at its default of 256 that is 32,640 pairs a tag.
    mutating func resolve(_ bytes: Span<UInt8>, in scope: borrowing NamespaceScope, defaultBinding: Int32) -> Resolution
    {
        var binding = defaultBinding
        if colon >= 0 {
            let prefix = prefix(in: bytes)
            guard !prefix.equals("xmlns") else { return .fault(.reservedPrefix, at: Int(name.start)) }
            guard let found = scope.find(prefix) else { return .fault(.unboundPrefix, at: Int(name.start)) }
            binding = found
        }
        // One bit a name, by its length and last letter: names with different bits are different.
        var seen: UInt64 = 0
        for index in 0..<attributes.count {
            let attribute = attributes[index]
            var ownBinding = NamespaceScope.unbound
            if attribute.colon >= 0, !attribute.isDeclaration {
                guard let found = scope.find(bytes.extracting(attribute.prefix)) else {
                    return .fault(.unboundPrefix, at: Int(attribute.name.start))
                }
                ownBinding = found
                attributes[index].binding = found
            }
            let last = Int(attribute.name.end) &- 1
            let bit: UInt64 = 1 &<< (UInt64(bytes[last]) &+ UInt64(attribute.name.count) &* 11)
            let mayBeSeen = seen & bit != 0 || ownBinding != NamespaceScope.unbound
            seen |= bit
            guard mayBeSeen else { continue }
            for earlier in 0..<index
            where Self.isSame(attributes[earlier], attribute, ownBinding, bytes, scope) {
                return .fault(.duplicateAttribute, at: Int(attribute.name.start))
            }
        }
        return .binding(binding)
    }

    /// Whether two attributes have the same name, by the letter or by namespace (Namespaces in XML 1.0 §6.3).
    @inline(__always)
    private static func isSame(
        _ earlier: Attribute,
        _ later: Attribute,
        _ laterBinding: Int32,
        _ bytes: Span<UInt8>,
        _ scope: borrowing NamespaceScope
    ) -> Bool {
        if earlier.name.count == later.name.count,
            bytes.extracting(earlier.name.range).equals(bytes.extracting(later.name.range))
        {
            return true
        }
        guard laterBinding != NamespaceScope.unbound, earlier.colon >= 0, !earlier.isDeclaration else { return false }
        return isSameByNamespace(earlier, later, laterBinding, bytes, scope)
    }

    private static func isSameByNamespace(
        _ earlier: Attribute,
        _ later: Attribute,
        _ laterBinding: Int32,
        _ bytes: Span<UInt8>,
        _ scope: borrowing NamespaceScope
    ) -> Bool {
        scope.isSame(earlier.binding, laterBinding)
            && bytes.extracting(earlier.localName).equals(bytes.extracting(later.localName))
    }

    /// Whether the element, of this namespace, or an attribute of it may hold a secret.
    func mayHoldSecret(_ bytes: Span<UInt8>, _ namespace: Namespace, _ secrets: SecretNames.Sieve) -> Bool {
        if hasReference { return true }
        if secrets.contains(element: bytes.extracting(localName.range), namespace) { return true }
        for index in 0..<attributes.count where attributes[index].mayBeSecret(bytes, secrets) { return true }
        return false
    }
}

extension Tag.Attribute {
    /// Whether the attribute may be a secret by its name, or hold a key in a URL.
    func mayBeSecret(_ bytes: Span<UInt8>, _ secrets: SecretNames.Sieve) -> Bool {
        guard !isDeclaration else { return false }
        return secrets.contains(attribute: bytes.extracting(localName)) || TextScan.attributeMayHoldKey(bytes, value)
    }
}
