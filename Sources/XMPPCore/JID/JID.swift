/// An XMPP address: `local@domain/resource`, of which only the domain is required.
///
/// A value exists only for text that RFC 7622 accepts (``init(parsing:)``). It keeps the text as written for display,
/// and a prepared form for comparison: equality, hashing and order only use the prepared form. Use ``Address`` for text
/// that may be invalid.
///
/// The prepared local part is the result of UsernameCaseMapped (RFC 8265 §3.3: width, lower case, NFC), the resource
/// that of OpaqueString (§4.2: spaces, NFC, case-sensitive). The prepared domain consists of U-labels in lower case
/// without a trailing dot (RFC 5890 §2.3.2.1, RFC 5895). Preparation is idempotent.
///
/// Bare, full and domain JIDs share this type; ``isBare``, ``isFull`` and ``isServer`` distinguish them.
package struct JID: Sendable {
    /// The address as it was written.
    private let written: Form
    /// The address for comparison; shares the text of `written` if both are equal.
    private let prepared: Form

    init(written: Form, prepared: Form) {
        self.written = written
        self.prepared = prepared
    }

    // MARK: Parts

    /// The part before the `@`, as written; nil for a server's address.
    package var local: String? { written.local.map(String.init) }

    /// The domain, as written. An IPv6 literal keeps its brackets.
    package var domain: String { String(written.domain) }

    /// The part after the first `/`, as written; nil for a bare JID.
    package var resource: String? { written.resource.map(String.init) }

    /// Whether the resource is missing: `domain` or `local@domain`.
    package var isBare: Bool { !written.hasResource }

    /// Whether a resource is present: `domain/resource` or `local@domain/resource`.
    package var isFull: Bool { written.hasResource }

    /// Whether the local part is missing: the address of a server, a component or one of their resources.
    package var isServer: Bool { written.localLength == 0 }

    // MARK: Derived addresses

    /// The address without its resource.
    package var bare: JID {
        guard isFull else { return self }
        return JID(written: written.bare, prepared: prepared.bare)
    }

    /// Returns the same account with another resource.
    ///
    /// - Throws: ``JIDError`` if `resource` is empty, longer than 1023 bytes, or contains a control character.
    package func with(resource: String) throws(JIDError) -> JID {
        try JID(local: local, domain: domain, resource: resource)
    }

    /// The prepared address.
    package var normalized: JID { JID(written: prepared, prepared: prepared) }

    /// The prepared bare address as text.
    var comparableBare: String { prepared.hasResource ? prepared.bare.text : prepared.text }

    /// The domain for the DNS, TLS and certificates: prepared, with U-labels as A-labels, `xn--…` (RFC 5890 §2.3.2.1).
    package var asciiDomain: String { DomainName.ascii(prepared.domain) }

    // MARK: Comparison

    /// The parts of an address to compare; the raw values are those of XMPPFramework.
    package struct Parts: OptionSet, Sendable {
        /// One bit per part: local 1, domain 2, resource 4.
        package let rawValue: UInt8

        /// Creates a set from its bits.
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The local part.
        package static let local = Parts(rawValue: 1)
        /// The domain.
        package static let domain = Parts(rawValue: 2)
        /// The resource.
        package static let resource = Parts(rawValue: 4)
        /// Local part and domain: the same account.
        package static let bare: Parts = [.local, .domain]
        /// Everything: the same connected resource.
        package static let full: Parts = [.local, .domain, .resource]
    }

    /// Returns whether both addresses agree in the given parts; a part that both lack counts as agreeing.
    package func matches(_ other: JID, in parts: Parts = .full) -> Bool {
        if parts.contains(.domain), prepared.domain != other.prepared.domain { return false }
        if parts.contains(.local), prepared.local != other.prepared.local { return false }
        if parts.contains(.resource), prepared.resource != other.prepared.resource { return false }
        return true
    }
}

extension JID {
    /// The maximum length of a part in bytes of UTF-8, as written and prepared (RFC 7622 §3.1).
    package static let maximumPartLength = 1023

    /// Parses an address in the order of RFC 7622 §3.2: the resource begins after the first `/`, the local part ends at
    /// the first `@`.
    ///
    /// Each part is prepared: the local part with UsernameCaseMapped, the resource with OpaqueString (RFC 8265), the
    /// domain with IDNA2008 (RFC 5891); see ``JID``.
    ///
    /// - Throws: ``JIDError`` with the violated rule and the part.
    package init(parsing text: String) throws(JIDError) {
        // Makes the UTF-8 of the text contiguous, so that it can be checked as one span of bytes.
        var text = text
        text.makeContiguousUTF8()
        let split = AddressSplit(text.utf8.span)
        let mappings = try checkParts(split, text.utf8.span)
        try self.init(text: text, split, mappings)
    }

    /// Parses an address from UTF-8 bytes, like ``init(parsing:)``.
    ///
    /// - Throws: ``JIDError``; with code ``JIDError/Code/notUTF8`` if the bytes are not UTF-8.
    package init(utf8 bytes: Span<UInt8>) throws(JIDError) {
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

    /// Creates an address from its parts.
    ///
    /// - Throws: ``JIDError`` if a part is empty, too long, or contains a forbidden character, such as `/` in the
    ///   domain.
    package init(local: String? = nil, domain: String, resource: String? = nil) throws(JIDError) {
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

extension JID: Hashable {
    /// Returns whether both are the same address when prepared.
    package static func == (left: JID, right: JID) -> Bool {
        left.prepared.text == right.prepared.text
    }

    /// Hashes the prepared address.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(prepared.text)
    }
}

extension JID: Comparable {
    /// Orders by the prepared address, so that sorted lists are the same in every run.
    package static func < (left: JID, right: JID) -> Bool {
        left.prepared.text < right.prepared.text
    }
}

extension JID: LosslessStringConvertible {
    /// Parses an address; nil if it is invalid. ``init(parsing:)`` returns the reason.
    package init?(_ description: String) {
        guard let jid = try? JID(parsing: description) else { return nil }
        self = jid
    }

    /// The address as written.
    package var description: String { written.text }
}

// MARK: -

extension JID {
    /// A text and the lengths of its parts in UTF-8 bytes. Parts are never empty, so a length of zero means "absent".
    struct Form: Sendable {
        let text: String
        let localLength: Int
        let domainLength: Int

        private var domainStart: Int { localLength == 0 ? 0 : localLength + 1 }
        private var domainEnd: Int { domainStart + domainLength }

        var hasResource: Bool { domainEnd < text.utf8.count }

        var local: Substring? {
            localLength == 0 ? nil : slice(from: 0, to: localLength)
        }

        var domain: Substring { slice(from: domainStart, to: domainEnd) }

        var resource: Substring? {
            hasResource ? slice(from: domainEnd + 1, to: text.utf8.count) : nil
        }

        var bare: Form {
            Form(
                text: String(slice(from: 0, to: domainEnd)),
                localLength: localLength,
                domainLength: domainLength
            )
        }

        private func slice(from start: Int, to end: Int) -> Substring {
            let bytes = text.utf8
            return text[
                bytes.index(bytes.startIndex, offsetBy: start)..<bytes.index(bytes.startIndex, offsetBy: end)
            ]
        }
    }
}
