import XMPPCore

// The roster (RFC 6121 §2), and contacts proposed by others.
extension SummaryFormatter {
    static let contacts: [SummaryFormatter] = [
        SummaryFormatter("RFC 6121", .roster) { query, line in
            let items = query.children("item", .roster)
            if line.isType("get") {
                line.phrase("asks for the roster")
            } else if line.isType("set"), let item = items.first {
                change(item, &line)
            } else if line.context.direction == .send, items.isEmpty {
                // slixmpp answers a push with an empty query.
                line.done()
            } else {
                line.phrase("roster: ")
                line.append(items, "contact", "contacts") { $0.attribute("jid") }
            }
        },
        SummaryFormatter("XEP-0144", .rosterExchange) { exchange, line in
            line.phrase("suggests ")
            line.append(exchange.children("item", .rosterExchange), "contact", "contacts") { $0.attribute("jid") }
        },
        SummaryFormatter("XEP-0016", .privacy) { query, line in
            line.verb(set: "sets ", get: "asks for ")
            line.append("privacy lists")
            line.append(some: query.children.prefix(3).compactMap { $0.attribute("name") }, of: query.elementCount)
        },
    ]

    /// A request to change a contact, or the server's word that one has changed.
    private static func change(_ item: Element, _ line: inout SummaryLine) {
        let subscription = item.attribute("subscription")
        let isPush = line.context.direction == .recv
        if subscription == "remove" {
            line.phrase(isPush ? "roster push:" : "removes contact")
            line.append(after: " ", "jid", of: item)
            return line.append(isPush ? " removed" : "")
        }
        line.phrase(isPush ? "roster push:" : "sets contact")
        line.append(after: " ", "jid", of: item)
        line.append(after: ", subscription ", text: subscription)
        if item.attribute("ask") == "subscribe" { line.append(", request pending") }
        if item.attribute("approved") == "true" { line.append(", pre-approved") }
        let groups = item.count("group", .roster)
        guard groups > 0 else { return }
        line.append(", in ")
        line.append(count: groups, "group", "groups")
    }
}
