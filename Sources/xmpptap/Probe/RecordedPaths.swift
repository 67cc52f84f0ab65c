internal import TapCapture
internal import TapDiagnosis
internal import TapRecord

/// The timelines of the sessions in a file, to hold one of them against a probe's.
struct RecordedPaths {
    private var timelines = SessionTimelines()

    /// Whether every line of the files could be read.
    private(set) var isWhole = true

    /// Reads files; what is damaged is told and passed over.
    init(_ files: [String]) throws(Failure) {
        isWhole = try StoredRecords.read(files) { entry in
            switch entry {
            case .header(let header): timelines.note(header)
            case .record(let line): timelines.note(line.record)
            case .damage, .gap: break
            }
        }
    }

    /// The session that was asked for by its number; else the first that failed, else the first.
    func path(_ number: UInt64?) -> SessionTimelines.Timeline? {
        let all = timelines.all.filter { !$0.steps.isEmpty }
        if let number { return all.first { $0.number == number } }
        return all.first { !$0.isReady } ?? all.first
    }

    /// How many runs have a session of that number.
    func count(of number: UInt64) -> Int { timelines.all.count { $0.number == number } }
}
