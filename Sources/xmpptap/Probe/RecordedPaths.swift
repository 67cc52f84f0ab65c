internal import TapCapture
internal import TapDiagnosis
internal import TapRecord

/// The login steps of the sessions in a file, to compare one of them with a probe's.
struct RecordedPaths {
    private var timelines = SessionTimelines()

    /// Whether every line of the files could be read.
    private(set) var isWhole = true

    /// Reads files; damaged lines are reported and skipped.
    init(_ files: [String]) throws(Failure) {
        isWhole = try StoredRecords.read(files) { entry in
            switch entry {
            case .header(let header): timelines.note(header)
            case .record(let line): timelines.note(line.record)
            case .damage, .gap: break
            }
        }
    }

    /// The session with that number; without one the first that failed, otherwise the first.
    func path(_ number: UInt64?) -> SessionTimelines.Timeline? {
        let all = timelines.all.filter { !$0.steps.isEmpty }
        if let number { return all.first { $0.number == number } }
        return all.first { !$0.isReady } ?? all.first
    }

    /// The number of runs with a session of that number.
    func count(of number: UInt64) -> Int { timelines.all.count { $0.number == number } }
}
