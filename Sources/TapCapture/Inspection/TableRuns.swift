internal import TapRecord

/// The runs of a table's records, and the numbers that their sessions have in it.
///
/// Each run counts its sessions from 1. The sessions of the first run keep their numbers; those of the second run begin at
/// 20000001, of the third at 30000001: so a number belongs to one session of the table.
struct TableRuns {
    /// The distance between the first sessions of two runs.
    private static let step: UInt64 = 10_000_000
    /// Maximum number of runs; further ones are taken for the last one.
    private static let maximumCount = 100_000
    /// Maximum number of bytes of a run's identifier.
    private static let maximumName = 256

    /// Number of runs.
    var count: Int { numbers.count }
    /// The redaction policies of all headers, the weakest first.
    private(set) var policies: [RedactionPolicy] = []

    private var numbers: [String: Int] = [:]
    /// The positions from which on records belong to another run, in ascending order.
    private var starts: [(position: Int, run: Int, isComplete: Bool)] = []

    /// Assigns the records from a position on to the run of a header.
    mutating func begin(_ header: RecordHeader, at position: Int) {
        if !policies.contains(header.redaction) {
            policies.append(header.redaction)
            policies.sort { $0.strength < $1.strength }
        }
        begin(header.run, at: position, isComplete: header.isComplete)
    }

    /// Assigns the records from a position on to a run.
    mutating func begin(_ name: String, at position: Int, isComplete: Bool = false) {
        let name = name.cut(to: Self.maximumName)
        let run = numbers[name] ?? min(numbers.count + 1, Self.maximumCount)
        if numbers.count < Self.maximumCount { numbers[name] = run }
        if starts.last?.run != run || starts.last?.isComplete != isComplete {
            starts.append((position, run, isComplete))
        }
    }

    /// Returns the number of the run of a record, from 1; 0 before the first header.
    func run(at position: Int) -> Int { start(before: position)?.run ?? 0 }

    /// Returns whether a record is of a complete capture, which has the borders of reads.
    func isComplete(at position: Int) -> Bool { start(before: position)?.isComplete ?? false }

    private func start(before position: Int) -> (position: Int, run: Int, isComplete: Bool)? {
        var (low, high) = (0, starts.count)
        while low < high {
            let middle = (low + high) / 2
            if starts[middle].position <= position { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? starts[low - 1] : nil
    }

    /// Returns the number that a session of a run has in the table.
    static func session(_ number: UInt64, of run: Int) -> UInt64 {
        guard run > 1, number > 0 else { return number }
        return number &+ UInt64(run) &* step
    }

    /// Returns the number of the run of a session, from the number that it has in the table.
    static func run(of session: UInt64) -> Int { session < 2 * step ? 1 : Int(clamping: session / step) }

    /// Returns the number of a session as readers see it: 3 in the first run, 2·3 for the third session of the second
    /// run.
    static func name(of session: UInt64) -> String {
        session < 2 * step ? "\(session)" : "\(session / step)·\(session % step)"
    }

    /// Returns the number of a session within its run from the one that it has in the table.
    static func number(of session: UInt64, in run: Int) -> UInt64 {
        run > 1 && session > 0 ? session &- UInt64(run) &* step : session
    }
}

extension RedactionPolicy {
    /// Orders policies by how much they hide.
    fileprivate var strength: Int { RedactionPolicy.allCases.firstIndex(of: self) ?? 0 }
}
