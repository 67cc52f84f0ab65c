import XMPPCore

// Chat rooms (XEP-0045), invitations, bookmarks, and other private storage.
extension SummaryFormatter {
    static let rooms: [SummaryFormatter] = [
        SummaryFormatter("XEP-0045", .muc) { x, line in
            guard x.isNamed("x") else { return line.appendName(x) }
            guard !line.isType("error") else { return line.phrase("could not join the room") }
            line.phrase(line.isType("unavailable") ? "leaves the room" : "joins the room")
            if x.child("password", .muc) != nil { line.append(" with a password") }
            for (name, unit) in [("maxstanzas", "messages"), ("maxchars", "characters"), ("seconds", "s")] {
                guard let history = x.child("history", .muc)?.attributes.first(where: { $0.name == name }) else {
                    continue
                }
                line.append(after: ", history of ", text: history.value)
                line.append(trusted: " \(unit)")
            }
        },
        SummaryFormatter("XEP-0045", .mucUser) { x, line in
            if x.isNamed("x") { occupant(x, &line) } else { line.appendName(x) }
        },
        SummaryFormatter("XEP-0045", .mucAdmin) { query, line in
            let items = query.children("item", .mucAdmin)
            guard let first = items.first else { return line.phrase("empty list") }
            if line.isType("get") {
                line.phrase("asks for users with", after: " affiliation ", "affiliation", of: first)
                return line.append(after: " role ", "role", of: first)
            }
            guard line.isType("set") else {
                line.phrase("list of ")
                return line.append(items, "person", "persons") { $0.attribute("jid") ?? $0.attribute("nick") }
            }
            for item in items.prefix(3) { change(item, &line) }
        },
        SummaryFormatter("XEP-0045", .mucOwner) { query, line in
            if let destroy = query.child("destroy", .mucOwner) {
                line.phrase("destroys the room")
                return line.append(after: ", moves to ", "jid", of: destroy)
            }
            guard line.isType("set") else {
                return line.phrase(line.isRequest ? "asks for the room's settings" : "settings of the room")
            }
            let form = query.child("x", .dataForms)
            if form?.attribute("type") == "cancel" { return line.phrase("cancels the room's settings") }
            let fields = form?.count("field", .dataForms) ?? 0
            guard fields > 0 else { return line.phrase("accepts the room's default settings") }
            line.phrase("sets the room's settings, ")
            line.append(count: fields, "field", "fields")
        },
        SummaryFormatter("XEP-0249", .conference) { x, line in
            line.phrase("invites to ")
            line.append(text: x.attribute("jid") ?? "a room")
        },
        SummaryFormatter("XEP-0402", .bookmarks) { bookmark, line in
            line.phrase("bookmark", after: " as ", text: bookmark.childText("nick", .bookmarks))
            if bookmark.attribute("autojoin") == "true" { line.append(", joined at login") }
        },
        SummaryFormatter("XEP-0048", .bookmarksStorage) { storage, line in
            guard !line.isType("get") else { return line.phrase("bookmarks") }
            line.separate()
            line.append(storage.children("conference", .bookmarksStorage), "bookmark", "bookmarks") {
                $0.attribute("jid")
            }
        },
        SummaryFormatter("XEP-0049", .privateStorage) { query, line in
            line.verb(set: "stores private XML: ", get: "asks for private XML: ")
            guard let payload = query.firstChild else { return line.append("nothing") }
            line.append(within: payload)
        },
    ]

    /// Appends the action of a moderator or owner (XEP-0045 §8, §9): `kicks montague`, `gives a@b affiliation member`.
    private static func change(_ item: Element, _ line: inout SummaryLine) {
        let isKick = item.attribute("role", is: "none")
        let isBan = item.attribute("affiliation", is: "outcast")
        line.phrase(isKick ? "kicks" : isBan ? "bans" : "gives", text: item.attribute("jid") ?? item.attribute("nick"))
        guard !isKick, !isBan else { return }
        line.append(after: " affiliation ", "affiliation", of: item)
        line.append(after: " role ", "role", of: item)
    }

    private static func occupant(_ x: Element, _ line: inout SummaryLine) {
        var codes = x.children("status", .mucUser).prefix(6).compactMap { $0.attribute("code") }
        if line.stanza?.isNamed("presence") ?? false {
            let item = x.child("item", .mucUser)
            if line.isType("unavailable") {
                leave(x, item, &codes, &line)
            } else {
                line.phrase("in the room")
                if let item { standing(item, &line) }
            }
        } else if let item = x.child("item", .mucUser), let person = item.attribute("jid") ?? item.attribute("nick") {
            // A change of the affiliation of a user who is not in the room (XEP-0045 §9.3).
            line.separate()
            line.append(text: person)
            line.append(after: " has affiliation ", "affiliation", of: item)
        }
        for child in x.children.prefix(8) {
            switch child.name {
            case "invite":
                line.phrase("invitation", after: " from ", "from", of: child)
                line.append(after: " to ", "to", of: child)
            case "decline":
                line.phrase("invitation declined", after: " by ", "from", of: child)
                line.append(after: " to ", "to", of: child)
            default: break
            }
        }
        for code in codes {
            line.separate()
            line.append(meaning(ofStatus: code))
            line.append(inBrackets: code)
        }
    }

    /// Appends the reason for leaving, and removes its status code from `codes`.
    private static func leave(_ x: Element, _ item: Element?, _ codes: inout [String], _ line: inout SummaryLine) {
        if let destroy = x.child("destroy", .mucUser) {
            line.phrase("the room is destroyed")
            return line.append(after: ", moved to ", "jid", of: destroy)
        }
        let reasons: [(code: String, text: StaticString)] = [
            ("303", "changes nickname to "), ("301", "banned from the room (301)"),
            ("307", "kicked out of the room (307)"),
        ]
        if let reason = reasons.first(where: { codes.contains($0.code) }) {
            line.phrase(reason.text)
            codes.removeAll { $0 == reason.code }
            if reason.code == "303" { return line.append(text: item?.attribute("nick") ?? "another (303)") }
        } else {
            line.phrase("leaves the room")
        }
        line.append(
            after: " by ",
            text: item?.child("actor", .mucUser).flatMap { $0.attribute("nick") ?? $0.attribute("jid") }
        )
    }

    /// Appends affiliation, role and real JID: `: member, participant, really romeo@example.org/garden`.
    private static func standing(_ item: Element, _ line: inout SummaryLine) {
        let names = [item.attribute("affiliation"), item.attribute("role")].compactMap { $0 }.filter { $0 != "none" }
        line.append(some: names, of: names.count)
        line.append(after: ", really ", "jid", of: item)
    }

    /// Returns the meaning of a status code (XEP-0045 §15.6).
    private static func meaning(ofStatus code: String) -> StaticString {
        switch Int(code) {
        case 100: "everyone sees real JIDs"
        case 101: "affiliation changed while away"
        case 102: "shows unavailable members"
        case 103: "does not show unavailable members"
        case 104: "settings changed"
        case 110: "your own presence"
        case 170: "the room is logged"
        case 171: "the room is no longer logged"
        case 172: "the room is not anonymous now"
        case 173: "the room is semi-anonymous now"
        case 174: "the room is fully anonymous now"
        case 201: "room created"
        case 210: "nickname given by the room"
        case 301: "banned"
        case 307: "kicked"
        case 321: "affiliation changed"
        case 322: "the room is for members only now"
        case 332: "the service shuts down"
        case 333: "connection lost"
        default: "status"
        }
    }
}
