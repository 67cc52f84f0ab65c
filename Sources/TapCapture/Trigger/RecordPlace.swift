internal import TapRecord

/// The position of a record in its run.
struct RecordPlace: Hashable {
    var sequence: UInt64
    var time: Timestamp
    /// The time in nanoseconds since the run began.
    var monotonic: Int64

    init(_ record: borrowing Record) {
        sequence = record.sequence
        time = record.time
        monotonic = record.monotonic
    }
}

/// A note in a capture about records that it omits, with the position of the last omitted record.
enum TriggerNote: Hashable {
    /// Records of a session were omitted, between two written records or after the last one.
    case omitted(session: UInt64, records: UInt64, last: RecordPlace)
    /// All records of the sessions without a match were omitted.
    case unmatched(sessions: UInt64, records: UInt64, last: RecordPlace)
    /// The capture has ended: the record at this position and all later records are omitted.
    case ended(matches: Int, RecordPlace)

    /// The position of the note in the capture.
    var place: RecordPlace {
        switch self {
        case .omitted(_, _, let last), .unmatched(_, _, let last), .ended(_, let last): last
        }
    }
}
