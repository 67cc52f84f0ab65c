import XMPPCore

// Jingle sessions, and how they are announced.
extension SummaryFormatter {
    static let calls: [SummaryFormatter] = [
        SummaryFormatter("XEP-0166", .jingle) { jingle, line in
            line.phrase("Jingle")
            line.append(after: " ", "action", of: jingle)
            line.append(after: " ", "sid", of: jingle)
            for content in jingle.children("content", .jingle).prefix(3) {
                line.asymmetric()
                line.append(text: content.attribute("name") ?? "content")
                if let description = content.firstChild(where: { $0.isNamed("description") }) {
                    describe(description, &line)
                }
                guard let transport = content.firstChild(where: { $0.isNamed("transport") }) else { continue }
                line.append(" by ")
                line.append(text: word(of: transport.namespaceURI))
                let candidates = transport.children.filter { $0.isNamed("candidate") }.count
                guard candidates > 0 else { continue }
                line.append(" with ")
                line.append(count: candidates, "candidate", "candidates")
            }
            if let reason = jingle.child("reason", .jingle)?.firstChild { line.append(after: ", ", text: reason.name) }
        },
        SummaryFormatter("XEP-0353", .jingleMessage) { element, line in
            line.phrase("call: ")
            line.append(nameOf: element)
            line.append(after: " ", "id", of: element)
            for description in element.children.prefix(3) where description.isNamed("description") {
                describe(description, &line)
            }
        },
        SummaryFormatter("XEP-0167", .jingleRTPInfo) { info, line in
            line.phrase("call is ")
            line.append(nameOf: info)
        },
    ]

    /// ` audio, 5 codecs`, ` file letter.txt 2.1 kB`.
    private static func describe(_ description: Element, _ line: inout SummaryLine) {
        if description.namespace == .jingleFiles {
            let file = description.child("file", .jingleFiles)
            line.append(" file")
            line.append(after: " ", text: file?.childText("name", .jingleFiles))
            return line.append(after: " ", size: file?.childText("size", .jingleFiles))
        }
        line.append(after: " ", "media", of: description)
        let codecs = description.count("payload-type", .jingleRTP)
        guard codecs > 0 else { return }
        line.append(", ")
        line.append(count: codecs, "codec", "codecs")
    }

    /// The telling part of a URI: `ice-udp` of `urn:xmpp:jingle:transports:ice-udp:1`.
    private static func word(of uri: String) -> String {
        let parts = uri.split { $0 == ":" || $0 == "/" }
        return String(parts.last { Int($0) == nil } ?? "")
    }
}
