/// Which sessions and runs the files hold, for those who ask for particular sessions.
struct SessionsFound {
    private var numbers: Set<UInt64> = []
    private var last: UInt64 = 0
    private var runs: Set<String> = []

    /// Notes the session of a record; 0 is none.
    mutating func note(session: UInt64) {
        // A session has many records in a row.
        guard session != last, session != 0 else { return }
        last = session
        numbers.insert(session)
    }

    /// Notes the run of a header.
    mutating func note(run: String) { runs.insert(run) }

    /// Whether any of these sessions is not there.
    func lacksAny(of wanted: Set<UInt64>) -> Bool { !wanted.isSubset(of: numbers) }

    /// What those who asked for these sessions should know; nil where they got what they asked for.
    func remark(on wanted: Set<UInt64>) -> String? {
        guard !wanted.isEmpty else { return nil }
        let missing = wanted.subtracting(numbers).sorted()
        guard missing.isEmpty else {
            let names = missing.map(String.init).joined(separator: ", ")
            guard let first = numbers.min(), let last = numbers.max() else {
                return "--session \(names): there are no sessions"
            }
            let there = first == last ? "the only one is \(first)" : "the first is \(first), the last \(last)"
            return "--session \(names): there is no such session; \(there)"
        }
        guard runs.count > 1 else { return nil }
        return "--session: \(runs.count) runs of xmpptap are there, and each counts its sessions from 1; all are shown "
            + "that have the number"
    }
}
