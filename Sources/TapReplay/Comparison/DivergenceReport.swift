internal import TapRecord

/// The result of a comparison of sessions, for people and for programs.
public struct DivergenceReport: Sendable {
    /// The divergences of a pair of sessions, or of a session without a counterpart.
    public struct Case: Sendable {
        /// The sessions, as `session 1 romeo@example.org/orchard`.
        public var name: String
        /// The divergences in the order of the recording.
        public var divergences: [Divergence]

        /// Creates a case.
        public init(name: String, divergences: [Divergence] = []) {
            self.name = name
            self.divergences = divergences
        }
    }

    /// The kind of the cases.
    public enum Subject: String, Sendable {
        /// Recorded sessions, compared item by item.
        case session
        /// Scripts, compared step by step.
        case script
    }

    /// Latencies of one kind of stanza.
    public struct Latencies: Sendable {
        /// `iq` with the name of its payload, `message` or `presence`.
        public let kind: String
        /// Number of stanzas.
        public let count: Int
        /// Percentiles in nanoseconds; `share` is the percentage.
        public let percentiles: [(share: Int, nanoseconds: Int64)]
        /// The maximum in nanoseconds.
        public let most: Int64

        /// Creates the statistics of at least one time, in nanoseconds.
        public init(kind: String, times: [Int64]) {
            self.kind = kind
            count = times.count
            let sorted = times.sorted()
            most = sorted.last ?? 0
            percentiles = [50, 95, 99].map { share in
                (share, sorted.dropFirst(sorted.count * share / 100).first ?? sorted.last ?? 0)
            }
        }
    }

    /// The kind of the cases.
    public var subject = Subject.session
    /// Latencies sorted by kind; empty if nothing was played.
    public var latencies: [Latencies] {
        times.sorted { $0.key < $1.key }.map { Latencies(kind: $0.key, times: $0.value) }
    }
    /// Times in nanoseconds by kind.
    private var times: [String: [Int64]] = [:]
    /// The command that compared: `diff`, `replay`.
    public var command: String
    /// The name of the recorded side: its file.
    public var recorded: String
    /// The name of the live side: its file, or a server.
    public var live: String
    /// The pairs of sessions, without their secrets.
    public private(set) var cases: [Case] = []
    private let redactor = ReportRedactor()
    /// Number of compared items of both sides; for scripts, the number of passed steps.
    public var compared = 0
    /// Number of items that cannot be compared: redacted, or recorded without XML.
    public var undecided = 0
    /// Number of divergences that are not in ``cases`` because there are too many.
    public var omitted = 0
    /// Whether an omitted divergence may be of a class that makes the comparison fail.
    public var omittedMayFail = false
    /// Why something could not be played, one line each for people; the comparison has failed if there is one.
    public var errors: [String] = []
    /// The classes that make the comparison fail.
    public var failingClasses: Set<Divergence.Class>

    /// Creates an empty report.
    public init(command: String, recorded: String, live: String, failingClasses: Set<Divergence.Class>) {
        self.command = command
        self.recorded = recorded
        self.live = live
        self.failingClasses = failingClasses
    }

    /// Adds the divergences of a pair of sessions, redacted.
    public mutating func add(_ entry: Case) {
        cases.append(Case(name: entry.name, divergences: entry.divergences.map(redactor.disclosed)))
    }

    /// Adds latencies in nanoseconds by kind.
    public mutating func add(times: [String: [Int64]]) {
        for (kind, more) in times { self.times[kind, default: []] += more }
    }

    /// Adds the latencies of another report.
    public mutating func addTimes(of other: DivergenceReport) { add(times: other.times) }

    /// Whether a divergence makes the comparison fail, or an omitted one may.
    public var hasFailed: Bool {
        omittedMayFail || !errors.isEmpty || cases.contains { $0.divergences.contains { $0.isOf(failingClasses) } }
    }

    /// Returns counts such as `3 changed, 1 missing, 1 session differs`; empty if there are none.
    func counts(_ divergences: [Divergence]) -> String {
        Divergence.Code.allCases.compactMap { code in
            let count = divergences.count { $0.code == code }
            guard code == .session else { return count == 0 ? nil : "\(count) \(code.rawValue)" }
            // The same line already contains the number of sessions.
            return count == 0 ? nil : "\(count) \(count == 1 ? "session differs" : "sessions differ")"
        }.joined(separator: ", ")
    }

    /// The last line: the amount compared and the result.
    public var summary: String {
        let all = cases.flatMap(\.divergences)
        let many = compared == 1 ? "" : "s"
        let counted = subject == .session ? "item\(many) compared" : "step\(many) passed"
        var text = "\(cases.count) \(subject.rawValue)\(cases.count == 1 ? "" : "s"), \(compared) \(counted): "
        if all.isEmpty, omitted == 0 {
            text += errors.isEmpty ? "no differences" : "not played to the end"
        } else {
            text += counts(all)
        }
        let followed = all.reduce(0) { $0 + $1.followed.count }
        if followed > 0 { text += ", and \(followed) that \(followed == 1 ? "follows" : "follow") from them" }
        if omitted > 0 { text += "\(all.isEmpty ? "" : ", ")\(omitted) more not shown" }
        if undecided > 0 { text += "; \(undecided) items not decided: redacted, or recorded without XML" }
        return text
    }
}

// MARK: Text and HTML
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

    /// The latencies as lines of text: of answers by kind of request, of messages and presence by kind.
    public var latencyLines: [String] {
        latencies.map { entry in
            let counted = entry.kind.hasPrefix("iq") ? "answers" : "delivered"
            let shares = entry.percentiles.map { "p\($0.share) \(LineBuffer.duration($0.nanoseconds))" }
            let most = "most \(LineBuffer.duration(entry.most))"
            return "\(entry.kind): \(entry.count) \(counted), \((shares + [most]).joined(separator: ", "))"
        }
    }

    private func append(_ divergence: Divergence, _ coloured: Bool, to lines: inout [String]) {
        func paint(_ text: String, _ colour: Int) -> String {
            let text = LineBuffer.escaped(text)
            return coloured ? "\u{1B}[\(colour)m\(text)\u{1B}[0m" : text
        }
        let head = "  \(Self.head(divergence))"
        lines.append(coloured ? "\u{1B}[1m\(LineBuffer.escaped(head))\u{1B}[0m" : LineBuffer.escaped(head))
        for difference in divergence.differences {
            let values = [
                difference.recorded.map { "\"\($0)\"" } ?? "absent", difference.live.map { "\"\($0)\"" } ?? "absent",
            ]
            lines.append(
                paint("    \(difference.path): \(values.joined(separator: " → "))\(Self.remark(difference.reason))", 33)
            )
        }
        if let item = divergence.recorded, !item.text.isEmpty {
            lines.append(paint("    - \(item.label("expected:")) \(item.text)", 31))
        }
        if let item = divergence.live, !item.text.isEmpty {
            lines.append(paint("    + \(item.label("received:")) \(item.text)", 32))
        }
        for consequence in divergence.followed.prefix(Self.mostFollowed) {
            lines.append(paint("    → \(Self.line(consequence))", 2))
        }
        let more = divergence.followed.count - Self.mostFollowed
        if more > 0 { lines.append(paint("    → and \(more) more", 2)) }
    }

    /// Returns a heading such as `changed (behaviour) RECV`, with place and details.
    private static func head(_ divergence: Divergence) -> String {
        var head = "\(divergence.code.rawValue) (\(divergence.divergenceClass.rawValue))"
        if let direction = (divergence.recorded ?? divergence.live)?.direction {
            head += " \(direction == .send ? "SEND" : "RECV")"
        }
        if let step = divergence.scriptStep { head += " \(step.file):\(step.line)" }
        if !divergence.message.isEmpty { head += ": \(divergence.message)" }
        if divergence.consequences > 0 {
            head += " (and \(divergence.consequences) \(divergence.consequences == 1 ? "answer" : "answers") to it)"
        }
        return head
    }

    /// Maximum number of consequences shown in the text form.
    private static let mostFollowed = 10

    /// Returns a consequence as one line: `missing #12 <iq …/>`.
    private static func line(_ divergence: Divergence) -> String {
        let item = divergence.recorded ?? divergence.live
        return [divergence.code.rawValue, item.map { "#\($0.sequence) \($0.text)" } ?? "", divergence.message]
            .filter { !$0.isEmpty }.joined(separator: " ")
    }

    private static func remark(_ reason: ValueDifference.Reason) -> String {
        switch reason {
        case .collision: " (stood for another value before)"
        case .pattern: " (does not match the rule's expression)"
        case .number: " (beyond the rule's tolerance)"
        case .value, .missing, .unexpected, .name: ""
        }
    }

    /// Returns the report as a self-contained page.
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
        for error in errors { page += "<p class=\"r\">\(Self.escaped(error))</p>\n" }
        for entry in cases where !entry.divergences.isEmpty {
            page += "<h2>\(Self.escaped(entry.name))</h2>\n"
            for divergence in entry.divergences {
                page += "<h3>\(Self.escaped(Self.head(divergence)))</h3>\n"
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
                page +=
                    "<pre class=\"r\">\(Self.escaped(divergence.recorded.map { Self.titled($0, "expected") } ?? ""))</pre>"
                page +=
                    "<pre class=\"l\">\(Self.escaped(divergence.live.map { Self.titled($0, "received") } ?? ""))</pre></div>\n"
                guard !divergence.followed.isEmpty else { continue }
                page += "<p>What followed from it:</p>\n<ul>"
                for consequence in divergence.followed {
                    page += "<li><code>\(Self.escaped(Self.line(consequence)))</code></li>"
                }
                page += "</ul>\n"
            }
        }
        return page + "</body></html>\n"
    }

    private static func titled(_ item: Divergence.Item, _ word: String) -> String {
        "\(item.label(word))\n\(item.text)"
    }
}

extension Divergence.Item {
    /// Returns the number of the record, or `word` for a stanza of a script, which has none.
    fileprivate func label(_ word: String) -> String { sequence > 0 || session > 0 ? "#\(sequence)" : word }
}

// MARK: JSON and JUnit
extension DivergenceReport {
    /// Returns the report as one JSON object.
    public func json() -> String {
        LineBuffer.object { json in
            json.field("command", command)
            json.field("recorded", recorded)
            json.field("live", live)
            json.field("failed", hasFailed)
            json.field("compared", compared)
            json.field("undecided", undecided)
            json.field("omitted", omitted)
            if !errors.isEmpty {
                json.field("errors")
                json.openArray()
                for error in errors {
                    json.separate()
                    json.appendJSONString(error)
                }
                json.closeArray()
            }
            if !latencies.isEmpty { Self.write(latencies, to: &json) }
            json.field(named: "\(subject.rawValue)s")
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

    private static func write(_ latencies: [Latencies], to json: inout LineBuffer) {
        json.field("latencies")
        json.openArray()
        for entry in latencies {
            json.openObject()
            json.field("kind", entry.kind)
            json.field("count", entry.count)
            for percentile in entry.percentiles {
                json.field(named: "p\(percentile.share)")
                json.append(seconds: percentile.nanoseconds)
            }
            json.field("most", seconds: entry.most)
            json.closeObject()
        }
        json.closeArray()
    }

    private static func write(_ divergence: Divergence, to json: inout LineBuffer) {
        json.openObject()
        if let step = divergence.scriptStep {
            json.field("file", step.file)
            json.field("line", step.line)
        }
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
        if !divergence.followed.isEmpty {
            json.field("followed")
            json.openArray()
            for consequence in divergence.followed { write(consequence, to: &json) }
            json.closeArray()
        }
        json.closeObject()
    }

    private static func write(_ item: Divergence.Item, to json: inout LineBuffer) {
        json.openObject()
        if item.session > 0 || item.sequence > 0 {
            json.field("session", item.session)
            json.field("sequence", item.sequence)
            json.field("monotonic", seconds: item.at)
        }
        if let direction = item.direction { json.field("direction", literal: direction.name) }
        json.field("xml", item.text)
        json.closeObject()
    }

    /// Returns the report as JUnit XML: one suite with a test for each pair of sessions. Only divergences that make the
    /// comparison fail are failures; others appear in the output of the test.
    public func junit() -> String {
        var failures = cases.count { $0.divergences.contains { $0.isOf(failingClasses) } }
        if omittedMayFail { failures += 1 }
        var xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        xml += "<testsuites><testsuite name=\"\(Self.escaped("xmpptap \(command) \(recorded) \(live)"))\" "
        let tests = cases.count + (omittedMayFail ? 1 : 0) + errors.count
        xml += "tests=\"\(tests)\" failures=\"\(failures)\" errors=\"\(errors.count)\">\n"
        for error in errors {
            xml += "<testcase classname=\"\(Self.escaped(command))\" name=\"set-up\">"
            xml += "<error type=\"set-up\" message=\"\(Self.escaped(error))\"></error></testcase>\n"
        }
        for entry in cases {
            xml += "<testcase classname=\"\(Self.escaped(command))\" name=\"\(Self.escaped(entry.name))\">"
            let failing = entry.divergences.filter { $0.isOf(failingClasses) }
            let others = entry.divergences.filter { !$0.isOf(failingClasses) }
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
        return xml + "<system-out>\(Self.escaped(summary))</system-out></testsuite></testsuites>\n"
    }

    private func text(_ divergences: [Divergence]) -> String {
        var lines: [String] = []
        for divergence in divergences { append(divergence, false, to: &lines) }
        return lines.joined(separator: "\n")
    }

    /// Escapes text for XML and HTML; characters that neither allows become U+FFFD.
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
