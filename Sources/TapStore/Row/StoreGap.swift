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

    package init(run: String, first: UInt64, last: UInt64, stanzas: UInt64, reason: String, time: Timestamp) {
        (self.run, self.first, self.last) = (run, first, last)
        (self.stanzas, self.reason, self.time) = (stanzas, reason, time)
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
}
