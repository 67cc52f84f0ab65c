internal import TapDiagnosis

/// The forms in which `explain` prints sessions.
enum ExplainForm: String, CaseIterable {
    case text
    case svg
    case html

    /// What is drawn; nil is nothing.
    var document: DiagramForm.Document? {
        switch self {
        case .text: nil
        case .svg: .svg
        case .html: .html
        }
    }
}

/// The sessions of a file, drawn.
struct DiagramReport {
    let document: DiagramForm.Document
    var diagrams: SequenceDiagrams

    /// What is missing; nil where all sessions are drawn.
    var remark: String? {
        guard diagrams.omitted > 0 else { return nil }
        let count = diagrams.all.count
        return "\(count) of \(count + diagrams.omitted) sessions are drawn; choose others with --session"
    }

    func drawn() -> String { DiagramForm(document).draw(diagrams.all, note: remark) }
}
