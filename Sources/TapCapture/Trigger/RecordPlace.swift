internal import TapRecord

/// The place of a record in its run.
struct RecordPlace: Hashable {
    var sequence: UInt64
    var time: Timestamp
    /// Nanoseconds since the run began.
    var monotonic: Int64

    init(_ record: borrowing Record) {
        sequence = record.sequence
        time = record.time
        monotonic = record.monotonic
    }
}

/// A capture's note about the records that it has left out, with the place of the last of them.
enum TriggerNote: Hashable {
    /// So many records of a session, between two that are written or behind the last.
    case omitted(session: UInt64, records: UInt64, last: RecordPlace)
    /// So many records of sessions without a match, of which nothing is written.
    case unmatched(sessions: UInt64, records: UInt64, last: RecordPlace)
    /// This record and all that come later, after so many matches.
    case ended(matches: Int, RecordPlace)

    /// The place that the note has in the capture.
    var place: RecordPlace {
        switch self {
        case .omitted(_, _, let last), .unmatched(_, _, let last), .ended(_, let last): last
        }
    }
}
