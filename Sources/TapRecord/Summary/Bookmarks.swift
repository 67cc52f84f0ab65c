import XMPPCore

// Bookmarks, old and new, and what else is stored in private.
extension SummaryFormatter {
    static let bookmarks: [SummaryFormatter] = [
        SummaryFormatter("XEP-0402", .bookmarks) { bookmark, line in
            line.phrase("bookmark")
            line.append(after: " as ", text: bookmark.childText("nick", .bookmarks))
            if bookmark.attribute("autojoin") == "true" { line.append(", joined at login") }
        },
        SummaryFormatter("XEP-0048", .bookmarksStorage) { storage, line in
            guard !line.isType("get") else { return line.phrase("bookmarks") }
            line.asymmetric()
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
}
