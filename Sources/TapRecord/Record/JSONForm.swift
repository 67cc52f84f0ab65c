internal import XMPPCore

/// Writes records as JSON, one object a line: the form of JSON logs and of captures.
///
/// The fields, their names and their meaning are a stable schema for users; ``RecordLine`` reads it. Fields without
/// information are omitted (no session, no direction, `origin` of the peers' data). `account` and `peer` are not stored
/// in a record but derived: the bare JIDs of the effective sender and receiver of a stanza, seen from the session's
/// account (RFC 6120 §8.1).
public struct JSONForm: ~Copyable, Sendable {
    /// Optional parts of a record, besides the fields of every level.
    public struct Parts: OptionSet, Sendable, Hashable {
        /// One bit for each.
        public let rawValue: UInt8

        /// Creates options from bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The item, `xml` or `base64`: at verbose and trace.
        public static let content = Parts(rawValue: 1)
        /// The positions at which reads split it: in captures, and at trace.
        public static let chunks = Parts(rawValue: 2)
    }

    private var timestamps = TimestampWriter()
    /// Records with longer texts, in bytes, are written in pieces: no memory is reserved for their worst case.
    private let longestHead: Int

    /// Creates a form.
    public init() { self.init(longestHead: 64 << 10) }

    /// Creates a form that writes longer records in pieces.
    init(longestHead: Int) { self.longestHead = longestHead }

    /// Appends a record as one line; `content` holds its texts.
    public mutating func append(
        _ record: borrowing Record,
        content: Span<UInt8>,
        _ parts: Parts,
        to line: inout LineBuffer
    ) {
        append(record, content, parts, to: &line)
        line.closeObject()
        line.endLine()
    }

    private mutating func append(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ parts: Parts,
        to line: inout LineBuffer
    ) {
        let room = Self.headRoom(record, content, parts)
        if room <= longestHead {
            line.openObject()
            let fraction = timestamps.begin(record.time)
            line.append(atMost: room) { start in
                var cursor = JSONCursor(start)
                cursor.literal("\"sequence\":")
                cursor.decimal(record.sequence)
                cursor.literal(",\"time\":\"")
                cursor.time(second: timestamps.beginning, nanoseconds: fraction)
                Self.writeHead(record, content, parts, to: &cursor)
                return cursor.count(from: start)
            }
        } else {
            open(record, to: &line)
            Self.appendHead(record, content, parts, to: &line)
        }
        Self.appendRest(record, content, parts, to: &line)
    }

    /// Appends a stored record, with unknown fields after the known ones.
    public mutating func append(_ stored: RecordLine, _ parts: Parts, to line: inout LineBuffer) {
        append(stored.record, stored.content.span, parts, to: &line)
        if !stored.unknown.isEmpty {
            line.separate()
            line.append(bytes: stored.unknown)
        }
        line.closeObject()
        line.endLine()
    }

    /// Writes the fields of every record, and its session.
    private mutating func open(_ record: borrowing Record, to line: inout LineBuffer) {
        line.openObject()
        line.field("sequence", record.sequence)
        line.field("time")
        line.append(0x22)
        timestamps.append(record.time, to: &line)
        line.append(0x22)
        line.field("monotonic", seconds: record.monotonic)
        line.field("level", literal: record.level.literal)
        line.field("part", literal: record.part.literal)
        line.field("kind", literal: record.kind.literal)
        if record.session > 0 { line.field("session", record.session) }
        if let jid = record.jid { line.field("jid", jid) }
        if let user = record.user { line.field("user", user) }
        if let domain = record.domain { line.field("domain", domain) }
        if let remote = record.remote { line.field("remote", remote) }
        if let direction = record.direction { line.field("direction", literal: direction.name) }
        if let leg = record.leg { line.field("leg", literal: leg.name) }
        if record.epoch != 0 { line.field("epoch", record.epoch) }
        if record.direction != nil || record.offset > 0 { line.field("offset", record.offset) }
        if record.direction != nil || record.length > 0 { line.field("length", record.length) }
    }

    private static func appendHead(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ parts: Parts,
        to line: inout LineBuffer
    ) {
        if parts.contains(.chunks), !record.chunks.isEmpty {
            line.field("chunks")
            line.openArray()
            for chunk in record.chunks {
                line.separate()
                line.append(decimal: chunk)
            }
            line.closeArray()
        }
        append("name", record.name, content, to: &line)
        append("from", record.from, content, to: &line)
        append("to", record.to, content, to: &line)
        append("type", record.type, content, to: &line)
        append("id", record.id, content, to: &line)
        appendPayload(record, content, to: &line)
        if let summary = record.summary { line.field("summary", summary.text) }
        appendAccounts(record, content, to: &line)
        if let answers = record.answers { line.field("answers", answers) }
        if let roundTrip = record.roundTrip { line.field("round_trip", seconds: roundTrip) }
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
        append("edited", record.edited, content, to: &line)
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

    private static func append(
        _ name: StaticString,
        _ range: ByteRange?,
        _ content: Span<UInt8>,
        to line: inout LineBuffer
    ) {
        guard let range else { return }
        line.field(name)
        append(content.slice(range), to: &line)
    }

    /// Appends a text of an item. The scanner has checked that it is UTF-8; if it were not, the line would still be
    /// JSON.
    private static func append(_ text: Span<UInt8>, to line: inout LineBuffer) {
        if !line.appendJSONString(text.bytes) { line.appendJSONString(text.string()) }
    }

    /// Writes `{namespace}name`, or only the name without a namespace.
    private static func appendPayload(_ record: borrowing Record, _ content: Span<UInt8>, to line: inout LineBuffer) {
        guard let name = record.payloadName else { return }
        let start = line.count
        line.field("payload")
        line.append(0x22)
        var isValid = true
        switch record.payloadNamespace {
        case .none: break
        case .other:
            line.append(0x7B)
            isValid = line.appendJSONContent(content.slice(record.payloadURI ?? .empty).bytes)
            line.append(0x7D)
        default:
            line.append(0x7B)
            line.append(record.payloadNamespace.uri)
            line.append(0x7D)
        }
        // Names are UTF-8 like the rest of an item; invalid ones are omitted.
        guard isValid, line.appendJSONContent(content.slice(name).bytes) else { return line.truncate(to: start) }
        line.append(0x22)
    }

    private static func appendAccounts(_ record: borrowing Record, _ content: Span<UInt8>, to line: inout LineBuffer) {
        guard record.kind == .stanza, let jid = record.jid, let direction = record.direction else { return }
        let account = jid.utf8.span.untilSlash
        line.field("account")
        append(account, to: &line)
        line.field("peer")
        // A stanza without `to` is for the account itself, and one without `from` comes from it.
        if let peer = direction == .send ? record.to : record.from {
            append(content.slice(peer).untilSlash, to: &line)
        } else {
            append(account, to: &line)
        }
    }
}

extension LineBuffer {
    /// Writes a field with an object of attributes, in their order.
    public mutating func field(_ name: StaticString, _ attributes: Attributes) {
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
    /// An address up to its resource.
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
        }
    }
}
