/// The number of a stanza's row: the day on which it was seen, its run, and the record's number in the run.
///
/// Rows are thus stored in the order of days, so that a period is a range of numbers and needs no index. A run with more records than
/// the number has room for is several runs in the store.
struct RowNumber {
    private static let (runBits, sequenceBits) = (16, 32)
    private static let dayShift = runBits + sequenceBits
    private static let day: Int64 = 86_400_000_000_000
    private static let lastDay: Int64 = 1 << 15 - 1

    /// The more groups, the fewer words of other accounts are read, and the more bytes an entry of the index has.
    private static let wordGroups: Int64 = 16

    /// The number of runs that a store can have.
    static let runLimit: Int64 = 1 << runBits

    let value: Int64

    init(_ value: Int64) { self.value = value }

    /// - Parameters:
    ///   - seen: The time at which the stanza was seen, in nanoseconds.
    ///   - run: The number of the run in the store, less than ``runLimit``.
    init(seen: Int64, run: Int64, sequence: UInt64) {
        let record = Int64(sequence & (1 << Self.sequenceBits - 1))
        value = Self.first(onDayOf: seen).value | run << Self.sequenceBits | record
    }

    /// The first number on the day of a time.
    static func first(onDayOf seen: Int64) -> RowNumber {
        RowNumber(min(max(0, seen / day), lastDay) << dayShift)
    }

    /// The first number on the day after that of a time; at the end of all days, the greatest number.
    static func first(afterDayOf seen: Int64) -> RowNumber {
        first(onDayOf: seen).firstOfNextDay
    }

    /// The first number of the next run on the same day.
    var nextRun: RowNumber {
        let (next, isLast) = (value | (1 << Self.sequenceBits - 1)).addingReportingOverflow(1)
        return RowNumber(isLast ? .max : next)
    }

    var firstOfDay: RowNumber { RowNumber((value >> Self.dayShift) << Self.dayShift) }

    /// The first number of the next day; after the last day, the greatest number.
    var firstOfNextDay: RowNumber {
        let (next, isLast) = firstOfDay.value.addingReportingOverflow(1 << Self.dayShift)
        return RowNumber(isLast ? .max : next)
    }

    /// The time at which the day begins, in nanoseconds. The first day has all earlier stanzas, too.
    var dayStart: Int64 {
        let day = value >> Self.dayShift
        return day <= 0 ? .min : day.multipliedReportingOverflow(by: Self.day).partialValue
    }

    var run: Int64 { value >> Self.sequenceBits & (1 << Self.runBits - 1) }

    /// The number of the record in its run, of which `group` is the ``RowNumber/group(of:)``.
    func sequence(group: Int64) -> UInt64 {
        UInt64(truncatingIfNeeded: group) << Self.sequenceBits | UInt64(truncatingIfNeeded: value)
            & (1 << Self.sequenceBits - 1)
    }

    /// The number of the row's words in the index of its part, which has rows of one day.
    ///
    /// Accounts are divided into ``wordGroups``, whose words follow each other: a search for an account reads those of its group.
    func words(of account: Int64) -> Int64 {
        Self.firstWords(of: account) | value & (1 << Self.dayShift - 1)
    }

    /// The first number of words in the group of an account, and the greatest.
    static func wordRange(of account: Int64) -> ClosedRange<Int64> {
        let first = firstWords(of: account)
        return first...(first | (1 << dayShift - 1))
    }

    private static func firstWords(of account: Int64) -> Int64 { (account & (wordGroups - 1)) << dayShift }

    /// The expression of a row's number.
    ///
    /// - Parameter words: The expression of the number of its words.
    static func expression(words: String, onDayOf seen: Int64) -> String {
        "\(first(onDayOf: seen).value) | (\(words) & \(Int64(1) << dayShift - 1))"
    }

    /// The part of a record's number that the row's number does not contain.
    static func group(of sequence: UInt64) -> Int64 { Int64(sequence >> sequenceBits) }
}
