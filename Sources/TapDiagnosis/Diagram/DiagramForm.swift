package import TapRecord

/// Draws sequence diagrams as an SVG image (SVG 1.1).
package struct DiagramForm: Sendable {
    private let zone: LocalZone

    /// Creates a form that shows times in this zone.
    package init(zone: LocalZone = .utc) { self.zone = zone }

    /// Returns an image with all diagrams below each other.
    ///
    /// - Parameter note: A line above and below the diagrams, such as the number of sessions that are not drawn
    ///   (default: none).
    package func draw(_ diagrams: [SequenceDiagram], note: String? = nil) -> String {
        var canvas = DiagramCanvas(zone: zone)
        if let note { canvas.draw(note: note) }
        for diagram in diagrams { canvas.draw(diagram) }
        if let note { canvas.draw(note: note) }
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(canvas.finish())\n"
    }
}

/// An SVG image to which diagrams are added from top to bottom.
struct DiagramCanvas: ~Copyable {
    private static let width = 1200
    private static let step = 22
    /// Maximum number of characters of a label between the client's lane and the server's.
    private static let labelWidth = 112
    /// Maximum number of characters of the mark after a label.
    private static let markWidth = 40
    /// Maximum number of characters of a line over the whole width.
    private static let lineWidth = 170

    private var body = ""
    private var y = 0
    private var timestamps: TimestampWriter
    /// The day of the last row.
    private var day: TimestampWriter.Day?

    init(zone: LocalZone) { timestamps = TimestampWriter(zone: zone) }

    func finish() -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="\(Self.width)" height="\(y + 10)" \
        viewBox="0 0 \(Self.width) \(y + 10)" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11">
        <style>
        .paper { fill: #ffffff } text { fill: #1d2733 } .faint, .skip { fill: #6b7785 } .lane { stroke: #c3ccd6 }
        .item { stroke: #2f6db5; fill: none } .head { fill: #2f6db5 } .tap { stroke: #b46a00; fill: none }
        .taphead { fill: #b46a00 } .failed { stroke: #c22f2f; fill: none } .failedhead, .bad { fill: #c22f2f; font-weight: bold }
        .ok { fill: #2c8a4b } .mark { fill: #b46a00 } .box { fill: #fbecec; stroke: #c22f2f }
        .inferred { stroke-dasharray: 4 3 } .label { paint-order: stroke; stroke: #ffffff; stroke-width: 3px }
        @media (prefers-color-scheme: dark) {
        .paper { fill: #14191f } .label { stroke: #14191f } text { fill: #d7dee6 } .faint, .skip { fill: #8b97a5 } .lane { stroke: #3b4652 }
        .box { fill: #3a1d1f } .bad { fill: #ff8b8b } .ok { fill: #6fce8d } .mark { fill: #ffbf5e } }
        </style>
        <rect class="paper" width="100%" height="100%"/>
        \(body)</svg>
        """
    }

    /// Draws a line of text about the whole image.
    mutating func draw(note: String) {
        y += 30
        text(20, note, class: "mark", weight: "bold")
    }

    mutating func draw(_ diagram: SequenceDiagram) {
        y += 30
        day = nil
        text(20, "session \(diagram.session), \(diagram.who)", weight: "bold", size: 14)
        if let began = diagram.began, let label = beginDay(of: began) {
            text(Self.width - 20, label, class: "faint", anchor: "end")
        }
        y += 26
        let lanes: [SequenceDiagram.Lane] = diagram.hasTap ? [.client, .tap, .server] : [.client, .server]
        for lane in lanes {
            text(x(lane), lane.label, anchor: "middle", weight: "bold")
        }
        y += 8
        let top = y
        y += 14
        // The lanes are inserted before the rows, so that text covers them.
        let before = body
        body = ""
        for part in diagram.parts {
            guard part.isFolded else {
                for row in diagram.rows[part.rows] { draw(row) }
                continue
            }
            text(20, time(diagram.rows[part.rows.lowerBound].time), class: "faint")
            text(x(.client) + 12, DiagramText.fold(part.rows.count), class: "faint")
            y += Self.step
        }
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

    /// Returns the day of a time, and the zone, if the day differs from that of the last row.
    private mutating func beginDay(of time: Timestamp) -> String? {
        guard let day = timestamps.day(of: time), day != self.day else { return nil }
        self.day = day
        return LineBuffer.text { timestamps.appendDay(of: time, to: &$0) }
    }

    private mutating func draw(_ row: SequenceDiagram.Row) {
        if let label = beginDay(of: row.time) {
            text(20, label, class: "faint", weight: "bold")
            y += Self.step
        }
        text(20, time(row.time), class: "faint")
        switch row.content {
        case .item(let item): draw(item)
        case .loginStep(let result, let label):
            let (sign, style) = DiagramText.sign(result)
            text(110, "\(sign) \(label)", limit: 32, class: style, weight: style == "bad" ? "bold" : nil)
        case .remark(let level, let label):
            text(
                x(.client) + 12,
                label,
                limit: Self.labelWidth,
                class: level <= .error ? "bad" : level == .warn ? "mark" : "faint",
                weight: level <= .warn ? "bold" : nil,
                title: label
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
        let mark = item.mark.map { cut(LineBuffer.escaped($0), to: Self.markWidth) }
        let room = abs(to - from) / 7 - 3 - (mark.map { $0.count + 3 } ?? 0)
        // A label comes from the text form, which has escaped it.
        var label = DiagramText.xml(cut(DiagramText.short(item.label), to: min(room, Self.labelWidth)))
        if let mark { label += " <tspan class=\"mark\">[\(DiagramText.xml(mark))]</tspan>" }
        body +=
            "<text class=\"\(item.isFailure ? "label bad" : "label")\" x=\"\(left + 12)\" y=\"\(y)\">\(label)<title>\(DiagramText.xml(item.label))</title></text>\n"
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
        let lines = DiagramText.lines(diagnosis).flatMap { wrap($0) }
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

    /// Writes text from any source, cut to `limit` characters.
    private mutating func text(
        _ x: Int,
        _ label: String,
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
        let full = title.map { "<title>\(DiagramText.escaped($0))</title>" } ?? ""
        body += "<text \(attributes)>\(DiagramText.xml(cut(LineBuffer.escaped(label), to: limit)))\(full)</text>\n"
    }

    /// Breaks a text at spaces into lines of at most 160 characters.
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
}

extension SequenceDiagram.Lane {
    fileprivate var label: String {
        switch self {
        case .client: "client"
        case .tap: "xmpptap"
        case .server: "server"
        }
    }
}
