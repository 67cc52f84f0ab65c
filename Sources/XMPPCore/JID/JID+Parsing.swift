extension JID {
    /// The longest part allowed, in bytes of UTF-8, as written and as prepared (RFC 7622 §3.1).
    public static let maximumPartLength = 1023

    /// Parses an address by the order of RFC 7622 §3.2: the resource is cut off at the first `/`, then the local part at
    /// the first `@`.
    ///
    /// Each part is prepared: the local part by UsernameCaseMapped, the resource by OpaqueString (RFC 8265), the domain by
    /// IDNA2008 (RFC 5891), as said at ``JID``.
    ///
    /// - Throws: ``JIDError`` with the broken rule and the part that breaks it.
    public init(parsing text: String) throws(JIDError) {
        // One check for all inputs: a native string hands out its own storage.
        var text = text
        text.makeContiguousUTF8()
        let split = AddressSplit(text.utf8.span)
        let mappings = try checkParts(split, text.utf8.span)
        try self.init(text: text, split, mappings)
    }

    /// Parses an address from bytes of UTF-8, as ``init(parsing:)`` does from text.
    ///
    /// - Throws: ``JIDError``; with code ``JIDError/Code/notUTF8`` when the bytes are not UTF-8.
    public init(utf8 bytes: Span<UInt8>) throws(JIDError) {
        let split = AddressSplit(bytes)
        let mappings = try checkParts(split, bytes)
        let checked: UTF8Span
        do {
            checked = try UTF8Span(validating: bytes)
        } catch {
            let offset = error.byteOffsets.lowerBound
            throw JIDError(.notUTF8, in: split.part(at: offset), "byte \(offset) of the address is not UTF-8")
        }
        try self.init(text: String(copying: checked), split, mappings)
    }

    /// Puts an address together from its parts.
    ///
    /// - Throws: ``JIDError`` when a part is empty, too long, or holds what it may not (a `/` in the domain, say).
    public init(local: String? = nil, domain: String, resource: String? = nil) throws(JIDError) {
        var text = ""
        if let local { text += "\(local)@" }
        text += domain
        if let resource { text += "/\(resource)" }
        let split = AddressSplit(
            localLength: local?.utf8.count,
            domainLength: domain.utf8.count,
            resourceLength: resource?.utf8.count
        )
        let mappings = try checkParts(split, text.utf8.span)
        try self.init(text: text, split, mappings)
    }

    private init(text: String, _ split: AddressSplit, _ mappings: Mappings) throws(JIDError) {
        let written = Form(text: text, localLength: split.localLength ?? 0, domainLength: split.domainLength)
        self.init(written: written, prepared: mappings.isEmpty ? written : try prepare(written, mappings))
    }
}

/// Where the parts of an address lie, in bytes, be they right or wrong.
struct AddressSplit {
    private(set) var localLength: Int?
    private(set) var domainLength: Int
    private(set) var resourceLength: Int?

    init(localLength: Int?, domainLength: Int, resourceLength: Int?) {
        self.localLength = localLength
        self.domainLength = domainLength
        self.resourceLength = resourceLength
    }

    init(_ bytes: Span<UInt8>) {
        self.domainLength = bytes.count
        for position in bytes.indices {
            let byte = bytes[position]
            // Everything after the first slash is the resource, `@` included; an `@` counts only before it.
            if byte == UInt8(ascii: "/") {
                self.resourceLength = bytes.count - position - 1
                self.domainLength = position
                break
            }
            if byte == UInt8(ascii: "@"), localLength == nil { self.localLength = position }
        }
        self.domainLength -= domainStart
    }

    var domainStart: Int { localLength.map { $0 + 1 } ?? 0 }
    var domainEnd: Int { domainStart + domainLength }
    /// Where the resource begins; behind the end where there is none.
    var resourceStart: Int { domainEnd + 1 }

    func part(at offset: Int) -> JIDError.Part {
        if let localLength, offset <= localLength { return .local }
        return resourceLength != nil && offset >= resourceStart ? .resource : .domain
    }
}
