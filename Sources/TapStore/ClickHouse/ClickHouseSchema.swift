internal import TapRecord

/// The tables of a store in ClickHouse.
///
/// A row is identified by its run and number, which are the end of the key. A batch that is sent again makes duplicates, which the engine
/// removes at some later time, or never; so every query removes them itself.
enum ClickHouseSchema {
    /// The names of a stanza's columns, in the order in which rows have them.
    static let columns =
        "run, sequence, session, seen, time, account, resource, peer, peer_resource, direction, kind, source, type, id, payload, "
        + "body, subject, thread, stanza_id, stanza_by, origin_id, copy_key, size, action, rule, condition, round_trip, xml"

    static let sessionColumns = "run, number, account, client, began, ended, cause, finding, close_reason, version"

    /// Returns the statements that create the tables. Older servers know neither codecs nor tokens against duplicates.
    static func statements(_ database: String, isOld: Bool) -> [String] {
        let often = "LowCardinality(String)"
        let (text, number) = isOld ? ("String", "") : ("String CODEC(ZSTD(1))", " CODEC(Delta, ZSTD(1))")
        let settings =
            isOld ? "" : ", ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000"
        return [
            "CREATE DATABASE IF NOT EXISTS \(database)",
            """
            CREATE TABLE IF NOT EXISTS \(database).stanza (
            run \(often), sequence UInt64\(number), session UInt64\(isOld ? "" : " CODEC(ZSTD(1))"), seen Int64\(number),
            time Int64\(number), account \(text), resource \(often), peer \(text), peer_resource \(often), direction UInt8,
            kind UInt8, source UInt8, type \(often), id \(text), payload \(often), body Nullable(String)\(isOld ? "" : " CODEC(ZSTD(1))"),
            subject Nullable(String), thread \(text), stanza_id \(text), stanza_by \(often), origin_id \(text),
            copy_key \(text), size UInt64\(isOld ? "" : " CODEC(ZSTD(1))"), action \(often), rule \(often), condition \(often),
            round_trip Nullable(Int64), xml \(text)
            ) ENGINE = ReplacingMergeTree() PARTITION BY toDate(toDateTime(intDiv(seen, 1000000000), 'UTC'), 'UTC')
            PRIMARY KEY (account, peer, time) ORDER BY (account, peer, time, run, sequence)
            SETTINGS index_granularity = 8192\(settings)
            """,
            """
            CREATE TABLE IF NOT EXISTS \(database).session (
            run \(often), number UInt64, account String, client String, began Int64, ended Int64, cause \(often), finding String,
            close_reason \(often), version UInt64
            ) ENGINE = ReplacingMergeTree(version) PARTITION BY tuple() ORDER BY (run, number)
            """,
            """
            CREATE TABLE IF NOT EXISTS \(database).gap (
            run \(often), first UInt64, last UInt64, count UInt64, reason String, time Int64
            ) ENGINE = ReplacingMergeTree() PARTITION BY tuple() ORDER BY (run, first, last)
            """,
        ]
    }

    // MARK: Rows

    static func append(_ row: AuditRow, to writer: inout RowBinaryWriter) {
        writer.append(row.run)
        writer.append(row.sequence)
        writer.append(row.session)
        writer.append(row.seen.nanoseconds)
        writer.append(row.time.nanoseconds)
        writer.append(row.account)
        writer.append(row.resource ?? "")
        writer.append(row.peer ?? "")
        writer.append(row.peerResource ?? "")
        writer.append(row.direction.rawValue)
        writer.append(UInt8(truncatingIfNeeded: row.kind.rawValue))
        writer.append(UInt8(truncatingIfNeeded: row.source.rawValue))
        writer.append(row.type ?? "")
        writer.append(row.id ?? "")
        writer.append(row.payload ?? "")
        writer.append(nullable: row.body)
        writer.append(nullable: row.subject)
        writer.append(row.thread ?? "")
        writer.append(row.stanzaID ?? "")
        writer.append(row.stanzaBy ?? "")
        writer.append(row.originID ?? "")
        writer.append(row.copyKey ?? [])
        writer.append(UInt64(clamping: row.size))
        writer.append(row.action ?? "")
        writer.append(row.rule ?? "")
        writer.append(row.condition ?? "")
        writer.append(nullable: row.roundTrip)
        writer.append(row.xml ?? "")
    }

    static func append(_ session: AuditSession, version: UInt64, to writer: inout RowBinaryWriter) {
        writer.append(session.run)
        writer.append(session.number)
        writer.append(session.account ?? "")
        writer.append(session.client ?? "")
        writer.append(session.began?.nanoseconds ?? 0)
        writer.append(session.ended?.nanoseconds ?? 0)
        writer.append(session.cause ?? "")
        writer.append(session.finding ?? "")
        writer.append(session.closeReason ?? "")
        writer.append(version)
    }

    /// Reads a row of ``columns``; nil if it is not complete.
    static func row(_ reader: inout RowBinaryReader) -> AuditRow? {
        func optional(_ text: String) -> String? { text.isEmpty ? nil : text }
        let run = reader.text()
        let sequence = reader.integer(UInt64.self)
        let session = reader.integer(UInt64.self)
        let seen = reader.integer(Int64.self)
        let time = reader.integer(Int64.self)
        let account = reader.text()
        let (resource, peer, peerResource) = (reader.text(), reader.text(), reader.text())
        let (direction, kind, source) = (
            reader.integer(UInt8.self), reader.integer(UInt8.self), reader.integer(UInt8.self)
        )
        guard reader.isComplete, let direction = Direction(rawValue: direction),
            let kind = AuditRow.Kind(rawValue: Int(kind))
        else { return nil }
        var row = AuditRow(
            run: run,
            sequence: sequence,
            session: session,
            time: Timestamp(nanoseconds: time),
            account: account,
            direction: direction,
            kind: kind,
            size: 0
        )
        row.seen = Timestamp(nanoseconds: seen)
        row.resource = optional(resource)
        row.peer = optional(peer)
        row.peerResource = optional(peerResource)
        row.source = AuditRow.Source(rawValue: Int(source)) ?? .live
        row.type = optional(reader.text())
        row.id = optional(reader.text())
        row.payload = optional(reader.text())
        row.body = reader.nullableText()
        row.subject = reader.nullableText()
        row.thread = optional(reader.text())
        row.stanzaID = optional(reader.text())
        row.stanzaBy = optional(reader.text())
        row.originID = optional(reader.text())
        let key = reader.data()
        row.copyKey = key.isEmpty ? nil : key
        row.size = Int(clamping: reader.integer(UInt64.self))
        row.action = optional(reader.text())
        row.rule = optional(reader.text())
        row.condition = optional(reader.text())
        row.roundTrip = reader.nullableInteger()
        row.xml = optional(reader.text())
        return reader.isComplete ? row : nil
    }

    /// Reads a row of ``sessionColumns``; nil if it is not complete.
    static func session(_ reader: inout RowBinaryReader) -> AuditSession? {
        func optional(_ text: String) -> String? { text.isEmpty ? nil : text }
        func time(_ value: Int64) -> Timestamp? { value == 0 ? nil : Timestamp(nanoseconds: value) }
        let run = reader.text()
        var session = AuditSession(run: run, number: reader.integer())
        session.account = optional(reader.text())
        session.client = optional(reader.text())
        session.began = time(reader.integer())
        session.ended = time(reader.integer())
        session.cause = optional(reader.text())
        session.finding = optional(reader.text())
        session.closeReason = optional(reader.text())
        _ = reader.integer(UInt64.self)
        return reader.isComplete ? session : nil
    }
}
