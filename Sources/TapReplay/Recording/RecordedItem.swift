public import TapRecord
public import XMPPCore

/// An item of a recorded stream after its login: a stanza, another element, or the end of the stream.
public struct RecordedItem: Sendable {
    /// The kind of an item.
    public enum Kind: Sendable, Hashable {
        case iq, message, presence
        /// Another element: stream management, client state, a stream error.
        case nonza
        /// The end of the stream.
        case end
    }

    /// The direction of the item.
    public internal(set) var direction: Direction
    /// The kind of the item.
    public internal(set) var kind: Kind
    /// The item as its sender sent it; nil if the proxy created it.
    public internal(set) var sent: [UInt8]?
    /// The item as the receiving peer got it; nil if it was not delivered.
    public internal(set) var seen: [UInt8]?
    /// The namespace declarations of its stream, as ``StanzaParser/parse(_:root:)`` takes them.
    public internal(set) var root: [UInt8]
    /// The origin of the item.
    public internal(set) var origin: Origin
    /// Nanoseconds since the run began.
    public internal(set) var at: Int64
    /// The number of its record within the run.
    public internal(set) var sequence: UInt64
    /// Offsets within the item at which reads ended.
    public internal(set) var chunks: [UInt64]
    /// The `id` attribute.
    public internal(set) var id: String?
    /// The `type` attribute.
    public internal(set) var type: String?
    /// The `from` attribute.
    public internal(set) var from: String?
    /// The `to` attribute.
    public internal(set) var to: String?
    /// The local name of the item itself.
    public internal(set) var name: String
    /// The local name of the first child.
    public internal(set) var payload: String?
    /// The namespace of the first child; ``Namespace/none`` if there is none.
    public internal(set) var payloadNamespace: Namespace
    /// The placeholders of redacted values, such as `[redacted:token#3]`, without duplicates.
    public internal(set) var placeholders: [String]

    /// Whether it answers a request.
    var isAnswer: Bool { kind == .iq && (type == "result" || type == "error") }

    /// Returns the item as the server knows it: client items as delivered, server items as sent.
    ///
    /// - Parameter withoutEdits: Return client items without the edits of the proxy.
    public func atServer(withoutEdits: Bool = false) -> [UInt8]? {
        direction == .send && !withoutEdits ? seen : sent
    }

    /// Reads an item from its record; nil if the record is not an item, or is incomplete.
    ///
    /// - Parameter names: Shares the memory of texts that many items have.
    init?(_ line: RecordLine, root: [UInt8], _ names: inout SharedTexts) {
        let record = line.record
        guard let direction = record.direction, let xml = record.xml, !xml.isEmpty, !record.isTruncated else {
            return nil
        }
        func text(_ range: ByteRange?) -> String? { range.map { names.text(line.content.span.slice($0)) } }
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
        // A client's log may lack the stream header.
        self.root = root.isEmpty ? StanzaForm.clientDeclarations : root
        let bytes = Array(line.content[xml.range])
        origin = record.origin
        sent = origin == .peer ? bytes : nil
        // Usually both are the same, and share their memory.
        seen = record.delivered.map { $0 == xml ? bytes : Array(line.content[$0.range]) }
        at = record.monotonic
        sequence = record.sequence
        chunks = record.chunks
        id = record.id.map { line.content.span.slice($0).string() }
        type = text(record.type)
        from = text(record.from)
        to = text(record.to)
        payload = text(record.payloadName)
        payloadNamespace = record.payloadNamespace
        placeholders = Placeholder.all(in: bytes.span)
    }
}

/// Texts with one copy in memory each.
struct SharedTexts {
    private var texts: [UInt64: String] = [:]
    /// Maximum number of shared texts.
    private static let most = 4096

    mutating func text(_ bytes: Span<UInt8>) -> String {
        // A short text needs no heap memory.
        guard bytes.count > 15 else { return bytes.string() }
        let hash = Hash.of(bytes, seed: 1)
        if let text = texts[hash], text.utf8Span.span.equals(bytes) { return text }
        let text = bytes.string()
        if texts.count < Self.most { texts[hash] = text }
        return text
    }
}

extension RecordedItem {
    /// The kind of a request: `iq ping`, or `iq query jabber:iq:roster` since many payloads are named query.
    var requestKind: String {
        let words = ["iq", payload ?? "", payload == "query" ? payloadNamespace.uri.description : ""]
        return words.filter { !$0.isEmpty }.joined(separator: " ")
    }
}

extension Record {
    /// The range of the item as the receiving peer got it; nil if it was not delivered or not recorded.
    public var delivered: ByteRange? {
        if let edited { return edited }
        guard let action else { return xml }
        return Self.stopping.contains(action) ? nil : xml
    }

    /// The actions after which the item is not delivered.
    private static let stopping: Set<String> = ["dropped", "refused", Self.answered, "cut", "half-closed", "reset"]
}
