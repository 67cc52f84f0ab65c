import XMPPCore

// Payloads of RFC 6120 and RFC 6121: texts, presence, errors, resource binding; and stream management.
extension SummaryFormatter {
    static let core: [SummaryFormatter] = [
        SummaryFormatter("RFC 6121", .client, .server, .componentAccept, .componentConnect) { child, line in
            if child.isNamed("body") {
                line.phrase("body")
                line.append(sizeOf: child)
            } else if child.isNamed("subject") {
                subject(child, &line)
            } else if child.isNamed("show") {
                guard child.textSize > 0 else { return }
                line.separate()
                line.append(textOf: child)
            } else if child.isNamed("status") {
                guard child.textSize > 0 else { return }
                line.phrase("status")
                line.append(sizeOf: child)
            } else if child.isNamed("priority") {
                guard child.textSize > 0 else { return }
                line.phrase("priority ")
                line.append(textOf: child)
            } else if !child.isNamed("thread"), !child.isNamed("error") {
                line.appendName(child)
            }
        },
        SummaryFormatter("RFC 6120", .bind) { bind, line in
            if let jid = bind.childText("jid", .bind) {
                line.phrase("bound to ")
                return line.append(text: jid)
            }
            line.phrase(
                bind.isNamed("unbind") ? "unbinds resource" : "binds a resource",
                after: ": ",
                text: bind.childText("resource", .bind)
            )
        },
        SummaryFormatter("RFC 3921", .session) { _, line in line.phrase("requests a session") },
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
                // A secret; its placeholder is the same as in the element that introduced the id.
                line.append(after: " ", "previd", of: element)
                line.append(", ")
                handled(element, &line)
            case "failed":
                line.phrase("stream management failed", after: ": ", text: element.firstChild?.name)
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

    /// Appends the summary of a subject. In a room, a message with only a subject sets the room's subject (XEP-0045
    /// §8.1).
    private static func subject(_ subject: Element, _ line: inout SummaryLine) {
        let isOfRoom =
            line.isType("groupchat") && line.stanza.map { $0.child("body", $0.namespace) == nil } ?? false
        guard subject.textSize > 0 else { return line.phrase(isOfRoom ? "the room has no subject" : "no subject") }
        line.phrase(isOfRoom ? "subject of the room" : "subject")
        line.append(sizeOf: subject)
    }

    private static func handled(_ element: Element, _ line: inout SummaryLine) {
        line.append(text: element.attribute("h") ?? "?")
        line.append(element.attribute("h", is: "1") ? " stanza handled" : " stanzas handled")
    }
}
