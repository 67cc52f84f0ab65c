import XMPPCore

// Files: upload slots, sharing, streams of bytes.
extension SummaryFormatter {
    static let files: [SummaryFormatter] = [
        SummaryFormatter("XEP-0363", .httpUpload) { element, line in
            guard element.isNamed("request") else { return line.phrase("upload slot") }
            line.phrase("asks for an upload slot")
            line.append(after: ": ", "filename", of: element)
            line.append(after: " ", "content-type", of: element)
            line.append(after: " ", size: element.attribute("size"))
        },
        SummaryFormatter("XEP-0447", .fileSharing, .encryptedFiles) { _, line in line.phrase("shares a file") },
        SummaryFormatter("XEP-0231", .bitsOfBinary) { data, line in
            line.phrase(line.isType("get") ? "asks for data" : "data")
            line.append(after: " ", "type", of: data)
            guard data.textSize > 0 else { return }
            line.append(" ")
            line.append(size: decodedSize(data))
        },
        SummaryFormatter("XEP-0047", .inBandByteStreams) { element, line in
            switch element.name {
            case "open":
                line.phrase("opens a byte stream")
                line.append(after: " ", "sid", of: element)
                line.append(after: ", blocks of ", size: element.attribute("block-size"))
            case "close":
                line.phrase("closes byte stream")
                line.append(after: " ", "sid", of: element)
            default:
                line.phrase("block")
                line.append(after: " ", "seq", of: element)
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
}
