internal import TapCapture
package import TapRecord

/// Stanzas that a store lacks, as one of its rows.
package struct StoreGap: Sendable, Hashable {
    package var run: String
    /// The lowest and the highest number of the missing records. Between them, others may be stored.
    package var first: UInt64
    package var last: UInt64
    /// The number of stanzas; 0 if it is not known.
    package var stanzas: UInt64
    package var reason: String
    /// The time at which the first one was seen.
    package var time: Timestamp

    init(run: String, first: UInt64, last: UInt64, stanzas: UInt64, reason: String, time: Timestamp) {
        (self.run, self.first, self.last) = (run, first, last)
        (self.stanzas, self.reason, self.time) = (stanzas, reason, time)
    }

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

    /// Returns gaps such that there is one for each run and reason: one gap after the other must not fill the spool.
    static func joined(_ gaps: [StoreGap]) -> [StoreGap] {
        var joined: [StoreGap] = []
        for gap in gaps {
            if let place = joined.firstIndex(where: { $0.run == gap.run && $0.reason == gap.reason }) {
                joined[place].first = min(joined[place].first, gap.first)
                joined[place].last = max(joined[place].last, gap.last)
                let (sum, isTooLarge) = joined[place].stanzas.addingReportingOverflow(gap.stanzas)
                joined[place].stanzas = isTooLarge ? .max : sum
                joined[place].time = min(joined[place].time, gap.time)
            } else {
                joined.append(gap)
            }
        }
        return joined
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
