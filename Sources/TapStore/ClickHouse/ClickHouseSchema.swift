internal import TapRecord

/// The tables of a store in ClickHouse.
///
/// A row is identified by its run and number, which are the end of the key. A batch that is sent again makes duplicates, which the engine
/// removes at some later time, or never; so every query removes them itself.
enum ClickHouseSchema {
    /// The names of a stanza's columns, in the order in which rows have them: first those that neighbouring rows have in common, which
    /// are compressed together, so that rows need less time and space.
    static let columns =
        "run, tap, session, direction, kind, source, type, payload, thread, stanza_by, action, rule, condition, round_trip, xml, "
        + "subject, account, resource, peer, peer_resource, size, seen, time, sequence, id, origin_id, stanza_id, copy_key, body"

    private static let sessionColumns =
        "run, sequence, seen, number, account, client, began, ended, cause, finding, close_reason"
    private static let gapColumns = "run, first, last, stanzas, reason, seen"

    /// The name of a table.
    static func name(of table: SpoolBlock.Table) -> String {
        switch table {
        case .stanza: "stanza"
        case .session: "session"
        case .gap: "gap"
        }
    }

    /// The names of a table's columns, in the order in which rows have them.
    static func columns(of table: SpoolBlock.Table) -> String {
        switch table {
        case .stanza: columns
        case .session: sessionColumns
        case .gap: gapColumns
        }
    }

    /// Returns the statements that create the tables. Older servers know neither codecs nor tokens against duplicates.
    ///
    /// - Parameters:
    ///   - hasWindow: Whether tables that are not replicated can know the tokens of batches.
    ///   - cluster: The cluster in whose servers they are created and replicated; nil for one server. Its servers' macros
    ///     `shard` and `replica` name each of them.
    static func statements(
        _ database: String,
        isOld: Bool,
        hasWindow: Bool,
        onCluster cluster: String?
    ) -> [String] {
        let often = "LowCardinality(String)"
        let (text, number) = isOld ? ("String", "") : ("String CODEC(ZSTD(1))", " CODEC(Delta, ZSTD(1))")
        // Not by the time of the stanza: a client can give it any delay, and each day is a partition.
        let partition = "PARTITION BY toDate(toDateTime(intDiv(seen, 1000000000), 'UTC'), 'UTC')"
        let settings = hasWindow && cluster == nil ? ", non_replicated_deduplication_window = 1000" : ""
        let everywhere = cluster.map { " ON CLUSTER \($0)" } ?? ""
        func engine(_ table: String) -> String {
            guard cluster != nil else { return "ReplacingMergeTree()" }
            return "ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/\(database)/\(table)', '{replica}')"
        }
        let tables = [
            "CREATE DATABASE IF NOT EXISTS \(database)\(everywhere)",
            """
            CREATE TABLE IF NOT EXISTS \(database).stanza\(everywhere) (
            run \(often), sequence UInt64\(number), session UInt64\(isOld ? "" : " CODEC(ZSTD(1))"), seen Int64\(number),
            time Int64\(number), account \(text), resource \(often), peer \(text), peer_resource \(often), direction UInt8,
            kind UInt8, source UInt8, type \(often), id \(text), payload \(often), body Nullable(String)\(isOld ? "" : " CODEC(ZSTD(1))"),
            subject Nullable(String), thread \(text), stanza_id \(text), stanza_by \(often), origin_id \(text),
            copy_key \(text), size UInt64\(isOld ? "" : " CODEC(ZSTD(1))"), action \(often), rule \(often), condition \(often),
            round_trip Nullable(Int64), xml \(text), tap \(often)
            ) ENGINE = \(engine("stanza")) \(partition)
            PRIMARY KEY (account, peer, time) ORDER BY (account, peer, time, run, sequence)
            SETTINGS index_granularity = 8192\(settings)
            """,
            """
            CREATE TABLE IF NOT EXISTS \(database).session\(everywhere) (
            run \(often), sequence UInt64, seen Int64, number UInt64, account String, client String, began Int64, ended Int64,
            cause \(often), finding String, close_reason \(often)
            ) ENGINE = \(engine("session")) \(partition) ORDER BY (run, number, sequence)
            """,
            """
            CREATE TABLE IF NOT EXISTS \(database).gap\(everywhere) (
            run \(often), first UInt64, last UInt64, stanzas UInt64, reason String, seen Int64
            ) ENGINE = \(engine("gap")) \(partition) ORDER BY (run, first, last)
            """,
        ]
        guard let cluster else { return tables }
        // For reading by other programs. Without a key for shards, nothing can be written to it: it would confirm rows too early.
        return tables + [
            "CREATE TABLE IF NOT EXISTS \(database).every_stanza\(everywhere) AS \(database).stanza "
                + "ENGINE = Distributed(\(cluster), \(database), stanza)"
        ]
    }

    // MARK: Rows

    static func append(_ row: AuditRow, to writer: inout RowBinaryWriter) {
        writer.append(row.run)
        writer.append(row.tap ?? "")
        writer.append(row.session)
        writer.append(row.direction.rawValue)
        writer.append(UInt8(truncatingIfNeeded: row.kind.rawValue))
        writer.append(UInt8(truncatingIfNeeded: row.source.rawValue))
        writer.append(row.type ?? "")
        writer.append(row.payload ?? "")
        writer.append(row.thread ?? "")
        writer.append(row.stanzaBy ?? "")
        writer.append(row.action ?? "")
        writer.append(row.rule ?? "")
        writer.append(row.condition ?? "")
        writer.append(nullable: row.roundTrip)
        writer.append(row.xml ?? "")
        writer.append(nullable: row.subject)
        writer.append(row.account)
        writer.append(row.resource ?? "")
        writer.append(row.peer ?? "")
        writer.append(row.peerResource ?? "")
        writer.append(UInt64(clamping: row.size))
        writer.append(row.seen.nanoseconds)
        writer.append(row.time.nanoseconds)
        writer.append(row.sequence)
        writer.append(row.id ?? "")
        writer.append(row.originID ?? "")
        writer.append(row.stanzaID ?? "")
        writer.append(row.copyKey ?? [])
        writer.append(nullable: row.body)
    }

    static func append(_ session: AuditSession, _ place: RecordPlace, to writer: inout RowBinaryWriter) {
        writer.append(session.run)
        writer.append(place.sequence)
        writer.append(place.time.nanoseconds)
        writer.append(session.number)
        writer.append(session.account ?? "")
        writer.append(session.client ?? "")
        writer.append(session.began?.nanoseconds ?? 0)
        writer.append(session.ended?.nanoseconds ?? 0)
        writer.append(session.cause ?? "")
        writer.append(session.finding ?? "")
        writer.append(session.closeReason ?? "")
    }

    static func append(_ gap: StoreGap, to writer: inout RowBinaryWriter) {
        writer.append(gap.run)
        writer.append(gap.first)
        writer.append(gap.last)
        writer.append(gap.stanzas)
        writer.append(gap.reason)
        writer.append(gap.time.nanoseconds)
    }

    /// Returns the places of the rows in `bytes`, as far as they are complete.
    static func rows(of table: SpoolBlock.Table, in bytes: [UInt8]) -> [Range<Int>] {
        var reader = RowBinaryReader(bytes)
        var texts = RowTexts()
        var rows: [Range<Int>] = []
        while !reader.isAtEnd {
            let start = reader.position
            switch table {
            case .stanza: _ = row(&reader, &texts)
            case .session: _ = session(&reader)
            case .gap: _ = gap(&reader)
            }
            guard reader.isComplete else { break }
            rows.append(start..<reader.position)
        }
        return rows
    }

    /// The texts of the row before, which many rows have in common.
    struct RowTexts {
        fileprivate var (run, payload, stanzaBy, account, resource) = ("", "", "", "", "")
        fileprivate var (peer, peerResource) = ("", "")
    }

    /// Reads a row of stanzas; nil if it is not complete.
    static func row(_ reader: inout RowBinaryReader, _ texts: inout RowTexts) -> AuditRow? {
        func optional(_ text: String) -> String? { text.isEmpty ? nil : text }
        let run = reader.text(repeating: &texts.run)
        let tap = optional(reader.text())
        let session = reader.integer(UInt64.self)
        let (direction, kind, source) = (
            reader.integer(UInt8.self), reader.integer(UInt8.self), reader.integer(UInt8.self)
        )
        guard reader.isComplete, let direction = Direction(rawValue: direction),
            let kind = AuditRow.Kind(rawValue: Int(kind))
        else { return nil }
        var row = AuditRow(
            run: run,
            sequence: 0,
            session: session,
            time: Timestamp(nanoseconds: 0),
            account: "",
            direction: direction,
            kind: kind,
            size: 0
        )
        row.tap = tap
        row.source = AuditRow.Source(rawValue: Int(source)) ?? .live
        row.type = optional(reader.text())
        row.payload = optional(reader.text(repeating: &texts.payload))
        row.thread = optional(reader.text())
        row.stanzaBy = optional(reader.text(repeating: &texts.stanzaBy))
        row.action = optional(reader.text())
        row.rule = optional(reader.text())
        row.condition = optional(reader.text())
        row.roundTrip = reader.nullableInteger()
        row.xml = optional(reader.text())
        row.subject = reader.nullableText()
        row.account = reader.text(repeating: &texts.account)
        row.resource = optional(reader.text(repeating: &texts.resource))
        row.peer = optional(reader.text(repeating: &texts.peer))
        row.peerResource = optional(reader.text(repeating: &texts.peerResource))
        row.size = Int(clamping: reader.integer(UInt64.self))
        row.seen = Timestamp(nanoseconds: reader.integer())
        row.time = Timestamp(nanoseconds: reader.integer())
        row.sequence = reader.integer()
        row.id = optional(reader.text())
        row.originID = optional(reader.text())
        row.stanzaID = optional(reader.text())
        let key = reader.data()
        row.copyKey = key.isEmpty ? nil : key
        row.body = reader.nullableText()
        return reader.isComplete ? row : nil
    }

    /// Reads a row of sessions; nil if it is not complete.
    static func session(_ reader: inout RowBinaryReader) -> AuditSession? {
        func optional(_ text: String) -> String? { text.isEmpty ? nil : text }
        func time(_ value: Int64) -> Timestamp? { value == 0 ? nil : Timestamp(nanoseconds: value) }
        let run = reader.text()
        _ = (reader.integer(UInt64.self), reader.integer(Int64.self))
        var session = AuditSession(run: run, number: reader.integer())
        session.account = optional(reader.text())
        session.client = optional(reader.text())
        session.began = time(reader.integer())
        session.ended = time(reader.integer())
        session.cause = optional(reader.text())
        session.finding = optional(reader.text())
        session.closeReason = optional(reader.text())
        return reader.isComplete ? session : nil
    }

    /// Reads a row of gaps; nil if it is not complete.
    static func gap(_ reader: inout RowBinaryReader) -> StoreGap? {
        let run = reader.text()
        let (first, last, stanzas) = (
            reader.integer(UInt64.self), reader.integer(UInt64.self), reader.integer(UInt64.self)
        )
        let reason = reader.text()
        let time = Timestamp(nanoseconds: reader.integer())
        guard reader.isComplete else { return nil }
        return StoreGap(run: run, first: first, last: last, stanzas: stanzas, reason: reason, time: time)
    }
}
