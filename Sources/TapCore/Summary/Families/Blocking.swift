import XMPPCore

// Blocked addresses.
extension SummaryFamily {
    static let blocking: [SummaryFamily] = [
        SummaryFamily("XEP-0191", .blocking) { list, line in
            let items = list.children("item", .blocking)
            switch list.name {
            case "blocklist":
                guard !line.isRequest else { return line.phrase("asks whom it blocks") }
                line.phrase("blocks ")
            case "block": line.phrase("blocks ")
            case "unblock":
                line.phrase("unblocks ")
                if items.isEmpty { return line.append("all") }
            default: return line.appendName(list)
            }
            line.append(items, "address", "addresses") { $0.attribute("jid") }
        },
        SummaryFamily("XEP-0191", .blockingErrors) { _, line in line.phrase("blocked") },
        SummaryFamily("XEP-0377", .reporting) { report, line in
            line.phrase("report")
            line.append(after: " of ", "reason", of: report)
        },
    ]
}
