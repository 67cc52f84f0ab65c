/// The limits for the parts of a stream. Each limit has a name that errors and flags use.
///
/// Values below 0 count as 0, those above 1 GiB as 1 GiB. Defaults follow common servers, such as Prosody's 1 MiB for a
/// stanza; RFC 6120 §13.12 requires at least 10,000 bytes.
public struct StreamLimits: Sendable, Hashable {
    /// Bytes of one element at the top level (a stanza). Default 1 MiB.
    package var itemBytes: Int
    /// Bytes of one tag with its attributes. Default 64 KiB.
    package var tagBytes: Int
    /// Nested elements, including the stream's root. Default 256.
    package var depth: Int
    /// Attributes of one element, including namespace declarations. Default 256.
    package var attributes: Int
    /// Bytes of one element or attribute name. Default 1 KiB.
    package var nameBytes: Int
    /// Namespace declarations in scope at one place, including the stream's own: each prefix is compared with them.
    /// Default 256.
    package var namespaces: Int

    /// Creates limits; see each for its default.
    package init(
        itemBytes: Int = 1 << 20,
        tagBytes: Int = 64 << 10,
        depth: Int = 256,
        attributes: Int = 256,
        nameBytes: Int = 1 << 10,
        namespaces: Int = 256
    ) {
        self.itemBytes = itemBytes
        self.tagBytes = tagBytes
        self.depth = depth
        self.attributes = attributes
        self.nameBytes = nameBytes
        self.namespaces = namespaces
    }

    /// The limits reduced to the range of offsets into an item.
    var clamped: StreamLimits {
        func clamp(_ value: Int) -> Int { max(0, min(value, 1 << 30)) }
        return StreamLimits(
            itemBytes: clamp(itemBytes),
            tagBytes: clamp(tagBytes),
            depth: clamp(depth),
            attributes: clamp(attributes),
            nameBytes: clamp(nameBytes),
            namespaces: clamp(namespaces)
        )
    }

    /// The limits of a session that has authenticated.
    public static let authenticated = StreamLimits()
    /// The limits before authentication: 64 KiB per item, so that an unauthenticated client uses little memory.
    @usableFromInline package static let unauthenticated = StreamLimits(itemBytes: 64 << 10)
    /// No limits, for items that were accepted or recorded earlier.
    package static let unlimited = StreamLimits(
        itemBytes: .max,
        tagBytes: .max,
        depth: .max,
        attributes: .max,
        nameBytes: .max,
        namespaces: .max
    )
}
