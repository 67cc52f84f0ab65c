internal import TapCapture
internal import TapDiagnosis

/// The output formats of `explain`.
enum ExplainForm: String, CaseIterable {
    case text
    case svg
    case html
}

/// The sessions of a recording as sequence diagrams.
struct DiagramReport {
    private var diagrams: SequenceDiagrams

    /// Creates a diagram of these sessions; if none is given, of as many as fit.
    init(of wanted: Set<UInt64>) { diagrams = SequenceDiagrams(of: wanted) }

    /// The sessions that are not drawn; nil if all are.
    var remark: String? {
        let count = diagrams.all.count
        guard diagrams.omitted > 0 else { return nil }
        return "\(count) of \(count + diagrams.omitted) sessions are drawn; choose others with --session"
    }

    /// Adds an entry of a recording.
    mutating func add(_ entry: RecordReader.Entry) {
        switch entry {
        case .header(let header): diagrams.add(header)
        case .record(let line): diagrams.add(line)
        case .damage, .gap: break
        }
    }

    func drawn() -> String { DiagramForm(zone: .system).draw(diagrams.all, note: remark) }
}
