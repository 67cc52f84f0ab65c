/// All sinks of a run: hands each record to those that want it.
public struct RecordDispatcher: Sendable {
    /// The least severe level that any sink wants; a record beyond it need not be made.
    public let level: Level

    private let sinks: [(level: Level, sink: any Sink)]

    /// A recorder for these sinks; with none every record is dropped.
    public init(_ sinks: [any Sink]) {
        self.sinks = sinks.map { ($0.level, $0) }
        level = self.sinks.map(\.level).max() ?? .off
    }

    /// Hands over a record with its texts. Does not block.
    public func write(_ record: borrowing Record, content: Span<UInt8>) {
        for entry in sinks where record.level <= entry.level { entry.sink.write(record, content: content) }
    }

    /// Whether some sink has no room for more, so that sources should stop reading.
    public var isCongested: Bool {
        for entry in sinks where entry.sink.isCongested { return true }
        return false
    }
}
