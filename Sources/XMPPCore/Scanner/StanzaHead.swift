/// The parts of an item that are needed for relaying, for the log at level info, and for matching iq requests with
/// their answers. They are found without parsing the item.
///
/// All texts are offsets into the item; nothing is copied. Attribute values are not decoded: if
/// ``Attribute/needsDecoding`` is set, ``AttributeValue/decode(_:into:)`` decodes them.
package struct StanzaHead: Sendable, Hashable {
    /// The value of an attribute, not decoded.
    package struct Attribute: Sendable, Hashable {
        /// Offsets of the value in the item.
        package var range: ByteRange
        /// Whether the value contains a reference or white space other than spaces.
        package var needsDecoding: Bool

        init(range: ByteRange, needsDecoding: Bool) {
            self.range = range
            self.needsDecoding = needsDecoding
        }

        /// A value without references, which needs no decoding.
        package init(decoded range: ByteRange) { self.init(range: range, needsDecoding: false) }

        /// Returns the decoded value.
        ///
        /// - Parameter item: The bytes of the item.
        package func text(in item: Span<UInt8>) -> String {
            let raw = item.slice(range)
            guard needsDecoding else { return raw.string() }
            var meaning: [UInt8] = []
            AttributeValue.decode(raw, into: &meaning)
            return meaning.span.string()
        }
    }

    /// The three stanzas (RFC 6120 §8), in the stream's content namespace, and all other elements.
    package enum Kind: Sendable, Hashable {
        case iq, message, presence
        /// An element at depth 1 other than a stanza: SASL, TLS, stream management, a stream error.
        case nonza
    }

    /// The kind of stanza.
    package var kind = Kind.nonza
    /// Local name.
    package var name = ByteRange.empty
    /// Namespace of the name.
    package var namespace = NamespaceName(.none)
    /// The `id` attribute.
    package var id: Attribute?
    /// The `type` attribute.
    package var type: Attribute?
    /// The `from` attribute.
    package var from: Attribute?
    /// The `to` attribute.
    package var to: Attribute?
    /// The `version` attribute of a stream header.
    package var version: Attribute?
    /// Local name of the first child, if there is a child.
    package var payloadName: ByteRange?
    /// Namespace of the first child.
    package var payloadNamespace = NamespaceName(.none)
    /// Whether the item must be redacted before it is shown: it contains an element or attribute in the redaction
    /// catalogue, or a character reference inside a tag, which could hide one.
    package var mayContainSecret = false
    /// Whether the item has a syntax that some parsers read differently: a CDATA section, a numeric character reference
    /// inside a tag, or ``hasDoubtfulNamespace``.
    package var isUnusual = false
    /// Whether a namespace declared in the item contains a character that URIs cannot contain (RFC 3986 §2): parsers
    /// that join a namespace and a name by such a character can confuse names (CVE-2022-25236).
    package var hasDoubtfulNamespace = false
    /// Whether the element has no content: `<presence/>`.
    package var isEmptyElement = false

    package init() {}
}

extension StanzaHead {
    /// Number of bytes at the beginning of the item that contain everything the head refers to.
    var extent: Int {
        var end = Int(name.end)
        for attribute in [id, type, from, to, version] { end = max(end, Int(attribute?.range.end ?? 0)) }
        end = max(end, Int(payloadName?.end ?? 0))
        for namespace in [self.namespace, payloadNamespace] {
            if case .item(let range) = namespace.source { end = max(end, Int(range.end)) }
        }
        return end
    }
}

/// A namespace in a head: a known namespace, or the location of the URI of an unknown one.
package struct NamespaceName: Sendable, Hashable {
    /// The location of an unknown URI.
    package enum Source: Sendable, Hashable {
        /// In the table of known namespaces.
        case known
        /// In the item, in its `xmlns` attribute, not decoded.
        case item(ByteRange)
        /// Declared by the stream header.
        case inherited(ByteRange)
    }

    /// The namespace; ``Namespace/other`` if it is unknown.
    package var namespace: Namespace
    /// The location of an unknown URI.
    package var source: Source

    /// Creates a name for a namespace of the table.
    package init(_ namespace: Namespace) {
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
