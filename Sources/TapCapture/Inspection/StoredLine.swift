internal import TapRecord

/// A line of a ``RecordTable``.
enum StoredLine {
    case record(RecordLine)
    case header(RecordHeader)
    /// A line that is not in a file, but reports on it.
    case remark(Remark)

    /// A remark on records.
    struct Remark {
        /// The kind of a remark. The raw value is the kind of its row.
        enum Kind: String {
            /// About all records.
            case header
            /// A line could not be read.
            case damage
            /// Records are missing here.
            case gap
        }

        let kind: Kind
        /// The remark, as a sentence.
        let text: String
        /// The time, if it is known.
        let time: Timestamp?

        init(_ kind: Kind, _ text: String, at time: Timestamp? = nil) {
            self.kind = kind
            self.text = text
            self.time = time
        }

        /// Reads a remark; nil if the line is not one.
        fileprivate init?(_ line: RawSpan) {
            guard let value = try? JSONValue(line), value.fields.first?.name == "remark",
                let text = value["remark"]?.text
            else { return nil }
            self.init(
                value["kind"]?.text.flatMap(Kind.init) ?? .damage,
                text,
                at: value["time"]?.text.flatMap { Timestamp(rfc3339: $0) }
            )
        }

        /// How the line of a remark begins.
        fileprivate static let beginning = Array("{\"remark\":".utf8)

        /// Appends the remark as a line.
        func append(to line: inout LineBuffer) {
            line.openObject()
            line.field("remark", text)
            line.field("kind", kind.rawValue)
            if let time { line.field("time", time.text) }
            line.closeObject()
            line.endLine()
        }
    }

    /// Reads the line at a position; its session has the number that is unique in the table.
    init(_ line: RawSpan?, _ runs: borrowing TableRuns, at position: Int) {
        guard let line else {
            self = .remark(Remark(.damage, "the file has become shorter: this line is missing"))
            return
        }
        do throws(RecordLineError) {
            let record = try RecordLine(json: line)
            let run = runs.run(at: position)
            self = .record(run > 1 ? record.inSession(TableRuns.session(record.record.session, of: run)) : record)
        } catch {
            if let header = try? RecordHeader(json: line) {
                self = .header(header)
            } else if let remark = Remark(line) {
                self = .remark(remark)
            } else {
                self = .remark(Remark(.damage, "damaged line: \(error)"))
            }
        }
    }

    /// Returns whether a line begins like the line of a remark. Only such a line has to be parsed.
    static func canBeRemark(_ line: RawSpan) -> Bool {
        line.withUnsafeBytes { $0.starts(with: Remark.beginning) }
    }

    /// Appends the JSON object of a line without a newline; appends nothing if the line is not JSON.
    ///
    /// - Returns: Whether the line is JSON.
    static func append(_ line: RawSpan, _ runs: borrowing TableRuns, at position: Int, to output: inout LineBuffer)
        -> Bool
    {
        if runs.run(at: position) > 1, case .record(let record) = StoredLine(line, runs, at: position) {
            var form = JSONForm()
            var buffer = LineBuffer()
            form.append(record, [.content, .chunks], to: &buffer)
            buffer.truncate(to: buffer.count - 1)
            output.append(bytes: buffer.span)
            return true
        }
        guard (try? JSONValue(line)) != nil else { return false }
        output.append(bytes: line.extracting(..<lengthWithoutNewline(line)))
        return true
    }

    /// Returns the length of a line without the newlines at its end.
    static func lengthWithoutNewline(_ line: RawSpan) -> Int {
        line.withUnsafeBytes { bytes in
            var end = bytes.count
            while end > 0, bytes[end - 1] == 0x0A || bytes[end - 1] == 0x0D { end -= 1 }
            return end
        }
    }
}

extension StoredLine {
    /// The remark that a list shows for a header.
    private static func remark(_ header: RecordHeader) -> Remark {
        let state = header.isComplete ? "complete" : "not complete"
        return Remark(
            .header,
            "\(header.tool) opened the file; level \(header.level), \(state), redaction \(header.redaction)",
            at: header.time
        )
    }

    /// The line as a remark; nil for a record.
    fileprivate var remark: Remark? {
        switch self {
        case .record: nil
        case .header(let header): Self.remark(header)
        case .remark(let remark): remark
        }
    }

    /// Returns the row of the line.
    func row(at position: Int) -> RecordRow {
        if case .record(let line) = self { return RecordRow(line.record, line.content.span, at: position) }
        let remark = remark ?? Remark(.damage, "")
        return RecordRow(remark.kind.rawValue, remark.text, at: position, remark.kind.level, time: remark.time)
    }
}

extension StoredLine.Remark.Kind {
    /// The kind as a literal.
    fileprivate var literal: StaticString {
        switch self {
        case .header: "header"
        case .damage: "damage"
        case .gap: "gap"
        }
    }

    fileprivate var level: Level { self == .header ? .info : .warn }
}

extension RecordRows {
    /// Adds the row of a line.
    mutating func add(_ line: StoredLine, at position: Int) {
        if case .record(let line) = line { return add(line.record, line.content.span, at: position) }
        guard let remark = line.remark else { return }
        add(remark.kind.literal, remark.text, at: position, remark.kind.level, time: remark.time)
    }
}

extension DamagedLine {
    /// The damage with the name of the file only: its folder is not for readers of a page.
    var withFileName: DamagedLine { DamagedLine(reason: reason, path: FileName.last(of: path), line: line) }
}

extension MissingRecords {
    /// The gap with the name of the file only: its folder is not for readers of a page.
    var withFileName: MissingRecords {
        MissingRecords(count: count, path: FileName.last(of: path), line: line)
    }
}
