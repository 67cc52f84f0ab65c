internal import Synchronization

/// One parsed tag: offsets of its parts in the bytes. Reused for all tags.
struct Tag: ~Copyable {
    /// An attribute or namespace declaration as written in the tag.
    struct Attribute: BitwiseCopyable {
        var name = ByteRange.empty
        /// Offset of the colon in the name, or -1.
        var colon: Int32 = -1
        /// The value between the quotes, not decoded.
        var value = ByteRange.empty
        /// Whether the value must be decoded, because it contains a reference, or white space other than spaces.
        var needsDecoding = false
        /// Whether the attribute is `xmlns` or `xmlns:…`.
        var isDeclaration = false
        /// The binding of the attribute's prefix, set by ``Tag/resolve(_:in:defaultBinding:)``.
        var binding = NamespaceScope.unbound

        /// The prefix of the name; empty if it has none.
        var prefix: Range<Int> { Int(name.start)..<max(Int(name.start), Int(colon)) }
        var localName: Range<Int> { (colon < 0 ? Int(name.start) : Int(colon) &+ 1)..<Int(name.end) }
        /// For a namespace declaration: the prefix it declares; empty for the default namespace.
        var declaredPrefix: Range<Int> { colon < 0 ? Int(name.end)..<Int(name.end) : localName }
    }

    enum Kind { case start, empty, end }

    var kind = Kind.start
    var name = ByteRange.empty
    var colon: Int32 = -1
    /// Offset after the `>`.
    var end = 0
    var attributes = UniqueArray<Attribute>()
    var hasDeclarations = false
    /// Whether an attribute value contains a reference.
    var hasReference = false
    /// Whether an attribute value contains a numeric reference, not only the five predefined entities.
    var hasNumericReference = false
    /// Whether an attribute other than a declaration has a prefix.
    private var hasPrefixedAttributes = false
    /// The ``nameBit(count:first:last:)`` of each attribute and declaration.
    private var seenNames: UInt64 = 0
    /// Whether two attributes have the same bit, and so may have the same name.
    private var mayRepeatName = false
    /// A field that is never read. An `Atomic` has an address, so the compiler reads a tag in place, and also the
    /// scanner or decoder that contains it; otherwise it would copy the tag whenever it is borrowed from another value.
    private let place = Atomic<UInt8>(0)

    /// Returns one bit for a name, by its length, first and last byte: names with different bits are different. Names
    /// that differ only in case share a bit, because the factors are multiples of two. With these factors, few names of
    /// attributes that occur together in XMPP share a bit, and few other names share a bit with the names of secrets.
    @inline(__always)
    static func nameBit(count: Int, first: UInt8, last: UInt8) -> UInt64 {
        1 &<< (UInt64(truncatingIfNeeded: count) &+ UInt64(first) &* 58 &+ UInt64(last) &* 18)
    }

    var localName: ByteRange { colon < 0 ? name : ByteRange(Int(colon) &+ 1, Int(name.end)) }

    /// Returns the prefix of the name; empty if it has none.
    @_lifetime(copy bytes)
    func prefix(in bytes: Span<UInt8>) -> Span<UInt8> {
        bytes.extracting(Int(name.start)..<max(Int(name.start), Int(colon)))
    }

    enum Outcome {
        case complete
        case incomplete
        case fault(ScanFault.Code, at: Int, limit: Int)
    }

    /// Parses the tag whose `<` is at `start`. The bytes may end before the tag.
    mutating func read(_ bytes: Span<UInt8>, at start: Int, limits: StreamLimits) -> Outcome {
        attributes.removeAll(keepingCapacity: 64)
        hasDeclarations = false
        hasReference = false
        hasNumericReference = false
        hasPrefixedAttributes = false
        seenNames = 0
        mayRepeatName = false
        var index = start &+ 1
        guard index < bytes.count else { return .incomplete }
        let isEnd = bytes[index] == 0x2F
        if isEnd { index &+= 1 }

        switch Self.readName(bytes, from: index, limit: limits.nameBytes) {
        case .name(let range, let colon):
            name = range
            self.colon = colon
            index = Int(range.end)
        case .incomplete: return .incomplete
        case .fault(let code, let at, let limit): return .fault(code, at: at, limit: limit)
        }

        while true {
            if !isEnd, readPlainAttribute(bytes, at: &index, limits: limits) { continue }
            let afterWhitespace = Self.skipWhitespace(bytes, from: index)
            guard afterWhitespace < bytes.count else { return .incomplete }
            let hadWhitespace = afterWhitespace > index
            index = afterWhitespace
            switch bytes[index] {
            case 0x3E:
                kind = isEnd ? .end : .start
                end = index &+ 1
                return .complete
            case 0x2F where !isEnd:
                guard index &+ 1 < bytes.count else { return .incomplete }
                guard bytes[index &+ 1] == 0x3E else { return .fault(.malformedTag, at: index, limit: 0) }
                kind = .empty
                end = index &+ 2
                return .complete
            default:
                guard !isEnd, hadWhitespace else { return .fault(.malformedTag, at: index, limit: 0) }
            }
            guard attributes.count < limits.attributes else {
                return .fault(.tooManyAttributes, at: index, limit: limits.attributes)
            }
            switch readAttribute(bytes, at: &index, limits: limits) {
            case .complete: break
            case let other: return other
            }
        }
    }

    /// Reads an attribute in the usual form: one space, a short name of lower-case letters, and only plain ASCII
    /// between the quotes. Returns false, without changes, for any other form and for the end of the tag.
    @inline(__always)
    private mutating func readPlainAttribute(_ bytes: Span<UInt8>, at index: inout Int, limits: StreamLimits) -> Bool {
        let nameStart = index &+ 1
        // Space for the longest name of this form (16 bytes), `=` and the quote.
        guard nameStart &+ 18 <= bytes.count, unsafe bytes[unchecked: index] == 0x20,
            attributes.count < limits.attributes
        else { return false }
        let nameCount = TextScan.countSmallLetters(bytes, from: nameStart)
        let nameEnd = nameStart &+ nameCount
        guard nameCount > 0, nameCount <= limits.nameBytes, unsafe bytes[unchecked: nameEnd] == 0x3D else {
            return false
        }
        let quote = unsafe bytes[unchecked: nameEnd &+ 1]
        guard quote == 0x27 || quote == 0x22 else { return false }
        let valueStart = nameEnd &+ 2
        let valueEnd = bytes.skipPlain(from: valueStart, quote: quote)
        guard valueEnd < bytes.count, bytes[valueEnd] == quote else { return false }
        index = valueEnd &+ 1
        let isDeclaration = nameCount == 5 && bytes.extracting(nameStart..<nameEnd).equals("xmlns")
        if isDeclaration { hasDeclarations = true }
        append(
            Attribute(
                name: ByteRange(nameStart, nameEnd),
                value: ByteRange(valueStart, valueEnd),
                isDeclaration: isDeclaration
            ),
            first: unsafe bytes[unchecked: nameStart],
            last: unsafe bytes[unchecked: nameEnd &- 1]
        )
        return true
    }

    @inline(__always)
    private mutating func append(_ attribute: Attribute, first: UInt8, last: UInt8) {
        let bit = Self.nameBit(count: attribute.name.count, first: first, last: last)
        if seenNames & bit != 0 { mayRepeatName = true }
        seenNames |= bit
        attributes.append(attribute)
    }

    private mutating func readAttribute(_ bytes: Span<UInt8>, at index: inout Int, limits: StreamLimits) -> Outcome {
        var attribute = Attribute()
        switch Self.readName(bytes, from: index, limit: limits.nameBytes) {
        case .name(let range, let colon): (attribute.name, attribute.colon) = (range, colon)
        case .incomplete: return .incomplete
        case .fault(let code, let at, let limit): return .fault(code, at: at, limit: limit)
        }
        index = Self.skipWhitespace(bytes, from: Int(attribute.name.end))
        guard index < bytes.count else { return .incomplete }
        guard bytes[index] == 0x3D else { return .fault(.malformedTag, at: index, limit: 0) }
        index = Self.skipWhitespace(bytes, from: index &+ 1)
        guard index < bytes.count else { return .incomplete }
        let quote = bytes[index]
        guard quote == 0x22 || quote == 0x27 else { return .fault(.malformedTag, at: index, limit: 0) }
        let valueStart = index &+ 1
        // Most values are plain: one pass finds the closing quote and nothing else.
        let plain = bytes.skipPlain(from: valueStart, quote: quote)
        if plain < bytes.count, bytes[plain] == quote {
            index = plain &+ 1
        } else {
            switch TextScan.scanValue(bytes, from: plain, quote: quote) {
            case .end: return .incomplete
            case .fault(let code, let at): return .fault(code, at: at, limit: 0)
            case .special(let stop):
                guard bytes[stop] == quote else { return .fault(.malformedTag, at: stop, limit: 0) }
                index = stop &+ 1
            }
            attribute.needsDecoding = recordDecoding(bytes, from: plain, to: index &- 1)
        }
        attribute.value = ByteRange(valueStart, index &- 1)
        let nameBytes = bytes.extracting(attribute.name.range)
        if nameBytes.count >= 5, nameBytes.extracting(0..<5).equals("xmlns"),
            nameBytes.count == 5 || nameBytes[5] == 0x3A
        {
            attribute.isDeclaration = true
            hasDeclarations = true
        } else if attribute.colon >= 0 {
            hasPrefixedAttributes = true
        }
        append(attribute, first: nameBytes[0], last: nameBytes[nameBytes.count &- 1])
        return .complete
    }

    /// Returns whether a value must be decoded, and records whether it contains references.
    private mutating func recordDecoding(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> Bool {
        var needsDecoding = false
        for index in start..<end {
            let byte = bytes[index]
            if byte == 0x26 {
                needsDecoding = true
                hasReference = true
                if index &+ 1 < end, bytes[index &+ 1] == 0x23 { hasNumericReference = true }
            } else if byte < 0x20 {
                needsDecoding = true
            }
        }
        return needsDecoding
    }

    @inline(__always)
    private static func skipWhitespace(_ bytes: Span<UInt8>, from index: Int) -> Int {
        var index = index
        while index < bytes.count, XMLCharacters.isWhitespace(unsafe bytes[unchecked: index]) { index &+= 1 }
        return index
    }

    // MARK: Names

    private enum NameOutcome {
        case name(ByteRange, colon: Int32)
        case incomplete
        case fault(ScanFault.Code, at: Int, limit: Int)
    }

    /// Reads a qualified name: at most one colon, neither first nor last; both parts begin like a name.
    ///
    /// Nearly every name is ASCII without a colon, with an end that is found at once; other names take the slow path.
    @inline(__always)
    private static func readName(_ bytes: Span<UInt8>, from start: Int, limit: Int) -> NameOutcome {
        var index = start
        if start &+ 16 < bytes.count {
            let count = TextScan.countSmallLetters(bytes, from: start)
            index &+= count
            if count > 0, count <= limit {
                // Bytes that can follow the names of elements and attributes.
                switch unsafe bytes[unchecked: index] {
                case 0x3E, 0x20, 0x2F, 0x3D: return .name(ByteRange(start, index), colon: -1)
                default: break
                }
            }
        }
        while index < bytes.count, XMLCharacters.isUnprefixedName(unsafe bytes[unchecked: index]) { index &+= 1 }
        guard index < bytes.count, bytes[index] < 0x80, bytes[index] != 0x3A, index > start,
            XMLCharacters.isNameStart(bytes[start]), index &- start <= limit
        else { return readAnyName(bytes, from: start, limit: limit) }
        return .name(ByteRange(start, index), colon: -1)
    }

    private static func readAnyName(_ bytes: Span<UInt8>, from start: Int, limit: Int) -> NameOutcome {
        var index = start
        var colon: Int32 = -1
        var atPartStart = true
        while index < bytes.count {
            guard index &- start <= limit else { return .fault(.nameTooLong, at: start, limit: limit) }
            let byte = bytes[index]
            if byte == 0x3A {
                guard colon < 0, !atPartStart else { return .fault(.malformedName, at: index, limit: 0) }
                colon = Int32(truncatingIfNeeded: index)
                atPartStart = true
                index &+= 1
            } else if byte < 0x80 {
                guard atPartStart ? XMLCharacters.isNameStart(byte) : XMLCharacters.isName(byte) else { break }
                atPartStart = false
                index &+= 1
            } else {
                switch XMLCharacters.decode(bytes, at: index) {
                case .incomplete: return .incomplete
                case .invalid: return .fault(.invalidUTF8, at: index, limit: 0)
                case .scalar(let scalar, let length):
                    let fits =
                        atPartStart ? XMLCharacters.isNameStart(scalar: scalar) : XMLCharacters.isName(scalar: scalar)
                    guard fits else { return .fault(.malformedName, at: index, limit: 0) }
                    atPartStart = false
                    index &+= length
                }
            }
        }
        guard index < bytes.count else { return .incomplete }
        guard !atPartStart else { return .fault(.malformedName, at: index, limit: 0) }
        return .name(ByteRange(start, index), colon: colon)
    }
}

/// Resolution of the names in a tag.
extension Tag {
    enum Resolution {
        case binding(Int32)
        case fault(ScanFault.Code, at: Int)
    }

    /// Resolves the element's prefix, and checks that each attribute's prefix is bound and that no attribute is
    /// repeated.
    ///
    /// Each prefix is resolved once. In the worst case, the check for duplicates compares each pair of attributes: with
    /// ``StreamLimits/attributes`` at its default of 256 that is 32,640 pairs per tag.
    @inline(__always)
    mutating func resolve(_ bytes: Span<UInt8>, in scope: borrowing NamespaceScope, defaultBinding: Int32) -> Resolution
    {
        // Most tags have no prefix, and no two names that may be equal.
        if colon < 0, !hasPrefixedAttributes, !mayRepeatName { return .binding(defaultBinding) }
        return resolveNames(bytes, in: scope, defaultBinding: defaultBinding)
    }

    private mutating func resolveNames(
        _ bytes: Span<UInt8>,
        in scope: borrowing NamespaceScope,
        defaultBinding: Int32
    ) -> Resolution {
        var binding = defaultBinding
        if colon >= 0 {
            let prefix = prefix(in: bytes)
            guard !prefix.equals("xmlns") else { return .fault(.reservedPrefix, at: Int(name.start)) }
            guard let found = scope.find(prefix) else { return .fault(.unboundPrefix, at: Int(name.start)) }
            binding = found
        }
        guard hasPrefixedAttributes || mayRepeatName else { return .binding(binding) }
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
            guard mayRepeatName || ownBinding != NamespaceScope.unbound else { continue }
            for earlier in 0..<index
            where Self.isSame(attributes[earlier], attribute, ownBinding, bytes, scope) {
                return .fault(.duplicateAttribute, at: Int(attribute.name.start))
            }
        }
        return .binding(binding)
    }

    /// Returns whether two attributes have the same name, literally or by namespace (Namespaces in XML 1.0 §6.3).
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

    /// Returns whether the element, in this namespace, or one of its attributes may contain a secret.
    func mayContainSecret(_ bytes: Span<UInt8>, _ namespace: Namespace, _ secrets: SecretNames.Sieve) -> Bool {
        if hasReference { return true }
        let name = bytes.extracting(localName.range)
        if secrets.contains(element: name, namespace) { return true }
        if secrets.mayBeCredential(element: name, namespace) { return true }
        let isUnknown = namespace.isUnknown
        let mayBeNamed = isUnknown || hasPrefixedAttributes || seenNames & secrets.attributeBits != 0
        for index in 0..<attributes.count {
            let attribute = attributes[index]
            if attribute.isDeclaration { continue }
            if mayBeNamed, attribute.isNamedAsSecret(bytes, secrets, isUnknown: isUnknown) { return true }
            if attribute.mayHoldKey(bytes) { return true }
        }
        return false
    }
}

extension Tag.Attribute {
    /// Returns whether the attribute has a name that may be a secret's, or a value that may contain a key in a URL.
    @inline(__always)
    func mayBeSecret(_ bytes: Span<UInt8>, _ secrets: SecretNames.Sieve, isUnknown: Bool) -> Bool {
        guard !isDeclaration else { return false }
        return isNamedAsSecret(bytes, secrets, isUnknown: isUnknown) || mayHoldKey(bytes)
    }

    /// Returns whether the attribute may be a secret by its name.
    ///
    /// - Parameter isUnknown: Whether the attribute's element is in an unknown namespace. The prefix of an attribute
    ///   may also be bound to an unknown namespace.
    @inline(__always)
    func isNamedAsSecret(_ bytes: Span<UInt8>, _ secrets: SecretNames.Sieve, isUnknown: Bool) -> Bool {
        let name = bytes.extracting(localName)
        return secrets.contains(attribute: name) || (isUnknown || colon >= 0) && secrets.mayBeCredential(name)
    }

    /// Returns whether the value may contain a key in a URL.
    @inline(__always)
    func mayHoldKey(_ bytes: Span<UInt8>) -> Bool { value.count >= 8 && TextScan.attributeMayHoldKey(bytes, value) }
}
