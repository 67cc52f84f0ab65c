internal import TapRecord

/// What a comparison of sessions has found, for people and for programs.
public struct DivergenceReport: Sendable {
    /// What was found of one pair of sessions, or of one that has no counterpart.
    public struct Case: Sendable {
        /// The sessions, as `session 1 romeo@example.org/orchard`.
        public var name: String
        /// In the order of the recording.
        public var divergences: [Divergence]

        /// Puts both together.
        public init(name: String, divergences: [Divergence] = []) {
            self.name = name
            self.divergences = divergences
        }
    }

    /// What was compared: `diff`, `replay`.
    public var command: String
    /// What the recorded side is called: the name of its file.
    public var recorded: String
    /// What the live side is called: the name of its file, or a server.
    public var live: String
    /// The pairs of sessions.
    public var cases: [Case] = []
    /// Items that were compared, of both sides.
    public var compared = 0
    /// Items of which nothing can be said: redacted, or without their XML.
    public var undecided = 0
    /// Divergences that are not in ``cases``, because there are too many.
    public var omitted = 0
    /// Whether one of them may be of a class that makes the comparison fail.
    public var omittedMayFail = false
    /// The classes that make the comparison fail.
    public var failingClasses: Set<Divergence.Class>

    /// A report with nothing in it.
    public init(command: String, recorded: String, live: String, failingClasses: Set<Divergence.Class>) {
        self.command = command
        self.recorded = recorded
        self.live = live
        self.failingClasses = failingClasses
    }

    /// Whether a divergence is of a class that makes the comparison fail, of those that are not shown one may be.
    public var hasFailed: Bool {
        omittedMayFail || cases.contains { $0.divergences.contains { failingClasses.contains($0.divergenceClass) } }
    }

    /// `3 changed, 1 missing`; empty where there is nothing.
    func counts(_ divergences: [Divergence]) -> String {
        Divergence.Code.allCases.compactMap { code in
            let count = divergences.count { $0.code == code }
            return count == 0 ? nil : "\(count) \(code.rawValue)"
        }.joined(separator: ", ")
    }

    /// The last line: how much was compared, and what came of it.
    public var summary: String {
        let all = cases.flatMap(\.divergences)
        var text = "\(cases.count) \(cases.count == 1 ? "session" : "sessions"), \(compared) items compared: "
        text += all.isEmpty && omitted == 0 ? "no differences" : counts(all)
        if omitted > 0 { text += "\(all.isEmpty ? "" : ", ")\(omitted) more not shown" }
        if undecided > 0 { text += "; \(undecided) items not decided: redacted, or recorded without XML" }
        return text
    }
}

// For people.
extension DivergenceReport {
    /// The lines of the text form.
    public func lines(coloured: Bool) -> [String] {
        var lines: [String] = []
        for entry in cases where !entry.divergences.isEmpty {
            lines.append(LineBuffer.escaped("\(entry.name): \(counts(entry.divergences))"))
            for divergence in entry.divergences { append(divergence, coloured, to: &lines) }
        }
        lines.append(LineBuffer.escaped(summary))
        return lines
    }

    private func append(_ divergence: Divergence, _ coloured: Bool, to lines: inout [String]) {
        func paint(_ text: String, _ colour: Int) -> String {
            let text = LineBuffer.escaped(text)
            return coloured ? "\u{1B}[\(colour)m\(text)\u{1B}[0m" : text
        }
        var head = "  \(divergence.code.rawValue) (\(divergence.divergenceClass.rawValue))"
        if let direction = (divergence.recorded ?? divergence.live)?.direction {
            head += " \(direction == .send ? "SEND" : "RECV")"
        }
        if !divergence.message.isEmpty { head += ": \(divergence.message)" }
        if divergence.consequences > 0 {
            head += " (and \(divergence.consequences) \(divergence.consequences == 1 ? "answer" : "answers") to it)"
        }
        lines.append(coloured ? "\u{1B}[1m\(LineBuffer.escaped(head))\u{1B}[0m" : LineBuffer.escaped(head))
        for difference in divergence.differences {
            let values = [
                difference.recorded.map { "\"\($0)\"" } ?? "absent", difference.live.map { "\"\($0)\"" } ?? "absent",
            ]
            lines.append(
                paint("    \(difference.path): \(values.joined(separator: " → "))\(Self.remark(difference.reason))", 33)
            )
        }
        if let item = divergence.recorded { lines.append(paint("    - #\(item.sequence) \(item.text)", 31)) }
        if let item = divergence.live { lines.append(paint("    + #\(item.sequence) \(item.text)", 32)) }
    }

    private static func remark(_ reason: ValueDifference.Reason) -> String {
        switch reason {
        case .collision: " (stood for another value before)"
        case .pattern: " (does not match the rule's expression)"
        case .number: " (beyond the rule's tolerance)"
        case .value, .missing, .unexpected, .name: ""
        }
    }

    /// The report as a page that needs nothing from elsewhere.
    public func html() -> String {
        var page = """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><title>xmpptap \(Self.escaped(command))</title>
            <style>
            html { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif; }
            body { max-width: 90rem; margin: 1rem auto; padding: 0 1rem; }
            pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; padding: .3rem; }
            .r { background: color-mix(in srgb, #c22 12%, transparent); }
            .l { background: color-mix(in srgb, #2a2 12%, transparent); }
            .sides { display: grid; grid-template-columns: 1fr 1fr; gap: .5rem; }
            h3 { font-size: 1rem; margin: 1rem 0 .2rem; } code { overflow-wrap: anywhere; }
            </style></head><body>
            <h1>xmpptap \(Self.escaped(command))</h1>
            <p>\(Self.escaped(recorded)) and \(Self.escaped(live))</p>
            <p><strong>\(Self.escaped(summary))</strong></p>

            """
        for entry in cases where !entry.divergences.isEmpty {
            page += "<h2>\(Self.escaped(entry.name))</h2>\n"
            for divergence in entry.divergences {
                let head = "\(divergence.code.rawValue) (\(divergence.divergenceClass.rawValue))"
                page += "<h3>\(head) \(Self.escaped(divergence.message))</h3>\n"
                if !divergence.differences.isEmpty {
                    page += "<ul>"
                    for difference in divergence.differences {
                        page += "<li><code>\(Self.escaped(difference.path))</code>: "
                        page += "<code class=\"r\">\(Self.escaped(difference.recorded ?? "absent"))</code> → "
                        page += "<code class=\"l\">\(Self.escaped(difference.live ?? "absent"))</code></li>"
                    }
                    page += "</ul>\n"
                }
                page += "<div class=\"sides\">"
                page += "<pre class=\"r\">\(Self.escaped(divergence.recorded.map(Self.titled) ?? ""))</pre>"
                page += "<pre class=\"l\">\(Self.escaped(divergence.live.map(Self.titled) ?? ""))</pre></div>\n"
            }
        }
        return page + "</body></html>\n"
    }

    private static func titled(_ item: Divergence.Item) -> String { "#\(item.sequence)\n\(item.text)" }
}

// For programs.
extension DivergenceReport {
    /// The report as one JSON object.
    public func json() -> String {
        LineBuffer.object { json in
            json.field("command", command)
            json.field("recorded", recorded)
            json.field("live", live)
            json.field("failed", hasFailed)
            json.field("compared", compared)
            json.field("undecided", undecided)
            json.field("omitted", omitted)
            json.field("sessions")
            json.openArray()
            for entry in cases {
                json.openObject()
                json.field("name", entry.name)
                json.field("divergences")
                json.openArray()
                for divergence in entry.divergences {
                    Self.write(divergence, to: &json)
                }
                json.closeArray()
                json.closeObject()
            }
            json.closeArray()
        }
    }

    private static func write(_ divergence: Divergence, to json: inout LineBuffer) {
        json.openObject()
        json.field("class", divergence.divergenceClass.rawValue)
        json.field("code", divergence.code.rawValue)
        if !divergence.message.isEmpty { json.field("message", divergence.message) }
        if divergence.consequences > 0 { json.field("consequences", divergence.consequences) }
        json.field("differences")
        json.openArray()
        for difference in divergence.differences {
            json.openObject()
            json.field("path", difference.path)
            json.field("reason", difference.reason.rawValue)
            if let value = difference.recorded { json.field("recorded", value) }
            if let value = difference.live { json.field("live", value) }
            json.closeObject()
        }
        json.closeArray()
        if let item = divergence.recorded {
            json.field("recorded")
            write(item, to: &json)
        }
        if let item = divergence.live {
            json.field("live")
            write(item, to: &json)
        }
        json.closeObject()
    }

    private static func write(_ item: Divergence.Item, to json: inout LineBuffer) {
        json.openObject()
        json.field("session", item.session)
        json.field("sequence", item.sequence)
        json.field("monotonic", seconds: item.at)
        if let direction = item.direction { json.field("direction", literal: direction.name) }
        json.field("xml", item.text)
        json.closeObject()
    }

    /// The report as JUnit has it: a suite with a test for each pair of sessions. Only what makes the comparison fail is a
    /// failure; the rest stands in the test's output.
    public func junit() -> String {
        var failures = cases.count { $0.divergences.contains { failingClasses.contains($0.divergenceClass) } }
        if omittedMayFail { failures += 1 }
        var xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        xml += "<testsuites><testsuite name=\"\(Self.escaped("xmpptap \(command) \(recorded) \(live)"))\" "
        xml += "tests=\"\(cases.count + (omittedMayFail ? 1 : 0))\" failures=\"\(failures)\" errors=\"0\">\n"
        for entry in cases {
            xml += "<testcase classname=\"\(Self.escaped(command))\" name=\"\(Self.escaped(entry.name))\">"
            let failing = entry.divergences.filter { failingClasses.contains($0.divergenceClass) }
            let others = entry.divergences.filter { !failingClasses.contains($0.divergenceClass) }
            if let first = failing.first {
                xml += "<failure type=\"\(first.code.rawValue)\" message=\"\(Self.escaped(counts(failing)))\">"
                xml += "\(Self.escaped(text(failing)))</failure>"
            }
            if !others.isEmpty { xml += "<system-out>\(Self.escaped(text(others)))</system-out>" }
            xml += "</testcase>\n"
        }
        if omittedMayFail {
            xml += "<testcase classname=\"\(Self.escaped(command))\" name=\"not shown\">"
            xml += "<failure type=\"omitted\" message=\"\(omitted) more not shown\"></failure></testcase>\n"
        }
        return xml + "</testsuite></testsuites>\n"
    }

    private func text(_ divergences: [Divergence]) -> String {
        var lines: [String] = []
        for divergence in divergences { append(divergence, false, to: &lines) }
        return lines.joined(separator: "\n")
    }

    /// For XML and HTML, in a text or a value: what neither can hold becomes U+FFFD.
    private static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\t", "\n": result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0x7F || scalar.value & 0xFFFE == 0xFFFE:
                result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
