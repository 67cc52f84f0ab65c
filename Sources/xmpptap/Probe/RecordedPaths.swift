internal import TapCapture
internal import TapDiagnosis
internal import TapRecord

/// The timelines of the sessions in a file, to hold one of them against a probe's.
struct RecordedPaths {
    /// One session.
    struct Path {
        let number: UInt64
        var who: String?
        var steps: [Record] = []
        var isReady = false
        var diagnosis: LoginDiagnosis?
    }

    private struct Key: Hashable {
        let run: String
        let number: UInt64
    }

    private var run = ""
    private var order: [Key] = []
    private var paths: [Key: Path] = [:]

    /// Whether every line of the files could be read.
    private(set) var isWhole = true

    /// Reads files; what is damaged is told and passed over.
    init(_ files: [String]) throws(Failure) {
        isWhole = try StoredRecords.read(files) { entry in
            switch entry {
            case .header(let header): run = header.run
            case .record(let line): note(line.record)
            case .damage, .gap: break
            }
        }
    }

    private mutating func note(_ record: Record) {
        guard record.session > 0 else { return }
        let key = Key(run: run, number: record.session)
        if paths[key] == nil {
            order.append(key)
            paths[key] = Path(number: record.session)
        }
        if let who = record.jid ?? record.user { paths[key]?.who = who }
        switch record.code {
        case LoginStep.code: paths[key]?.steps.append(record)
        case Record.Code.sessionReady: paths[key]?.isReady = true
        case Record.Code.loginFailed: paths[key]?.diagnosis = LoginDiagnosis(record)
        default: break
        }
    }

    /// The session that was asked for by its number; else the first that failed, else the first.
    func path(_ number: UInt64?) -> Path? {
        let all = order.compactMap { paths[$0] }.filter { !$0.steps.isEmpty }
        if let number { return all.first { $0.number == number } }
        return all.first { !$0.isReady } ?? all.first
    }

    /// How many runs have a session of that number.
    func count(of number: UInt64) -> Int { order.count { $0.number == number } }
}
