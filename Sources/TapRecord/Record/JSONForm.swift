internal import XMPPCore

/// Writes records as JSON, one object a line: the form of JSON logs and of captures.
///
/// The fields, their names and their meaning are a stable schema for users; ``RecordLine`` reads it. Fields without
/// information are omitted (no session, no direction, `origin` of the peers' data). `account` and `peer` are not stored
/// in a record but derived: the bare JIDs of the effective sender and receiver of a stanza, seen from the session's
/// account (RFC 6120 §8.1).
public struct JSONForm: ~Copyable, Sendable {
    /// Optional parts of a line; all other fields are written at every level.
    public struct Parts: OptionSet, Sendable, Hashable {
        /// The parts as bits.
        public let rawValue: UInt8

        /// Creates options from bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The item as `xml` or `base64`; written at levels verbose and trace.
        public static let content = Parts(rawValue: 1)
        /// The positions at which reads and TLS records split the item, `chunks` and `tls_records`; written in captures, and
        /// at level trace.
        package static let chunks = Parts(rawValue: 2)
    }

    private var timestamps = TimestampWriter()

    /// Creates a form.
    public init() {}

    /// Appends a record as one line; `content` holds the texts of the record, `unknown` further fields in the format of
    /// ``RecordLine/unknown``.
    package mutating func append(
        _ record: borrowing Record,
        content: Span<UInt8>,
        _ parts: Parts,
        unknown: [UInt8] = [],
        to line: inout LineBuffer
    ) {
        line.openObject()
        let fraction = timestamps.begin(record.time)
        line.append(atMost: Self.headRoom(record, content, parts)) { start in
            var cursor = JSONCursor(start)
            cursor.literal("\"sequence\":")
            cursor.decimal(record.sequence)
            cursor.literal(",\"time\":\"")
            cursor.time(second: timestamps.beginning, nanoseconds: fraction)
            Self.writeHead(record, content, parts, to: &cursor)
            return cursor.count(from: start)
        }
        Self.appendRest(record, content, parts, to: &line)
        if !unknown.isEmpty {
            line.separate()
            line.append(bytes: unknown)
        }
        line.closeObject()
        line.endLine()
    }

    /// Appends a stored record, with unknown fields after the known ones.
    public mutating func append(_ stored: RecordLine, _ parts: Parts, to line: inout LineBuffer) {
        append(stored.record, content: stored.content.span, parts, unknown: stored.unknown, to: &line)
    }

    /// Writes the fields after the head: rare ones, and the item.
    private static func appendRest(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ parts: Parts,
        to line: inout LineBuffer
    ) {
        if record.isPlain {
            if record.isTruncated { line.field("truncated", true) }
        } else {
            appendRemarks(record, to: &line)
        }
        if record.origin == .tap { line.field("origin", literal: "tap") }
        guard parts.contains(.content) else { return }
        if let xml = record.xml {
            line.field("xml", content.slice(xml).bytes, orBase64: "base64")
        } else if let bytes = record.bytes {
            line.field("base64")
            line.append(0x22)
            line.append(base64: bytes.span.bytes)
            line.append(0x22)
        }
        guard let edited = record.edited else { return }
        line.field("edited")
        // An edited item is UTF-8, because the scanner has checked it; if it were not, the line would still be valid
        // JSON.
        let text = content.slice(edited)
        if !line.appendJSONString(text.bytes) { line.appendJSONString(text.string()) }
    }

    private static func appendRemarks(_ record: borrowing Record, to line: inout LineBuffer) {
        if let action = record.action { line.field("action", action) }
        if let rule = record.rule { line.field("rule", rule) }
        if record.isTruncated { line.field("truncated", true) }
        if let digest = record.digest { line.field("digest", digest) }
        if let condition = record.condition { line.field("condition", condition) }
        if let code = record.code { line.field("code", code) }
        if let message = record.message { line.field("message", message.text) }
        if let sasl = record.sasl { line.field("sasl", sasl) }
        if let tls = record.tls { line.field("tls", tls) }
        if let sm = record.sm { line.field("sm", sm) }
        if let details = record.details { line.field("details", details) }
    }
}

extension LineBuffer {
    /// Writes a field with an object of attributes, in their order.
    package mutating func field(_ name: StaticString, _ attributes: Attributes) {
        field(name)
        openObject()
        for entry in attributes.entries {
            field(named: entry.name)
            switch entry.value {
            case .string(let text): appendJSONString(text)
            case .integer(let number): append(decimal: number)
            case .boolean(let flag): append(flag ? "true" : "false")
            case .strings(let list):
                openArray()
                for text in list {
                    separate()
                    appendJSONString(text)
                }
                closeArray()
            }
        }
        closeObject()
    }
}

extension Span<UInt8> {
    /// The bytes before the first slash: an address without its resource.
    var untilSlash: Span<UInt8> {
        @_lifetime(copy self)
        get {
            guard let slash = firstIndex(of: 0x2F) else { return self }
            return extracting(0..<slash)
        }
    }
}

extension Record.Kind {
    /// The raw value as a literal.
    var literal: StaticString {
        switch self {
        case .session: "session"
        case .declaration: "declaration"
        case .streamOpen: "stream-open"
        case .stanza: "stanza"
        case .element: "element"
        case .whitespace: "whitespace"
        case .streamClose: "stream-close"
        case .tls: "tls"
        case .bytes: "bytes"
        case .note: "note"
        case .error: "error"
        case .chunk: "chunk"
        case .frame: "frame"
        }
    }
}
