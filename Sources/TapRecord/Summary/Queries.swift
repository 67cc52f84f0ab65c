import XMPPCore

// Small questions and their answers.
extension SummaryFormatter {
    static let queries: [SummaryFormatter] = [
        SummaryFormatter("XEP-0199", .ping) { _, line in line.phrase("ping") },
        SummaryFormatter("XEP-0092", .version) { query, line in
            guard !line.isRequest else { return line.phrase("asks for its version") }
            line.phrase("version")
            line.append(after: " ", text: query.childText("name", .version))
            line.append(after: " ", text: query.childText("version", .version))
            line.append(after: " on ", text: query.childText("os", .version))
        },
        SummaryFormatter("XEP-0202", .time, .timeLegacy) { time, line in
            guard !line.isRequest else { return line.phrase("asks for the time") }
            line.phrase("time")
            line.append(after: " ", text: time.childText("utc", time.namespace))
            line.append(after: " at ", text: time.childText("tzo", time.namespace))
        },
        SummaryFormatter("XEP-0012", .lastActivity) { query, line in
            guard let seconds = query.attribute("seconds") else {
                return line.phrase(line.isRequest ? "asks for last activity" : "last activity")
            }
            line.phrase("last active ")
            line.append(text: seconds)
            line.append(" s ago")
        },
    ]
}
