internal import TapCapture
internal import TapDiagnosis

/// The output formats of `explain`.
enum ExplainForm: String, CaseIterable {
    case text
    case svg
    case html

    /// The document format; nil for text.
    var document: DiagramForm.Document? {
        switch self {
        case .text: nil
        case .svg: .svg
        case .html: .html
        }
    }
}

/// The sessions of a recording as sequence diagrams.
struct DiagramReport {
    private let document: DiagramForm.Document
    private var diagrams: SequenceDiagrams

    /// Creates a diagram of these sessions; if none is given, of as many as fit.
    init(_ document: DiagramForm.Document, of wanted: Set<UInt64>) {
        self.document = document
        diagrams = SequenceDiagrams(of: wanted, for: document)
    }

    /// The parts that the diagram omits; nil if it is complete.
    var remark: String? {
        var remarks: [String] = []
        let count = diagrams.all.count
        if diagrams.omitted > 0 {
            remarks.append("\(count) of \(count + diagrams.omitted) sessions are drawn; choose others with --session")
        }
        if !diagrams.cut.isEmpty {
            let room = SequenceDiagrams.roomOnPage >> 20
            var lack: [String] = []
            if diagrams.cut.items > 0 { lack.append("the XML of \(diagrams.cut.items) items") }
            if diagrams.cut.rows > 0 { lack.append("\(diagrams.cut.rows) rows after logins") }
            remarks.append(
                "without \(lack.joined(separator: " and ")), which would make the page larger than \(room) MiB; see a "
                    + "session whole with --session"
            )
        }
        return remarks.isEmpty ? nil : remarks.joined(separator: "; ")
    }

    /// Adds an entry of a recording.
    mutating func add(_ entry: RecordReader.Entry) {
        switch entry {
        case .header(let header): diagrams.add(header)
        case .record(let line): diagrams.add(line)
        case .damage, .gap: break
        }
    }

    func drawn() -> String { DiagramForm(document, zone: .system).draw(diagrams.all, note: remark) }
}
