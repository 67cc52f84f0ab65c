package import TapRecord

/// Numbers the runs in files from 1, in the order of their first headers. Parts of different runs may alternate.
package struct RunNumbers: Sendable {
    /// A session of a run; each run counts its sessions from 1.
    package struct Session: Hashable {
        package let run: Int
        package let number: UInt64
    }

    /// The number of the current run; 0 before the first header.
    private(set) var current = 0
    private var numbers: [String: Int] = [:]

    package init() {}

    var count: Int { numbers.count }

    /// Assigns the following records to the run of the header.
    package mutating func add(_ header: RecordHeader) {
        current = numbers[header.run, default: numbers.count + 1]
        numbers[header.run] = current
    }

    /// Returns the session of a record of the current run.
    package func session(of record: Record) -> Session { Session(run: current, number: record.session) }
}
