internal import ArgumentParser
internal import TapDiagnosis
internal import TapRecord

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

/// The sessions of a file as diagrams, in the order in which they are first told of.
struct DiagramReport {
    /// Sessions that are drawn where none are named: as many as a page can show.
    static let most = 50

    private struct Key: Hashable {
        let run: String
        let number: UInt64
    }

    private let document: DiagramForm.Document
    private let wanted: Set<UInt64>
    private var run = ""
    private var order: [Key] = []
    private var diagrams: [Key: SequenceDiagram] = [:]
    /// The sessions that are not drawn.
    private var others: Set<Key> = []

    /// Diagrams of these sessions; of none is of all.
    init(_ document: DiagramForm.Document, of wanted: Set<UInt64>) {
        self.document = document
        self.wanted = wanted
    }

    /// Takes a header: each run counts its sessions from 1.
    mutating func note(_ header: RecordHeader) { run = header.run }

    /// Takes a record.
    mutating func note(_ line: RecordLine) {
        let number = line.record.session
        guard number > 0, wanted.isEmpty || wanted.contains(number) else { return }
        let key = Key(run: run, number: number)
        if diagrams[key] == nil {
            guard order.count < max(Self.most, wanted.count) else {
                others.insert(key)
                return
            }
            order.append(key)
        }
        diagrams[key, default: SequenceDiagram(session: number)].note(line.record, content: line.content.span)
    }

    /// What is missing; nil where all sessions are drawn.
    var remark: String? {
        guard !others.isEmpty else { return nil }
        return "\(order.count) of \(order.count + others.count) sessions are drawn; choose others with --session"
    }

    /// The document.
    func drawn() -> String { DiagramForm(document).draw(order.compactMap { diagrams[$0] }, note: remark) }
}
