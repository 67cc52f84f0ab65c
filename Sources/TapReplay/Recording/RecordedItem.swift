public import TapRecord
public import XMPPCore

/// One item of a recorded stream behind its login: a stanza, another element, or the stream's end.
public struct RecordedItem: Sendable {
    /// What an item is.
    public enum Kind: Sendable, Hashable {
        case iq, message, presence
        /// Another element: stream management, client state, a stream error.
        case nonza
        /// The end of the stream.
        case end
    }

    /// Which way it went.
    public let direction: Direction
    /// What it is.
    public let kind: Kind
    /// As its sender sent it; nil if the proxy made it.
    public let sent: [UInt8]?
    /// As the receiving peer saw it; nil if it did not get there.
    public let seen: [UInt8]?
    /// The namespace declarations of its stream, as ``StanzaParser/parse(_:root:)`` takes them.
    public let root: [UInt8]
    /// Who made it.
    public let origin: Origin
    /// What the proxy did to it, as ``Record/action`` has it; nil if nothing.
    public let action: String?
    /// Nanoseconds since the run began.
    public let at: Int64
    /// Its number within the run.
    public let sequence: UInt64
    /// Offsets within the item at which reads ended.
    public let chunks: [UInt64]
    /// The `id` attribute.
    public let id: String?
    /// The `type` attribute.
    public let type: String?
    /// The `from` attribute.
    public let from: String?
    /// The `to` attribute.
    public let to: String?
    /// The local name of the item itself.
    public let name: String
    /// The local name of the first child.
    public let payload: String?
    /// The namespace of the first child; of an item without children ``Namespace/none``.
    public let payloadNamespace: Namespace
    /// The placeholders of values that the recording does not hold, such as `[redacted:token#3]`, each once.
    public let placeholders: [String]

    /// The item as the peer that is not played knows it: what the server got of the client's items, and what it sent.
    ///
    /// - Parameter withoutEdits: Leave out what the proxy did to the client's items.
    public func atServer(withoutEdits: Bool = false) -> [UInt8]? {
        direction == .send && !withoutEdits ? seen : sent
    }

    /// Reads an item from its record; nil if the record is of no item, or does not hold all of it.
    init?(_ line: RecordLine, root: [UInt8]) {
        let record = line.record
        guard let direction = record.direction, let xml = record.xml, !xml.isEmpty, !record.isTruncated else {
            return nil
        }
        func text(_ range: ByteRange?) -> String? { range.map { line.content.span.slice($0).string() } }
        let name = text(record.name) ?? ""
        switch (record.kind, name) {
        case (.stanza, "iq"): kind = .iq
        case (.stanza, "message"): kind = .message
        case (.stanza, "presence"): kind = .presence
        case (.element, _): kind = .nonza
        case (.streamClose, _): kind = .end
        default: return nil
        }
        self.direction = direction
        self.name = name
        self.root = root
        let bytes = Array(line.content[xml.range])
        origin = record.origin
        action = record.action
        sent = origin == .peer ? bytes : nil
        seen =
            record.edited.map { Array(line.content[$0.range]) } ?? (Self.stopping.contains(action ?? "") ? nil : bytes)
        at = record.monotonic
        sequence = record.sequence
        chunks = record.chunks
        id = text(record.id)
        type = text(record.type)
        from = text(record.from)
        to = text(record.to)
        payload = text(record.payloadName)
        payloadNamespace = record.payloadNamespace
        placeholders = Placeholder.all(in: bytes.span)
    }

    /// The actions after which the peer did not get the item.
    private static let stopping: Set<String> = ["dropped", "refused", Record.answered, "cut", "half-closed", "reset"]
}
