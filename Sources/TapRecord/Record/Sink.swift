/// Something that takes every record of a run: a log, a capture, a store, a live view.
///
/// A sink cannot tell which source a record came from. It is called from any event loop, often from several at once,
/// and must not block: what is slow happens elsewhere, and when there is no room left the sink says so by
/// ``isCongested``, upon which the sources stop reading until it is false again.
public protocol Sink: AnyObject, Sendable {
    /// The least severe level of records this sink wants; records beyond it need not be offered. After a change
    /// ``RecordDispatcher/updateLevels()`` is to be called.
    var level: Level { get }

    /// Takes one record. `content` holds the record's texts and is gone after the call.
    func write(_ record: borrowing RedactedRecord, content: Span<UInt8>)

    /// Whether the sink has no room for more at the moment.
    var isCongested: Bool { get }
}
