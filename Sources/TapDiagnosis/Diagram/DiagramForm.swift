internal import TapRecord

/// Draws sequence diagrams as one SVG image, or as a page around it.
public struct DiagramForm: Sendable {
    /// What the drawing is to be.
    public enum Document: Sendable, Hashable {
        /// An image (SVG 1.1).
        case svg
        /// A page that holds the image and nothing from elsewhere.
        case html
    }

    private let document: Document

    /// A form for a document of that kind.
    public init(_ document: Document) { self.document = document }

    /// All diagrams one below the other.
    ///
    /// - Parameter note: A line above and below them, such as how many sessions are not drawn; default none.
    public func draw(_ diagrams: [SequenceDiagram], note: String? = nil) -> String {
        var canvas = DiagramCanvas()
        if let note { canvas.draw(note: note) }
        for diagram in diagrams { canvas.draw(diagram) }
        if let note { canvas.draw(note: note) }
        let image = canvas.finish()
        guard document == .html else { return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(image)\n" }
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><title>xmpptap explain</title>
            <style>html { color-scheme: light dark; } body { margin: 0; overflow-x: auto; }</style>
            </head><body>
            \(image)
            </body></html>

            """
    }
}

/// Where diagrams are drawn, from top to bottom.
struct DiagramCanvas {
    private static let width = 1200
    private static let step = 22
    /// Characters of a label that fit between the client's line and the server's.
    private static let labelWidth = 112
    /// Characters of what is said of an item behind its label.
    private static let markWidth = 40
    /// Characters of a line over the whole width.
    private static let lineWidth = 170

    private var body = ""
    private var y = 0
    private var timestamps = TimestampWriter()

    func finish() -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="\(Self.width)" height="\(y + 10)" \
        viewBox="0 0 \(Self.width) \(y + 10)" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11">
        <style>
        .paper { fill: #ffffff } text { fill: #1d2733 } .faint { fill: #6b7785 } .lane { stroke: #c3ccd6 }
        .item { stroke: #2f6db5; fill: none } .head { fill: #2f6db5 } .tap { stroke: #b46a00; fill: none }
        .taphead { fill: #b46a00 } .failed { stroke: #c22f2f; fill: none } .failedhead, .bad { fill: #c22f2f }
        .good { fill: #2c8a4b } .mark { fill: #b46a00 } .box { fill: #fbecec; stroke: #c22f2f }
        .inferred { stroke-dasharray: 4 3 } .label { paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
        @media (prefers-color-scheme: dark) {
        .paper { fill: #14191f } .label { stroke: #14191f } text { fill: #d7dee6 } .faint { fill: #8b97a5 } .lane { stroke: #3b4652 }
        .box { fill: #3a1d1f } .bad { fill: #ff8b8b } .good { fill: #6fce8d } .mark { fill: #ffbf5e } }
        </style>
        <rect class="paper" width="100%" height="100%"/>
        \(body)</svg>
        """
    }

    /// A line about the whole drawing.
    mutating func draw(note: String) {
        y += 30
        text(20, note, class: "mark", weight: "bold")
    }

    mutating func draw(_ diagram: SequenceDiagram) {
        y += 30
        text(20, "session \(diagram.session), \(diagram.who)", weight: "bold", size: 14)
        y += 26
        let lanes: [SequenceDiagram.Lane] = diagram.hasTap ? [.client, .tap, .server] : [.client, .server]
        for lane in lanes {
            text(x(lane), lane.words, anchor: "middle", weight: "bold")
        }
        y += 8
        let top = y
        y += 14
        // The lines of the three lie below what is written.
        let before = body
        body = ""
        for row in diagram.rows { draw(row) }
        if diagram.omitted > 0 {
            text(x(.client) + 12, "… and \(diagram.omitted) more", class: "faint")
            y += Self.step
        }
        var lines = ""
        for lane in lanes {
            lines += "<line class=\"lane\" x1=\"\(x(lane))\" y1=\"\(top)\" x2=\"\(x(lane))\" y2=\"\(y - 8)\"/>\n"
        }
        body = before + lines + body
        y += 8
        if let diagnosis = diagram.diagnosis { draw(diagnosis) }
        if let ending = diagram.ending {
            text(20, ending, limit: 170, class: "faint")
            y += Self.step
        }
    }

    private func x(_ lane: SequenceDiagram.Lane) -> Int {
        switch lane {
        case .client: 330
        case .tap: 750
        case .server: 1170
        }
    }

    // MARK: Rows

    private mutating func draw(_ row: SequenceDiagram.Row) {
        text(20, time(row.time), class: "faint")
        switch row.content {
        case .item(let item): draw(item)
        case .loginStep(let result, let words):
            let (sign, style) =
                switch result {
                case .ok: ("✓", "good")
                case .skipped: ("–", "faint")
                case .failed, nil: ("✗", "bad")
                }
            text(110, "\(sign) \(words)", limit: 32, class: style)
        case .remark(let level, let words):
            text(
                x(.client) + 12,
                words,
                limit: Self.labelWidth,
                class: level <= .error ? "bad" : "faint",
                title: words
            )
        }
        y += Self.step
    }

    private mutating func draw(_ item: SequenceDiagram.Item) {
        let (from, to) = (x(item.from), x(item.to))
        let sign = to > from ? 1 : -1
        let style = item.isFailure ? "failed" : item.from == .tap || item.mark != nil ? "tap" : "item"
        let line = y + 5
        let left = min(from, to)
        let mark = item.mark.map { cut(escaped($0), to: Self.markWidth) }
        let room = abs(to - from) / 7 - 3 - (mark.map { $0.count + 3 } ?? 0)
        // A label is a line of the text form, which has escaped it.
        var words = xml(cut(item.label, to: min(room, Self.labelWidth)))
        if let mark { words += " <tspan class=\"mark\">[\(xml(mark))]</tspan>" }
        body +=
            "<text class=\"label\" x=\"\(left + 12)\" y=\"\(y)\">\(words)<title>\(xml(item.label))</title></text>\n"
        let dashes = item.isInferred ? " inferred" : ""
        let end = to - 7 * sign
        body += "<line class=\"\(style)\(dashes)\" x1=\"\(from)\" y1=\"\(line)\" x2=\"\(end)\" y2=\"\(line)\"/>"
        if item.isStopped {
            body += "<text class=\"bad\" x=\"\(to)\" y=\"\(line + 4)\" text-anchor=\"middle\">✕</text>\n"
        } else {
            body +=
                "<path class=\"\(style == "item" ? "" : style)head\" d=\"M \(to) \(line) l \(-8 * sign) -4 v 8 z\"/>\n"
        }
        y += 6
    }

    private mutating func draw(_ diagnosis: LoginDiagnosis) {
        let rule = diagnosis.rule.map { " (\($0))" } ?? ""
        let blame =
            diagnosis.isProxyTheCause.map { $0 ? "; xmpptap itself is the cause" : "; xmpptap is not the cause" } ?? ""
        let lines =
            wrap("failed at \(diagnosis.loginStep.rawValue): \(diagnosis.finding)\(rule)")
            + ["side: \(diagnosis.side.rawValue)\(blame)"] + (diagnosis.advice.map { wrap("try: \($0)") } ?? [])
        let height = lines.count * 18 + 14
        body +=
            "<rect class=\"box\" x=\"14\" y=\"\(y - 4)\" width=\"\(Self.width - 28)\" height=\"\(height)\" rx=\"4\"/>\n"
        y += 14
        for (number, line) in lines.enumerated() {
            text(26, line, limit: .max, class: number == 0 ? "bad" : nil, weight: number == 0 ? "bold" : nil)
            y += 18
        }
        y += 16
    }

    // MARK: Texts

    private mutating func time(_ time: Timestamp) -> String {
        LineBuffer.text { timestamps.appendTimeOfDay(time, to: &$0) }
    }

    /// Writes a text from anywhere; of one over `limit` characters the beginning.
    private mutating func text(
        _ x: Int,
        _ words: String,
        limit: Int = Self.lineWidth,
        class name: String? = nil,
        anchor: String? = nil,
        weight: String? = nil,
        size: Int? = nil,
        title: String? = nil
    ) {
        var attributes = "x=\"\(x)\" y=\"\(y)\""
        if let name { attributes += " class=\"\(name)\"" }
        if let anchor { attributes += " text-anchor=\"\(anchor)\"" }
        if let weight { attributes += " font-weight=\"\(weight)\"" }
        if let size { attributes += " font-size=\"\(size)\"" }
        let full = title.map { "<title>\(xml(escaped($0)))</title>" } ?? ""
        body += "<text \(attributes)>\(xml(cut(escaped(words), to: limit)))\(full)</text>\n"
    }

    /// Breaks a text at spaces into lines of as many characters as fit.
    private func wrap(_ text: String) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + word.count > 160 {
                lines.append(line)
                line = "    "
            }
            line += line.isEmpty || line == "    " ? String(word) : " \(word)"
        }
        return lines + [line]
    }

    private func cut(_ text: String, to count: Int) -> String {
        text.count <= count ? text : "\(text.prefix(max(0, count - 1)))…"
    }

    /// The text as it stands in a text log: what is invisible, or turns the order of the others round, is named. Cut
    /// afterwards, so that a text has the length that is seen.
    private func escaped(_ text: String) -> String { LineBuffer.escaped(text) }

    /// An escaped text as it stands in XML; a character that XML does not have is shown as a mark.
    private func xml(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "\u{FFFE}", "\u{FFFF}": escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

extension SequenceDiagram.Lane {
    fileprivate var words: String {
        switch self {
        case .client: "client"
        case .tap: "xmpptap"
        case .server: "server"
        }
    }
}
