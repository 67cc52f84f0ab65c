package import TapRecord
package import XMPPCore

/// An item of a recorded stream after its login: a stanza, another element, or the end of the stream.
package struct RecordedItem: Sendable {
    /// The kind of an item.
    package enum Kind: Sendable, Hashable {
        case iq, message, presence
        /// Another element: stream management, client state, a stream error.
        case nonza
        /// The end of the stream.
        case end
    }

    /// The properties that many items have in common. Equal heads share their memory, because a recording has many
    /// items.
    struct Head: Sendable, Hashable {
        var direction: Direction
        var kind: Kind
        var origin: Origin
        var root: [UInt8]
        var name: String
        var type: String?
        var from: String?
        var to: String?
        var payload: String?
        var payloadNamespace: Namespace
        var placeholders: [String]
    }

    fileprivate final class SharedHead: Sendable {
        let head: Head

        init(_ head: Head) { self.head = head }
    }

    private var shared: SharedHead
    private var head: Head {
        get { shared.head }
        set { shared = SharedHead(newValue) }
    }
    /// The item as its sender sent it; nil if the proxy created it.
    package internal(set) var sent: [UInt8]?
    /// The item as the receiving peer got it; nil if it was not delivered.
    package internal(set) var seen: [UInt8]?
    /// Nanoseconds since the run began.
    package internal(set) var at: Int64
    /// The number of the item's record within the run.
    package internal(set) var sequence: UInt64
    /// Offsets within the item at which reads ended.
    package internal(set) var chunks: [UInt64]
    package internal(set) var id: String?

    package internal(set) var direction: Direction {
        get { head.direction }
        set { head.direction = newValue }
    }
    package var kind: Kind { head.kind }
    /// The namespace declarations of its stream, as ``StanzaParser/parse(_:root:)`` takes them.
    package internal(set) var root: [UInt8] {
        get { head.root }
        set { head.root = newValue }
    }
    package var origin: Origin { head.origin }
    package var type: String? { head.type }
    package internal(set) var from: String? {
        get { head.from }
        set { head.from = newValue }
    }
    package var to: String? { head.to }
    /// The local name of the item itself.
    package var name: String { head.name }
    /// The local name of the first child.
    package var payload: String? { head.payload }
    /// The namespace of the first child; ``Namespace/none`` if there is none.
    package var payloadNamespace: Namespace { head.payloadNamespace }
    /// The placeholders of redacted values, such as `[redacted:token#3]`, without duplicates.
    package var placeholders: [String] { head.placeholders }

    /// Whether the item is an iq that answers a request.
    var isAnswer: Bool { kind == .iq && (type == "result" || type == "error") }

    /// Returns the item as the server knows it: client items as delivered, server items as sent.
    ///
    /// - Parameter withoutEdits: Return client items without the edits of the proxy.
    package func atServer(withoutEdits: Bool = false) -> [UInt8]? {
        direction == .send && !withoutEdits ? seen : sent
    }

    /// Reads an item from its record; nil if the record is not an item, or is incomplete.
    ///
    /// - Parameter parts: The shared parts of earlier items; new parts are added.
    init?(_ line: RecordLine, root: [UInt8], _ parts: inout SharedParts) {
        let record = line.record
        guard let direction = record.direction, let xml = record.xml, !xml.isEmpty, !record.isTruncated else {
            return nil
        }
        func text(_ range: ByteRange?) -> String? { range.map { parts.text(line.content.span.slice($0)) } }
        let name = text(record.name) ?? ""
        let kind: Kind
        switch (record.kind, name) {
        case (.stanza, "iq"): kind = .iq
        case (.stanza, "message"): kind = .message
        case (.stanza, "presence"): kind = .presence
        case (.element, _): kind = .nonza
        case (.streamClose, _): kind = .end
        default: return nil
        }
        let bytes = Array(line.content[xml.range])
        let head = Head(
            direction: direction,
            kind: kind,
            origin: record.origin,
            // A client's log may lack the stream header.
            root: root.isEmpty ? StanzaForm.clientDeclarations : root,
            name: name,
            type: text(record.type),
            from: text(record.from),
            to: text(record.to),
            payload: text(record.payloadName),
            payloadNamespace: record.payloadNamespace,
            placeholders: Placeholder.all(in: bytes.span)
        )
        id = text(record.id)
        shared = parts.shared(head)
        sent = record.origin == .peer ? bytes : nil
        // Usually both are equal, and share their memory.
        seen = record.delivered.map { $0 == xml ? bytes : Array(line.content[$0.range]) }
        at = record.monotonic
        sequence = record.sequence
        chunks = record.chunks
    }
}

/// Parts of items that are stored once and shared by all items that contain them.
struct SharedParts {
    /// The most recent texts, by hash. An answer, for example, has the same id as a request that was sent shortly
    /// before.
    private var texts = [String](repeating: "", count: 4096)
    private var heads: [RecordedItem.Head: RecordedItem.SharedHead] = [:]
    /// Maximum number of shared heads.
    private static let maximumCount = 4096

    /// Returns the text of the bytes. If an equal text was used recently, both share their memory.
    mutating func text(_ bytes: Span<UInt8>) -> String {
        // A short text needs no heap memory.
        guard bytes.count > 15 else { return bytes.string() }
        let place = Int(Hash.of(bytes, seed: 1) % UInt64(texts.count))
        if !texts[place].utf8Span.span.equals(bytes) { texts[place] = bytes.string() }
        return texts[place]
    }

    fileprivate mutating func shared(_ head: RecordedItem.Head) -> RecordedItem.SharedHead {
        if let shared = heads[head] { return shared }
        let shared = RecordedItem.SharedHead(head)
        if heads.count < Self.maximumCount { heads[head] = shared }
        return shared
    }
}

extension RecordedItem {
    /// The kind of a request: `iq ping`, or `iq query jabber:iq:roster` since many payloads are named query.
    var requestKind: String {
        let parts = ["iq", payload ?? "", payload == "query" ? payloadNamespace.uri.description : ""]
        return parts.filter { !$0.isEmpty }.joined(separator: " ")
    }
}

extension Record {
    /// The range of the item as the receiving peer got it; nil if it was not delivered or not recorded.
    package var delivered: ByteRange? {
        if let edited { return edited }
        guard let action else { return xml }
        return Self.stopping.contains(action) ? nil : xml
    }

    /// The actions after which the item is not delivered.
    private static let stopping: Set<String> = ["dropped", "refused", Self.answered, "cut", "half-closed", "reset"]
}
