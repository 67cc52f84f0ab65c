import XMPPCore

// Messages within messages: carbons, forwarding, the archive.
extension SummaryFormatter {
    static let copies: [SummaryFormatter] = [
        SummaryFormatter("XEP-0280", .carbons) { carbon, line in
            switch carbon.name {
            case "enable": line.phrase("enables carbons")
            case "disable": line.phrase("disables carbons")
            case "private": line.phrase("no carbons")
            default:
                line.phrase("carbon, ")
                line.append(nameOf: carbon)
                forwarded(in: carbon, &line)
            }
        },
        SummaryFormatter("XEP-0297", .forward) { forwarded, line in
            line.phrase("forwarded")
            appendForwarded(forwarded, &line)
        },
        SummaryFormatter("XEP-0313", .archive, .archive1, .archive0) { element, line in
            switch element.name {
            case "query": query(element, &line)
            case "result":
                line.phrase("from the archive", after: ", item ", "id", of: element)
                forwarded(in: element, &line)
            case "fin": end(element, &line)
            case "prefs":
                line.verb(set: "sets ", get: "asks for ")
                line.append("archive preferences")
                line.append(after: ": default ", "default", of: element)
            case "metadata": line.phrase("archive metadata")
            default: line.appendName(element)
            }
        },
        SummaryFormatter("XEP-0059", .resultSets) { set, line in
            line.phrase("page")
            page(set, &line)
        },
    ]

    private static func forwarded(in element: Element, _ line: inout SummaryLine) {
        guard let forwarded = element.child("forwarded", .forward) else { return }
        appendForwarded(forwarded, &line)
    }

    private static func appendForwarded(_ forwarded: Element, _ line: inout SummaryLine) {
        line.append(after: " of ", text: forwarded.child("delay", .delay)?.attribute("stamp"))
        guard let stanza = forwarded.firstChild(where: { $0.namespace.isContent }) else { return }
        line.append(": ")
        line.append(nested: stanza)
    }

    private static func query(_ query: Element, _ line: inout SummaryLine) {
        guard !line.isType("get") else { return line.phrase("asks for the archive's search fields") }
        guard line.isRequest else {
            line.phrase("the archive can be searched by ")
            let fields = query.child("x", .dataForms)?.count("field", .dataForms) ?? 0
            return line.append(count: fields, "field", "fields")
        }
        line.phrase("queries the archive")
        for field in query.child("x", .dataForms)?.children("field", .dataForms) ?? [] {
            guard let name = field.attribute("var"), name != "FORM_TYPE", !line.isFull else { continue }
            line.append(after: ", ", text: name)
            line.append(after: " ", text: field.childText("value", .dataForms))
        }
        line.append(after: ", node ", "node", of: query)
        if let set = query.child("set", .resultSets) { page(set, &line) }
    }

    private static func end(_ end: Element, _ line: inout SummaryLine) {
        line.phrase("end of the archive's page")
        if end.attribute("complete") == "true" { line.append(", complete") }
        if let set = end.child("set", .resultSets) { page(set, &line) }
    }

    /// Appends the requested or returned page of a result set.
    static func page(_ set: Element, _ line: inout SummaryLine) {
        line.append(after: ", at most ", text: set.childText("max", .resultSets))
        if let before = set.childText("before", .resultSets) {
            line.append(before.isEmpty ? ", the last page" : ", before ")
            line.append(text: before)
        }
        line.append(after: ", after ", text: set.childText("after", .resultSets))
        line.append(after: ", ", text: set.childText("count", .resultSets))
        if set.child("count", .resultSets) != nil { line.append(" in all") }
        line.append(after: ", up to ", text: set.childText("last", .resultSets))
    }
}
