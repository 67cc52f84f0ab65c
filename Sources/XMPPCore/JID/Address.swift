/// An address as received from the wire, valid or not.
///
/// xmpptap must display invalid addresses too, report their faults, and still determine sender and recipient, because
/// servers differ in the addresses they accept. Parsing therefore never throws: the raw text is kept together with
/// either the JID or the fault. Invalid addresses are split into parts like valid ones (RFC 7622 §3.2).
package struct Address: Hashable, Sendable, CustomStringConvertible {
    /// The text as received; bytes that are not UTF-8 are replaced by U+FFFD. Escape it before display.
    package let raw: String
    /// The parsed address; nil if ``fault`` is set.
    package let jid: JID?
    /// The reason why the text is not a valid address; nil if it is valid.
    package let fault: JIDError?

    /// Creates an address from text.
    package init(_ text: String) {
        raw = text
        do throws(JIDError) {
            self.jid = try JID(parsing: text)
            fault = nil
        } catch {
            self.jid = nil
            fault = error
        }
    }

    /// Creates an address from bytes.
    package init(utf8 bytes: Span<UInt8>) {
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

    /// Creates an address from a JID.
    package init(_ jid: JID) {
        raw = jid.description
        self.jid = jid
        fault = nil
    }

    /// The text as received.
    package var description: String { raw }

    // MARK: Parts

    /// The part before the `@`, as written; nil if there is none.
    package var local: String? {
        if let jid { return jid.local }
        return split.localLength.map { String(decoding: raw.utf8.prefix($0), as: UTF8.self) }
    }

    /// The domain, as written; empty if it is missing.
    package var domain: String {
        if let jid { return jid.domain }
        let split = split
        return String(decoding: raw.utf8.dropFirst(split.domainStart).prefix(split.domainLength), as: UTF8.self)
    }

    /// The part after the first `/`, as written; nil if there is none.
    package var resource: String? {
        if let jid { return jid.resource }
        return split.resourceLength.map { String(decoding: raw.utf8.suffix($0), as: UTF8.self) }
    }

    /// The address without its resource.
    package var bare: Address {
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

    /// Returns whether both addresses agree in the given parts; a part that both lack counts as agreeing.
    ///
    /// Parts are compared like those of JIDs; a part that cannot be prepared is compared as written.
    package func matches(_ other: Address, in parts: JID.Parts = .full) -> Bool {
        if let jid, let other = other.jid { return jid.matches(other, in: parts) }
        if parts.contains(.domain), comparedDomain != other.comparedDomain { return false }
        if parts.contains(.local), comparedLocal != other.comparedLocal { return false }
        if parts.contains(.resource), comparedResource != other.comparedResource { return false }
        return true
    }

    /// Returns hashes of the bare address and of the domain, consistent with ``matches(_:in:)``. They are randomly
    /// seeded per process.
    package func bareHashes() -> (bare: Int, domain: Int) {
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

    /// The prepared bare address, as a key for lookups; the raw text if it is invalid.
    package var comparableBare: String {
        if let jid { return jid.comparableBare }
        let bare = bare
        return bare.jid?.comparableBare ?? bare.raw
    }

    /// Returns whether both are equal as JIDs, or equal as text if both are invalid.
    package static func == (left: Address, right: Address) -> Bool {
        switch (left.jid, right.jid) {
        case (.some(let left), .some(let right)): left == right
        case (nil, nil): left.raw == right.raw
        default: false
        }
    }

    /// Hashes the JID, or the text if it is invalid.
    package func hash(into hasher: inout Hasher) {
        if let jid { hasher.combine(jid) } else { hasher.combine(raw) }
    }
}
