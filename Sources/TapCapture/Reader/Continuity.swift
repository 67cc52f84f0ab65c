package import TapRecord

/// Identifies a log. A run may have several logs, which may hold different records.
package struct LogIdentity: Hashable, Sendable {
    private let run: String
    private let level: String
    private let filter: String?
    private let session: UInt64?
    private let trigger: RecordHeader.Trigger?

    /// Creates the identity of the log to which a header belongs.
    package init(_ header: RecordHeader) {
        run = header.run
        level = header.level
        filter = header.filter
        session = header.session
        trigger = header.trigger
    }
}

/// Counts the records of each log of a run, and compares the counts with those in its headers.
struct Continuity {
    private var counts: [LogIdentity: UInt64] = [:]
    private var current: LogIdentity?
    /// Records since the last header.
    private var count: UInt64 = 0

    /// Counts lines after the last header. Damaged lines count too: they are reported separately.
    mutating func countLines(_ lines: UInt64 = 1) { count &+= lines }

    /// Switches to another log. Its header must have been read before; later records are counted for it.
    mutating func select(_ log: LogIdentity) {
        if let current { counts[current, default: 0] &+= count }
        count = 0
        current = log
    }

    /// The number of records of the current log that were counted before it was last selected.
    var before: UInt64 { current.flatMap { counts[$0] } ?? 0 }

    /// Begins counting after a header.
    ///
    /// - Returns: The number of records that are missing before the header; 0 if the header has no count.
    mutating func missing(before header: RecordHeader) -> UInt64 {
        let log = LogIdentity(header)
        select(log)
        guard let before = header.recordsBefore else { return 0 }
        let found = counts[log] ?? 0
        counts[log] = before
        return before > found ? before - found : 0
    }
}

extension [RecordHeader] {
    /// The indices of the headers in the order in which to read their files: by time, but files of one log by the
    /// number of earlier records, because a clock can be set back.
    var readingOrder: [Int] {
        let byTime = indices.sorted { self[$0].time < self[$1].time }
        var members: [LogIdentity: [Int]] = [:]
        for index in byTime where self[index].recordsBefore != nil {
            members[LogIdentity(self[index]), default: []].append(index)
        }
        // Reversed, because `popLast()` takes them from the end.
        for (log, places) in members {
            members[log] = places.sorted { (self[$0].recordsBefore ?? 0) < (self[$1].recordsBefore ?? 0) }.reversed()
        }
        return byTime.map { index in
            guard self[index].recordsBefore != nil else { return index }
            return members[LogIdentity(self[index])]?.popLast() ?? index
        }
    }
}
