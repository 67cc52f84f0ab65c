internal import TapRecord

extension DivergenceReport {
    /// Returns the report as one JSON object.
    package func json() -> String {
        LineBuffer.object { json in
            json.field("command", command)
            json.field("recorded", recorded)
            json.field("live", live)
            json.field("failed", hasFailed)
            json.field("compared", compared)
            json.field("undecided", undecided)
            json.field("omitted", omitted)
            if !errors.isEmpty { Self.write(errors, as: "errors", to: &json) }
            if !latencies.isEmpty { Self.write(latencies, to: &json) }
            if !spans.isEmpty { Self.write(spans, to: &json) }
            json.field("causes")
            json.openArray()
            for cause in causes { Self.write(cause, to: &json) }
            json.closeArray()
            let notes = notes
            if !notes.isEmpty { Self.write(notes, as: "notes", to: &json) }
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
            json.field("most", seconds: entry.maximum)
            json.closeObject()
        }
        json.closeArray()
    }

    private static func write(_ spans: [(second: Int64, latencies: Latencies)], to json: inout LineBuffer) {
        json.field("timeline")
        json.openArray()
        for (second, latencies) in spans {
            json.openObject()
            json.field("second", Int(second))
            json.field("count", latencies.count)
            if latencies.count > 0 {
                for percentile in latencies.percentiles {
                    json.field(named: "p\(percentile.share)")
                    json.append(seconds: percentile.nanoseconds)
                }
                json.field("most", seconds: latencies.maximum)
            }
            json.closeObject()
        }
        json.closeArray()
    }

    private static func write(_ cause: DivergenceCause, to json: inout LineBuffer) {
        json.openObject()
        json.field("title", cause.title)
        json.field("class", cause.first.divergenceClass.rawValue)
        json.field("code", cause.first.code.rawValue)
        json.field("count", cause.count)
        json.field("followed", cause.followed.count)
        write(cause.sessions, as: "sessions", to: &json)
        json.closeObject()
    }

    /// Writes a field with texts.
    static func write(_ texts: [String], as name: StaticString, to json: inout LineBuffer) {
        json.field(name)
        json.openArray()
        for text in texts {
            json.separate()
            json.appendJSONString(text)
        }
        json.closeArray()
    }

    /// Writes the field `differences`.
    static func write(_ differences: [ValueDifference], to json: inout LineBuffer) {
        json.field("differences")
        json.openArray()
        for difference in differences {
            json.openObject()
            json.field("path", difference.path)
            json.field("reason", difference.reason.rawValue)
            if let value = difference.recorded { json.field("recorded", value) }
            if let value = difference.live { json.field("live", value) }
            json.closeObject()
        }
        json.closeArray()
    }

    private static func write(_ divergence: Divergence, to json: inout LineBuffer) {
        json.openObject()
        if let step = divergence.scriptStep {
            json.field("file", step.file)
            json.field("line", step.line)
            if let column = step.column { json.field("column", column) }
        }
        json.field("class", divergence.divergenceClass.rawValue)
        json.field("code", divergence.code.rawValue)
        if !divergence.message.isEmpty { json.field("message", divergence.message) }
        if divergence.consequences > 0 { json.field("consequences", divergence.consequences) }
        write(divergence.differences, to: &json)
        if let item = divergence.recorded {
            json.field("recorded")
            write(item, divergence.recordedMarks, to: &json)
        }
        if let item = divergence.live {
            json.field("live")
            write(item, divergence.liveMarks, to: &json)
        }
        if !divergence.followed.isEmpty {
            json.field("followed")
            json.openArray()
            for consequence in divergence.followed { write(consequence, to: &json) }
            json.closeArray()
        }
        json.closeObject()
    }

    private static func write(_ item: Divergence.Item, _ marks: DifferenceMarks, to json: inout LineBuffer) {
        json.openObject()
        if item.session > 0 || item.sequence > 0 {
            json.field("session", item.session)
            json.field("sequence", item.sequence)
            json.field("monotonic", seconds: item.at)
        }
        if let direction = item.direction { json.field("direction", literal: direction.name) }
        json.field("xml", item.text)
        if !marks.ranges.isEmpty {
            json.field("marks")
            json.openArray()
            for range in marks.ranges {
                json.openObject()
                json.field("start", range.lowerBound)
                json.field("end", range.upperBound)
                json.closeObject()
            }
            json.closeArray()
        }
        json.closeObject()
    }

    /// Returns the report as JUnit XML: one suite with a failed test for each cause that makes the comparison fail, and
    /// a passed test for each session without a failing cause. Other causes and notes appear in the output of the
    /// suite.
    package func junit() -> String {
        let causes = causes
        let failing = causes.filter { $0.isOf(failingClasses) }
        let failed = Set(failing.flatMap(\.sessions))
        let passed = cases.filter { !failed.contains($0.name) }
        let failures = failing.count + (omittedMayFail ? 1 : 0)
        let tests = passed.count + failures + errors.count
        let name = Self.escaped(command)
        var xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        xml += "<testsuites><testsuite name=\"\(Self.escaped("xmpptap \(command) \(recorded) \(live)"))\" "
        xml += "tests=\"\(tests)\" failures=\"\(failures)\" errors=\"\(errors.count)\">\n"
        for error in errors {
            xml += "<testcase classname=\"\(name)\" name=\"set-up\">"
            xml += "<error type=\"set-up\" message=\"\(Self.escaped(error))\"></error></testcase>\n"
        }
        for entry in passed {
            xml += "<testcase classname=\"\(name)\" name=\"\(Self.escaped(entry.name))\"></testcase>\n"
        }
        for cause in failing {
            // A script is one test, named after the script. A session can have several causes, so the name of its test
            // has the title of the cause.
            let place = cause.sessions.first ?? ""
            let test = subject == .script || place.isEmpty ? place : "\(place): \(cause.title)"
            xml += "<testcase classname=\"\(name)\" name=\"\(Self.escaped(test))\">"
            xml += "<failure type=\"\(cause.first.code.rawValue)\" message=\"\(Self.escaped(cause.title))\">"
            xml += "\(Self.escaped(text([cause])))</failure></testcase>\n"
        }
        if omittedMayFail {
            xml += "<testcase classname=\"\(name)\" name=\"not shown\">"
            xml += "<failure type=\"omitted\" message=\"\(omitted) more not shown\"></failure></testcase>\n"
        }
        let others = text(causes.filter { !$0.isOf(failingClasses) })
        let rest = [others] + notes.map { "note: \($0)" } + [summary]
        let output = rest.filter { !$0.isEmpty }.joined(separator: "\n")
        return xml + "<system-out>\(Self.escaped(output))</system-out></testsuite></testsuites>\n"
    }

    private func text(_ causes: [DivergenceCause]) -> String {
        var lines: [String] = []
        for cause in causes { append(cause, false, to: &lines) }
        return lines.joined(separator: "\n")
    }

    /// Escapes text for XML and HTML; characters that are not allowed in them become U+FFFD.
    static func escaped(_ text: String) -> String {
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
