import XMPPCore

// Blocked addresses.
extension SummaryFormatter {
    static let blocking: [SummaryFormatter] = [
        SummaryFormatter("XEP-0191", .blocking) { list, line in
            let items = list.children("item", .blocking)
            guard list.name != "blocklist" || !line.isRequest else { return line.phrase("asks for the block list") }
            // The server tells all clients of the account (XEP-0191 §3.3).
            line.phrase(line.isType("set") && line.context.direction == .recv ? "blocklist push: " : "")
            switch list.name {
            case "blocklist": line.append("blocks ")
            case "block": line.append("blocks ")
            case "unblock":
                line.append("unblocks ")
                if items.isEmpty { return line.append("all") }
            default: return line.appendName(list)
            }
            line.append(items, "address", "addresses") { $0.attribute("jid") }
        },
        SummaryFormatter("XEP-0191", .blockingErrors) { _, line in line.phrase("blocked") },
        SummaryFormatter("XEP-0377", .reporting) { report, line in
            line.phrase("report")
            line.append(after: " of ", "reason", of: report)
        },
    ]
}
