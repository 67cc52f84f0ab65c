public import TapRecord

/// The sessions in files as diagrams, in the order of their first records.
public struct SequenceDiagrams: Sendable {
    /// The most sessions that are drawn where none are named.
    public static let most = 50

    private let wanted: Set<UInt64>
    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]
    /// The sessions that are not drawn.
    private var others: Set<RunNumbers.Session> = []

    /// The diagrams.
    public private(set) var all: [SequenceDiagram] = []

    /// How many sessions are not drawn.
    public var omitted: Int { others.count }

    /// Diagrams of the sessions of these numbers; of none is of the first ``most``.
    public init(of wanted: Set<UInt64>) { self.wanted = wanted }

    /// Takes a header.
    public mutating func note(_ header: RecordHeader) { runs.note(header) }

    /// Takes a record.
    public mutating func note(_ line: RecordLine) {
        let number = line.record.session
        guard number > 0, wanted.isEmpty || wanted.contains(number) else { return }
        let key = runs.session(of: line.record)
        let place = places[key, default: all.count]
        if place == all.count {
            guard place < max(Self.most, wanted.count) else {
                others.insert(key)
                return
            }
            places[key] = place
            all.append(SequenceDiagram(session: number))
        }
        all[place].note(line.record, content: line.content.span)
    }
}
