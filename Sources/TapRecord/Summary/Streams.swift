import XMPPCore

// What steers a stream and is no stanza.
extension SummaryFormatter {
    static let streams: [SummaryFormatter] = [
        SummaryFormatter("XEP-0198", .streamManagement, .streamManagement2) { element, line in
            switch element.name {
            case "r": line.phrase("requests an acknowledgement")
            case "a": handled(element, &line)
            case "enable", "enabled":
                line.phrase(element.isNamed("enable") ? "enables stream management" : "stream management enabled")
                if ["true", "1"].contains(element.attribute("resume")) {
                    line.append(", resumable")
                    line.append(after: " within ", "max", of: element)
                    if element.attribute("max") != nil { line.append(" s") }
                }
                line.append(after: ", preferred address ", "location", of: element)
            case "resume", "resumed":
                line.phrase(element.isNamed("resume") ? "requests resumption of session" : "resumed session")
                // A secret, whose placeholder is the same as where the id was given.
                line.append(after: " ", "previd", of: element)
                line.append(", ")
                handled(element, &line)
            case "failed":
                line.phrase("stream management failed")
                line.append(after: ": ", text: element.firstChild?.name)
                if element.attribute("h") == nil { return }
                line.append(", ")
                handled(element, &line)
            default: line.appendName(element)
            }
        },
        SummaryFormatter("XEP-0352", .clientState) { element, line in
            switch element.name {
            case "active": line.phrase("the client is active")
            case "inactive": line.phrase("the client is inactive")
            default: line.appendName(element)
            }
        },
    ]

    private static func handled(_ element: Element, _ line: inout SummaryLine) {
        line.append(text: element.attribute("h") ?? "?")
        line.append(element.attribute("h", is: "1") ? " stanza handled" : " stanzas handled")
    }
}
