internal import TapRecord

/// A line of a ``RecordTable``.
enum StoredLine {
    case record(RecordLine)
    case header(RecordHeader)
    /// Lines or records that are missing, or could not be read, as a sentence.
    case damage(String)

    /// The field of a line that is not in a file, but reports on it.
    static let remark = "remark"

    init(_ line: RawSpan) {
        do throws(RecordLineError) {
            self = .record(try RecordLine(json: line))
        } catch {
            if let header = try? RecordHeader(json: line) {
                self = .header(header)
                return
            }
            if let value = try? JSONValue(line), case .object(let fields) = value,
                let field = fields.first, field.name == Self.remark, case .text(let text) = field.value
            {
                self = .damage(text)
                return
            }
            self = .damage("damaged line: \(error)")
        }
    }
}

extension RecordRows {
    /// Adds the row of a line.
    mutating func add(_ line: RawSpan, at position: Int) {
        switch StoredLine(line) {
        case .record(let line): add(line.record, line.content.span, at: position)
        case .header(let header):
            let state = header.isComplete ? "complete" : "not complete"
            add(
                "header",
                "\(header.tool) opened the file; level \(header.level), \(state), redaction \(header.redaction)",
                at: position,
                .info,
                time: header.time
            )
        case .damage(let text): add("damage", text, at: position, .warn)
        }
    }
}
