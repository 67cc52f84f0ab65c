internal import TapRecord

/// Sequence diagrams as an HTML page: one line for each session, which expands to the rows of its diagram.
///
/// All text is escaped when it is written. The page is well-formed XML without scripts or external resources. Collapsed
/// sessions cost no layout, so that pages with thousands of sessions load fast.
struct DiagramPage: ~Copyable {
    /// Maximum number of sessions on a page on which all sessions are expanded initially.
    private static let maximumOpen = 3
    /// Maximum number of failed sessions linked at the top.
    private static let maximumLinks = 200

    private var page = ""
    private var timestamps: TimestampWriter
    /// The day of the last row.
    private var day: TimestampWriter.Day?

    init(zone: LocalZone = .utc) { timestamps = TimestampWriter(zone: zone) }

    /// Returns the page of all diagrams, with a note above and below them.
    mutating func draw(_ diagrams: [SequenceDiagram], note: String?) -> String {
        page = """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"/><title>xmpptap explain</title>
            <style>
            \(Self.style)
            </style></head><body>

            """
        index(diagrams)
        let remark = note.map { "<p class=\"n warn\">\(DiagramText.escaped($0))</p>\n" } ?? ""
        page += remark
        for (number, diagram) in diagrams.enumerated() {
            draw(diagram, number, isOpen: diagrams.count <= Self.maximumOpen)
        }
        page += remark
        page += "</body></html>\n"
        return page
    }

    /// Writes the number of sessions and links to the failed ones.
    private mutating func index(_ diagrams: [SequenceDiagram]) {
        let failed = diagrams.indices.filter { diagrams[$0].diagnosis != nil }
        page += "<nav><b>\(diagrams.count) session\(diagrams.count == 1 ? "" : "s")</b>"
        if !failed.isEmpty {
            page += ", <b class=\"bad\">\(failed.count) failed</b>:"
            for number in failed.prefix(Self.maximumLinks) {
                page += " <a href=\"#s\(number)\">\(diagrams[number].session)</a>"
            }
            if failed.count > Self.maximumLinks { page += " …" }
        }
        page += "</nav>\n"
    }

    private mutating func draw(_ diagram: SequenceDiagram, _ number: Int, isOpen: Bool) {
        page += "<details class=\"s\" id=\"s\(number)\"\(isOpen ? " open=\"\"" : "")><summary>"
        if let began = diagram.began {
            let stamp = LineBuffer.text { timestamps.appendStamp(began, to: &$0) }
            page += "<time>\(stamp)</time>"
            day = timestamps.day(of: began)
        }
        page += "session \(diagram.session), \(DiagramText.escaped(diagram.who)) "
        if let diagnosis = diagram.diagnosis {
            let cause = "\(diagnosis.loginStep.rawValue): \(diagnosis.finding)"
            page += "<b class=\"bad\">✗ \(DiagramText.escaped(cause))</b>"
        } else if let ending = diagram.ending {
            page += "<i>\(DiagramText.escaped(ending))</i>"
        }
        page += "</summary>\n<div class=\"h\">"
        page += diagram.hasTap ? "<b>client</b><b>xmpptap</b><b>server</b>" : "<b>client</b><b>server</b>"
        page += "</div>\n<div class=\"\(diagram.hasTap ? "l" : "l two")\">\n"
        for part in diagram.parts {
            guard part.isFolded else {
                for row in diagram.rows[part.rows] { draw(row) }
                continue
            }
            page += "<details class=\"f\"><summary>"
            time(diagram.rows[part.rows.lowerBound].time)
            page += "\(DiagramText.fold(part.rows.count))</summary>\n"
            for row in diagram.rows[part.rows] { draw(row) }
            page += "</details>\n"
        }
        if diagram.omitted > 0 { page += "<p class=\"n\">… and \(diagram.omitted) more</p>\n" }
        page += "</div>\n"
        if let diagnosis = diagram.diagnosis {
            page += "<div class=\"box\">"
            for (number, line) in DiagramText.lines(diagnosis).enumerated() {
                let text = DiagramText.escaped(line)
                page += number == 0 ? "<b class=\"bad\">\(text)</b>" : "<br/>\(text)"
            }
            page += "</div>\n"
        }
        if let ending = diagram.ending { page += "<p class=\"end\">\(DiagramText.escaped(ending))</p>\n" }
        page += "</details>\n"
    }

    private mutating func draw(_ row: SequenceDiagram.Row) {
        if let day = timestamps.day(of: row.time), day != self.day {
            self.day = day
            page += "<p class=\"n\"><b>\(LineBuffer.text { timestamps.appendDay(of: row.time, to: &$0) })</b></p>\n"
        }
        switch row.content {
        case .item(let item): draw(item, row.time)
        case .loginStep(let result, let text):
            let (sign, style) = DiagramText.sign(result)
            page += "<p class=\"t \(style)\">"
            time(row.time)
            page += "\(sign) \(DiagramText.escaped(text))</p>\n"
        case .remark(let level, let text):
            page += "<p class=\"n\(level <= .error ? " bad" : level == .warn ? " warn" : "")\">"
            time(row.time)
            page += "\(DiagramText.escaped(text))</p>\n"
        }
    }

    private mutating func draw(_ item: SequenceDiagram.Item, _ at: Timestamp) {
        var style = item.to == .client || item.to == .tap && item.from == .server ? "a r" : "a"
        if item.from == .client && item.to == .tap || item.from == .tap && item.to == .client { style += " w" }
        if item.from == .server && item.to == .tap || item.from == .tap && item.to == .server { style += " e" }
        if item.isFailure { style += " bad" } else if item.from == .tap || item.mark != nil { style += " tap" }
        if item.isInferred { style += " inferred" }
        if item.isStopped { style += " stopped" }
        page += "<details class=\"\(style)\"><summary>"
        time(at)
        // A label comes from the text form, which has escaped it.
        page += "<b>\(DiagramText.xml(DiagramText.short(item.label)))"
        if let mark = item.mark { page += " <i>[\(DiagramText.escaped(mark))]</i>" }
        page += "</b></summary><pre>\(DiagramText.xml(item.label))"
        if !item.xml.isEmpty { page += "\n\n\(DiagramText.lines(of: item.xml))" }
        page += "</pre></details>\n"
    }

    private mutating func time(_ time: Timestamp) {
        page += "<time>\(LineBuffer.text { timestamps.appendTimeOfDay(time, to: &$0) })</time>"
    }

    /// The lanes are backgrounds at both edges and in the middle; an arrow is the lower border of its row.
    private static let style = """
        \(PageStyle.colours)
        body { margin: 0; min-width: 700px; background: var(--paper); color: var(--ink);
        font: 12px/1.5 ui-monospace, Menlo, Consolas, monospace }
        nav, .end, body > .n { padding: 6px 16px } .end, .n, time, i { color: var(--faint) } i { font-style: normal }
        p { margin: 0 } a { color: inherit } .bad { color: var(--bad); font-weight: bold }
        .warn { color: var(--tap); font-weight: bold } .ok { color: var(--good) } .skip { color: var(--faint) }
        summary { list-style: none; cursor: pointer } summary::-webkit-details-marker { display: none }
        .s { border-top: 1px solid var(--lane) } .s:not([open]) { content-visibility: auto; contain-intrinsic-size: auto 26px }
        .s > summary { padding: 3px 16px; height: 18px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
        .s > summary::before, .f > summary::before { content: "▸ " } [open].s > summary::before, [open].f > summary::before
        { content: "▾ " } .s > summary time { margin-right: 1em }
        .s[open] > summary { position: sticky; top: 0; z-index: 2; background: var(--paper); font-weight: bold }
        .h { position: sticky; top: 24px; z-index: 1; display: flex; justify-content: space-between;
        margin: 0 12px 0 92px; background: var(--paper); box-shadow: 0 1px var(--lane) }
        .l { padding: 4px 32px 8px 112px; --line: linear-gradient(var(--lane), var(--lane));
        background: var(--line) 0 0 / 1px 100% no-repeat, var(--line) 50% 0 / 1px 100% no-repeat,
        var(--line) 100% 0 / 1px 100% no-repeat; background-origin: content-box }
        .two { background: var(--line) 0 0 / 1px 100% no-repeat, var(--line) 100% 0 / 1px 100% no-repeat;
        background-origin: content-box }
        .l summary, .l p { position: relative; min-height: 20px } .l time { position: absolute; left: -96px; font-weight: normal }
        .l p, .f > summary { padding: 0 12px; overflow-wrap: anywhere } .l p time, .f > summary time { left: -96px }
        .f > summary { color: var(--faint) }
        .a b { display: block; position: relative; padding: 1px 12px 0; border-bottom: 1.5px solid var(--item);
        overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: normal }
        .a.bad b { font-weight: bold; border-color: var(--bad) } .tap b { border-color: var(--tap) } .a i { color: var(--tap) }
        .w summary b { margin-right: 50% } .e summary b { margin-left: 50% } .inferred b { border-bottom-style: dashed }
        .a summary::after { content: "▶"; position: absolute; right: -2px; bottom: -8px; color: var(--item) }
        .w summary::after { right: calc(50% - 2px) } .r summary::after { content: "◀"; left: -2px; right: auto }
        .r.e summary::after { left: calc(50% - 2px) } .tap summary::after { color: var(--tap) }
        .bad summary::after, .stopped summary::after { color: var(--bad) } .stopped summary::after { content: "✕" }
        .a pre, .a[open] { margin: 0 0 6px } .a pre { padding: 6px 12px; white-space: pre-wrap; overflow-wrap: anywhere;
        font: inherit; font-weight: normal; color: var(--ink); background: var(--paper); border: 1px solid var(--lane) }
        .a summary:hover b { background: var(--box) }
        .box { margin: 0 16px; padding: 6px 12px; background: var(--box); border: 1px solid var(--bad) }
        """
}

/// Text of diagrams, escaped for XML.
enum DiagramText {
    /// Escapes text from any source for XML; invisible characters and bidirectional controls are named as in text logs.
    static func escaped(_ text: String) -> String { xml(LineBuffer.escaped(text)) }

    /// Escapes the lines of an item.
    static func lines(of text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { escaped(String($0)) }.joined(
            separator: "\n"
        )
    }

    /// Escapes text for XML after log escaping; characters that XML does not allow become U+FFFD.
    static func xml(_ text: String) -> String {
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

    /// Returns a label with long random words, such as ids and resources, cut in the middle. Bare JIDs are kept.
    static func short(_ label: String) -> String {
        label.split(separator: " ", omittingEmptySubsequences: false).map { word in
            guard word.count > maximumWordLength else { return String(word) }
            var kept = word.startIndex
            if word.hasPrefix("id=") {
                kept = word.index(kept, offsetBy: 3)
            } else if let slash = word.firstIndex(of: "/"), word[..<slash].contains("@") {
                kept = word.index(after: slash)
            }
            let rest = word[kept...]
            guard rest.count > 12 else { return String(word) }
            return "\(word[..<kept])\(rest.prefix(6))…\(rest.suffix(4))"
        }
        .joined(separator: " ")
    }

    private static let maximumWordLength = 24

    /// Returns the sign and the CSS class of a step's result.
    static func sign(_ result: LoginStep.Result?) -> (String, String) {
        switch result {
        case .ok: ("✓", "ok")
        case .skipped: ("–", "skip")
        case .failed, nil: ("✗", "bad")
        }
    }

    static func fold(_ count: Int) -> String { "\(count) acknowledgements and pings" }

    /// Returns the lines of a diagnosis: cause, side at fault, advice.
    static func lines(_ diagnosis: LoginDiagnosis) -> [String] {
        let rule = diagnosis.rule.map { " (\($0))" } ?? ""
        let blame =
            diagnosis.isProxyTheCause.map { $0 ? "; xmpptap itself is the cause" : "; xmpptap is not the cause" } ?? ""
        return [
            "failed at \(diagnosis.loginStep.rawValue): \(diagnosis.finding)\(rule)",
            "side: \(diagnosis.side.rawValue)\(blame)",
        ] + (diagnosis.advice.map { ["try: \($0)"] } ?? [])
    }
}
