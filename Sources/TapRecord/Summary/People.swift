import XMPPCore

// User profiles, contacts (RFC 6121 §2) and blocking.
extension SummaryFormatter {
    static let people: [SummaryFormatter] = [
        SummaryFormatter("RFC 6121", .roster) { query, line in
            let items = query.children("item", .roster)
            if line.isType("get") {
                // With a version, the server may send only the changes since then, as roster pushes (RFC 6121 §2.6.3).
                line.phrase(
                    query.attribute("ver").map { $0.isEmpty } ?? true
                        ? "asks for the roster" : "asks for changes to the roster"
                )
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
        SummaryFormatter("XEP-0191", .blocking) { list, line in
            let items = list.children("item", .blocking)
            guard list.name != "blocklist" || !line.isRequest else { return line.phrase("asks for the block list") }
            // The server notifies all clients of the account (XEP-0191 §3.3).
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
            line.phrase("report", after: " of ", "reason", of: report)
        },
        SummaryFormatter("XEP-0054", .vCard) { card, line in
            guard !line.isType("get") else { return line.phrase("asks for the vCard") }
            guard card.elementCount > 0 else {
                return line.phrase(line.isType("set") ? "empties the vCard" : "empty vCard")
            }
            line.phrase(line.isType("set") ? "sets the vCard" : "vCard")
            guard let photo = card.child("PHOTO", .vCard) else {
                return line.append(after: ", ", count: card.elementCount, "field", "fields")
            }
            line.append(", photo")
            line.append(after: " ", text: photo.childText("TYPE", .vCard))
            if let data = photo.child("BINVAL", .vCard) {
                line.append(" ")
                line.append(size: decodedSize(data))
            }
        },
        SummaryFormatter("XEP-0292", .vCard4) { card, line in
            guard !line.isType("get") else { return line.phrase("asks for the vCard") }
            line.phrase("vCard, ")
            line.append(count: card.elementCount, "field", "fields")
        },
        SummaryFormatter("XEP-0153", .vCardUpdate) { update, line in
            guard let photo = update.child("photo", .vCardUpdate) else { return }
            guard photo.textSize > 0 else { return line.phrase("no avatar") }
            line.phrase("avatar ")
            line.append(text: String(photo.text.prefix(8)))
        },
        SummaryFormatter("XEP-0084", .avatarMetadata) { metadata, line in
            let images = metadata.children("info", .avatarMetadata)
            guard let info = images.first else { return line.phrase("no avatar") }
            line.phrase("avatar", "type", of: info)
            line.append(after: " ", size: info.attribute("bytes"))
            if let width = info.attribute("width"), let height = info.attribute("height") {
                line.append(after: " ", text: "\(width.prefix(8))×\(height.prefix(8))")
            }
            guard images.count > 1 else { return }
            line.append(after: ", ", count: images.count, "image", "images")
        },
        SummaryFormatter("XEP-0084", .avatarData) { data, line in
            line.phrase("avatar data ")
            line.append(size: decodedSize(data))
        },
        SummaryFormatter("XEP-0172", .nick) { nick, line in
            line.phrase("nickname ")
            line.append(textOf: nick)
        },
        SummaryFormatter("XEP-0107", .mood) { mood, line in
            line.phrase("mood", text: mood.firstChild { !$0.isNamed("text") }?.name ?? "none")
        },
        SummaryFormatter("XEP-0108", .activity) { activity, line in
            line.phrase("activity", text: activity.firstChild { !$0.isNamed("text") }?.name ?? "none")
        },
        SummaryFormatter("XEP-0118", .tune) { tune, line in line.phrase(tune.children.isEmpty ? "no tune" : "tune") },
        SummaryFormatter("XEP-0080", .location) { location, line in
            line.phrase(location.children.isEmpty ? "no location" : "location")
        },
        SummaryFormatter("XEP-0319", .idle) { idle, line in line.phrase("idle", after: " since ", "since", of: idle) },
    ]

    /// Appends a request to change a contact, or the server's notification of a change.
    private static func change(_ item: Element, _ line: inout SummaryLine) {
        let subscription = item.attribute("subscription")
        let isPush = line.context.direction == .recv
        if subscription == "remove" {
            line.phrase(isPush ? "roster push:" : "removes contact", "jid", of: item)
            return line.append(isPush ? " removed" : "")
        }
        line.phrase(isPush ? "roster push:" : "sets contact", "jid", of: item)
        line.append(after: ", subscription ", text: subscription)
        if item.attribute("ask") == "subscribe" { line.append(", request pending") }
        if item.attribute("approved") == "true" { line.append(", pre-approved") }
        let groups = item.count("group", .roster)
        guard groups > 0 else { return }
        line.append(", in ")
        line.append(count: groups, "group", "groups")
    }

    /// Returns the decoded size of the base64 in an element, ignoring line breaks.
    static func decodedSize(_ element: Element) -> Int {
        var digits = 0
        element.forEachText { digits += $0.count - $0.countSpaces(and: 0x3D) }
        return digits / 4 * 3 + max(0, digits % 4 - 1)
    }
}
