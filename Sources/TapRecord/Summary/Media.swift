import XMPPCore

// Jingle sessions and files: upload slots, sharing, streams of bytes.
extension SummaryFormatter {
    static let media: [SummaryFormatter] = [
        SummaryFormatter("XEP-0166", .jingle) { jingle, line in
            line.phrase("Jingle", "action", of: jingle)
            line.append(after: " ", "sid", of: jingle)
            for content in jingle.children("content", .jingle).prefix(3) {
                line.separate()
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
        SummaryFormatter("XEP-0363", .httpUpload) { element, line in
            guard element.isNamed("request") else { return line.phrase("upload slot") }
            line.phrase("asks for an upload slot", after: ": ", "filename", of: element)
            line.append(after: " ", "content-type", of: element)
            line.append(after: " ", size: element.attribute("size"))
        },
        SummaryFormatter("XEP-0447", .fileSharing, .encryptedFiles) { _, line in line.phrase("shares a file") },
        SummaryFormatter("XEP-0231", .bitsOfBinary) { data, line in
            line.phrase(line.isType("get") ? "asks for data" : "data", "type", of: data)
            guard data.textSize > 0 else { return }
            line.append(" ")
            line.append(size: decodedSize(data))
        },
        SummaryFormatter("XEP-0047", .inBandByteStreams) { element, line in
            switch element.name {
            case "open":
                line.phrase("opens a byte stream", "sid", of: element)
                line.append(after: ", blocks of ", size: element.attribute("block-size"))
            case "close":
                line.phrase("closes byte stream", "sid", of: element)
            default:
                line.phrase("block", "seq", of: element)
                line.append(" of byte stream")
                line.append(after: " ", "sid", of: element)
                line.append(", ")
                line.append(size: decodedSize(element))
            }
        },
        SummaryFormatter("XEP-0065", .byteStreams) { query, line in
            if let used = query.child("streamhost-used", .byteStreams) {
                line.phrase("byte stream by")
                return line.append(after: " ", "jid", of: used)
            }
            if query.child("activate", .byteStreams) != nil { return line.phrase("activates the byte stream") }
            line.phrase("byte stream: ")
            line.append(count: query.count("streamhost", .byteStreams), "host", "hosts")
        },
        SummaryFormatter("XEP-0095", .streamInitiation) { offer, line in
            line.phrase(line.isType("set") ? "offers a file" : "takes the file")
            guard let file = offer.firstChild(where: { $0.isNamed("file") }) else { return }
            line.append(after: " ", "name", of: file)
            line.append(after: " ", size: file.attribute("size"))
        },
    ]

    /// Appends a description, such as ` audio, 5 codecs` or ` file letter.txt 2.1 kB`.
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
        line.append(after: ", ", count: codecs, "codec", "codecs")
    }

    /// Returns the significant part of a URI: `ice-udp` for `urn:xmpp:jingle:transports:ice-udp:1`.
    private static func word(of uri: String) -> String {
        let parts = uri.split { $0 == ":" || $0 == "/" }
        return String(parts.last { Int($0) == nil } ?? "")
    }
}
