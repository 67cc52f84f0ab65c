internal import ArgumentParser
internal import TapDiagnosis

/// How `explain` tells of sessions.
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

    /// The form that was typed.
    static func typed(_ text: String) throws -> ExplainForm {
        guard let form = ExplainForm(rawValue: text) else { throw ValidationError("write text, svg or html") }
        return form
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

    /// The document.
    func drawn() -> String { DiagramForm(document).draw(diagrams.all, note: remark) }
}
