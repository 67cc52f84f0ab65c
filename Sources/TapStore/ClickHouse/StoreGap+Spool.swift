internal import TapCapture
internal import TapRecord

extension StoreGap {
    /// The gap of a segment that was lost; nil if it had no rows.
    init?(_ segment: SpoolSegment, _ reason: String) {
        guard let span = segment.span, let time = segment.time else { return nil }
        self.init(
            run: segment.folder.about.run,
            first: span.lowerBound,
            last: span.upperBound,
            stanzas: UInt64(segment.stanzas),
            reason: reason,
            time: time
        )
    }

    /// Returns the gap of a segment that is damaged; nil if it has lost nothing.
    ///
    /// - Parameter contents: What could be read of it.
    static func ofDamage(_ segment: SpoolSegment, _ contents: SpoolSegment.Contents) -> StoreGap? {
        guard contents.isDamaged else { return nil }
        var lost = SpoolSegment(segment.folder, shard: segment.shard, number: segment.number)
        for facts in contents.lost { lost.add(facts) }
        let reason = "a file of the spool was damaged"
        // Which rows were in a block without a header is not known.
        return StoreGap(lost, reason)
            ?? StoreGap(
                run: segment.folder.about.run,
                first: 0,
                last: .max,
                stanzas: 0,
                reason: reason,
                time: segment.time ?? Timestamp(nanoseconds: 0)
            )
    }

    /// The row as a gzip member.
    var member: [UInt8] {
        var row = RowBinaryWriter()
        ClickHouseSchema.append(self, to: &row)
        let compressor = Compressor(.gzip, isFast: true)
        return (compressor?.compress(row.bytes.span.bytes) ?? []) + (compressor?.finish() ?? [])
    }

    /// The row as a block of a spool.
    var block: (facts: SpoolBlock.Facts, bytes: [UInt8]) {
        let facts = SpoolBlock.Facts(table: .gap, rows: 1, first: first, last: last, time: time)
        return (facts, SpoolBlock.encode(facts, member))
    }
}
