/// An address as it stood on the wire, right or wrong.
///
/// A tap must show what a peer sent also where it is no JID, say what is wrong with it, and go on following who talks to
/// whom: servers differ in what they let pass. So nothing here throws: the raw text is kept, and beside it either the JID
/// or the fault. What is no JID still has the parts into which RFC 7622 §3.2 splits it.
public struct Address: Hashable, Sendable, CustomStringConvertible {
    /// The text as it was sent; bytes that are not UTF-8 are replaced by U+FFFD. Escape it before showing it.
    public let raw: String
    /// The parsed address, or `nil` when ``fault`` says why there is none.
    public let jid: JID?
    /// What is wrong with the text, or `nil` when it is an address.
    public let fault: JIDError?

    /// Takes a text as it is.
    public init(_ text: String) {
        raw = text
        do throws(JIDError) {
            self.jid = try JID(parsing: text)
            fault = nil
        } catch {
            self.jid = nil
            fault = error
        }
    }

    /// Takes bytes as they are.
    public init(utf8 bytes: Span<UInt8>) {
        do throws(JIDError) {
            let jid = try JID(utf8: bytes)
            raw = jid.description
            self.jid = jid
            fault = nil
        } catch {
            raw = bytes.string()
            self.jid = nil
            fault = error
        }
    }

    /// Takes an address that is one.
    public init(_ jid: JID) {
        raw = jid.description
        self.jid = jid
        fault = nil
    }

    /// The text as it was sent.
    public var description: String { raw }

    // MARK: Parts

    /// The part before the `@`, as written; `nil` where there is none.
    public var local: String? {
        if let jid { return jid.local }
        return split.localLength.map { String(decoding: raw.utf8.prefix($0), as: UTF8.self) }
    }

    /// The domain, as written; empty where it is missing.
    public var domain: String {
        if let jid { return jid.domain }
        let split = split
        return String(decoding: raw.utf8.dropFirst(split.domainStart).prefix(split.domainLength), as: UTF8.self)
    }

    /// The part after the first `/`, as written; `nil` where there is none.
    public var resource: String? {
        if let jid { return jid.resource }
        return split.resourceLength.map { String(decoding: raw.utf8.suffix($0), as: UTF8.self) }
    }

    /// The address without its resource.
    public var bare: Address {
        if let jid { return Address(jid.bare) }
        let split = split
        guard split.resourceLength != nil else { return self }
        return Address(String(decoding: raw.utf8.prefix(split.domainEnd), as: UTF8.self))
    }

    private var split: AddressSplit {
        var text = raw
        text.makeContiguousUTF8()
        return AddressSplit(text.utf8.span)
    }

    // MARK: Comparison

    /// Whether both addresses agree in the given parts; a part that both lack counts as agreeing.
    ///
    /// Parts are compared as JIDs compare them; a part that cannot be prepared is compared as it is written.
    public func matches(_ other: Address, in parts: JID.Parts = .full) -> Bool {
        if let jid, let other = other.jid { return jid.matches(other, in: parts) }
        if parts.contains(.domain), comparedDomain != other.comparedDomain { return false }
        if parts.contains(.local), comparedLocal != other.comparedLocal { return false }
        if parts.contains(.resource), comparedResource != other.comparedResource { return false }
        return true
    }

    /// Hashes of the bare address and of the domain, as ``matches(_:in:)`` compares them: addresses that match in those parts
    /// have the same hash. They are seeded at random for each process.
    public func bareHashes() -> (bare: Int, domain: Int) {
        let prepared = jid?.normalized
        var hasher = Hasher()
        hasher.combine(prepared?.domain ?? comparedDomain)
        let ofDomain = hasher
        hasher.combine(prepared.map { $0.local } ?? comparedLocal)
        return (hasher.finalize(), ofDomain.finalize())
    }

    private var comparedLocal: String? {
        local.map { text in (try? JID(local: text, domain: "domain"))?.normalized.local ?? text }
    }

    private var comparedDomain: String { (try? JID(domain: domain))?.normalized.domain ?? domain }

    private var comparedResource: String? {
        resource.map { text in (try? JID(domain: "domain", resource: text))?.normalized.resource ?? text }
    }

    /// The bare address as it is compared, to look things up by; where it is none the text itself.
    public var comparableBare: String {
        if let jid { return jid.comparableBare }
        let bare = bare
        return bare.jid?.comparableBare ?? bare.raw
    }

    /// Two parsed addresses are equal as JIDs are; otherwise only the same text is equal.
    public static func == (left: Address, right: Address) -> Bool {
        switch (left.jid, right.jid) {
        case (.some(let left), .some(let right)): left == right
        case (nil, nil): left.raw == right.raw
        default: false
        }
    }

    /// Hashes what equality compares.
    public func hash(into hasher: inout Hasher) {
        if let jid { hasher.combine(jid) } else { hasher.combine(raw) }
    }
}
