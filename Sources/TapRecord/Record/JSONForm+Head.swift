internal import XMPPCore

// The head of a record's line: all common fields, written in one pass.
extension JSONForm {
    /// Returns the maximum number of bytes of the head.
    static func headRoom(_ record: borrowing Record, _ content: Span<UInt8>, _ parts: Parts) -> Int {
        func size(_ range: ByteRange?) -> Int { range.map { content.slice($0).count } ?? 0 }
        let jid = record.jid?.utf8.count ?? 0
        var texts = jid + (record.user?.utf8.count ?? 0) + (record.domain?.utf8.count ?? 0)
        texts += record.remote?.utf8.count ?? 0
        texts += record.summary?.byteCount ?? 0
        texts += size(record.name) + size(record.type) + size(record.id)
        texts += size(record.payloadName) + size(record.payloadURI) + record.payloadNamespace.uri.utf8CodeUnitCount
        // The fields `account` and `peer` repeat both addresses, or the account twice.
        texts += 2 * (size(record.from) + size(record.to) + jid)
        let chunks = parts.contains(.chunks) ? 21 * (record.chunks.count + record.tlsRecords.count) : 0
        return JSONCursor.fixed + JSONCursor.room(for: texts) + 15 * JSONCursor.room(for: 0) + chunks
    }

    /// Writes the fields after the number and the time.
    @inline(__always)
    static func writeHead(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ parts: Parts,
        to cursor: inout JSONCursor
    ) {
        cursor.literal("\",\"monotonic\":")
        cursor.seconds(record.monotonic)
        cursor.literal(",\"level\":\"")
        cursor.literal(record.level.literal)
        cursor.literal("\",\"part\":\"")
        cursor.literal(record.part.literal)
        cursor.literal("\",\"kind\":\"")
        cursor.literal(record.kind.literal)
        cursor.byte(0x22)
        writeSession(record, to: &cursor)
        if let direction = record.direction {
            cursor.literal(",\"direction\":\"")
            cursor.literal(direction.name)
            cursor.byte(0x22)
        }
        if let leg = record.leg {
            cursor.literal(",\"leg\":\"")
            cursor.literal(leg.name)
            cursor.byte(0x22)
        }
        if record.epoch != 0 {
            cursor.literal(",\"epoch\":")
            cursor.decimal(record.epoch)
        }
        if record.direction != nil || record.offset > 0 {
            cursor.literal(",\"offset\":")
            cursor.decimal(record.offset)
        }
        if record.direction != nil || record.length > 0 {
            cursor.literal(",\"length\":")
            cursor.decimal(record.length)
        }
        if parts.contains(.chunks) {
            if !record.chunks.isEmpty { writeOffsets(record.chunks, as: ",\"chunks\":[", to: &cursor) }
            if record.isInTLS, record.origin == .peer {
                writeOffsets(record.tlsRecords, as: ",\"tls_records\":[", to: &cursor)
            }
        }
        writeItem(record, content, to: &cursor)
    }

    private static func writeSession(_ record: borrowing Record, to cursor: inout JSONCursor) {
        if record.session > 0 {
            cursor.literal(",\"session\":")
            cursor.decimal(record.session)
        }
        if let jid = record.jid {
            cursor.literal(",\"jid\":")
            cursor.string(jid)
        }
        if let user = record.user {
            cursor.literal(",\"user\":")
            cursor.string(user)
        }
        if let domain = record.domain {
            cursor.literal(",\"domain\":")
            cursor.string(domain)
        }
        if let remote = record.remote {
            cursor.literal(",\"remote\":")
            cursor.string(remote)
        }
    }

    private static func writeOffsets(_ offsets: [UInt64], as field: StaticString, to cursor: inout JSONCursor) {
        cursor.literal(field)
        for index in offsets.indices {
            if index > 0 { cursor.byte(0x2C) }
            cursor.decimal(offsets[index])
        }
        cursor.byte(0x5D)
    }

    @inline(__always)
    private static func writeItem(_ record: borrowing Record, _ content: Span<UInt8>, to cursor: inout JSONCursor) {
        if let name = record.name {
            cursor.literal(",\"name\":")
            cursor.string(content.slice(name))
        }
        if let from = record.from {
            cursor.literal(",\"from\":")
            cursor.string(content.slice(from))
        }
        if let to = record.to {
            cursor.literal(",\"to\":")
            cursor.string(content.slice(to))
        }
        if let type = record.type {
            cursor.literal(",\"type\":")
            cursor.string(content.slice(type))
        }
        if let id = record.id {
            cursor.literal(",\"id\":")
            cursor.string(content.slice(id))
        }
        writePayload(record, content, to: &cursor)
        if let summary = record.summary {
            cursor.literal(",\"summary\":")
            cursor.string(summary.text)
        }
        writeAccounts(record, content, to: &cursor)
        if let answers = record.answers {
            cursor.literal(",\"answers\":")
            cursor.decimal(answers)
        }
        if let roundTrip = record.roundTrip {
            cursor.literal(",\"round_trip\":")
            cursor.seconds(roundTrip)
        }
    }

    /// Writes `{namespace}name`, or only the name without a namespace. A namespace that is not UTF-8 is omitted.
    @inline(__always)
    private static func writePayload(_ record: borrowing Record, _ content: Span<UInt8>, to cursor: inout JSONCursor) {
        guard let name = record.payloadName else { return }
        let start = cursor
        var isValid = true
        cursor.literal(",\"payload\":\"")
        switch record.payloadNamespace {
        case .none: break
        case .other:
            cursor.byte(0x7B)
            isValid = cursor.content(content.slice(record.payloadURI ?? .empty))
            cursor.byte(0x7D)
        default:
            cursor.byte(0x7B)
            cursor.literal(record.payloadNamespace.uri)
            cursor.byte(0x7D)
        }
        guard isValid, cursor.content(content.slice(name)) else { return cursor.rewind(to: start) }
        cursor.byte(0x22)
    }

    @inline(__always)
    private static func writeAccounts(_ record: borrowing Record, _ content: Span<UInt8>, to cursor: inout JSONCursor) {
        guard record.kind == .stanza, let jid = record.jid, let direction = record.direction else { return }
        let account = jid.utf8Span.span.untilSlash
        cursor.literal(",\"account\":")
        cursor.string(account)
        cursor.literal(",\"peer\":")
        // A stanza without `to` is for the account itself, and a stanza without `from` comes from the account.
        if let peer = direction == .send ? record.to : record.from {
            cursor.string(content.slice(peer).untilSlash)
        } else {
            cursor.string(account)
        }
    }
}
