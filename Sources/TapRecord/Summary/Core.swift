import XMPPCore

// What RFC 6120 and RFC 6121 define: texts, presence, errors, resource binding.
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
                line.asymmetric()
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
            line.phrase(bind.isNamed("unbind") ? "unbinds resource" : "binds a resource")
            line.append(after: ": ", text: bind.childText("resource", .bind))
        },
        SummaryFormatter("RFC 3921", .session) { _, line in line.phrase("requests a session") },
    ]

    /// In a room a message with nothing but a subject is the room's (XEP-0045 §8.1).
    private static func subject(_ subject: Element, _ line: inout SummaryLine) {
        let isOfRoom =
            line.isType("groupchat") && line.stanza.map { $0.child("body", $0.namespace) == nil } ?? false
        guard subject.textSize > 0 else { return line.phrase(isOfRoom ? "the room has no subject" : "no subject") }
        line.phrase(isOfRoom ? "subject of the room" : "subject")
        line.append(sizeOf: subject)
    }
}
