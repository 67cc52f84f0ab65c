/// What happened in one direction of a stream.
public struct StreamEvent: Sendable {
    /// What happened.
    public enum Kind: Sendable {
        /// A whole top-level item.
        case item(StanzaScanner.Item.Kind)
        /// A piece of an item beyond the size limit; the item itself follows, truncated, when it ends.
        case fragment(isFirst: Bool)
        /// The bytes are not acceptable; no event follows.
        case fault(ScanFault)
        /// The input ended inside an item; no event follows.
        case torn
    }

    /// What happened.
    public var kind: Kind
    /// The stream's number within the leg.
    public var epoch: Int
    /// Offset of the first byte from the beginning of the epoch.
    public var offset: UInt64
    /// Offset of the first byte from the beginning of the leg.
    public var position: UInt64
    /// Number of bytes on the wire.
    public var length: UInt64
    /// Of a header or element, whole or not; empty in a fragment that is not the first, and in the torn end of an item
    /// beyond the size limit.
    public var head = StanzaHead()
    /// Offsets within the item at which reads ended.
    public var chunks: [UInt64] = []
    /// The item was beyond the size limit: only its head is known, and of a torn one not even that.
    public var isTruncated = false
}
