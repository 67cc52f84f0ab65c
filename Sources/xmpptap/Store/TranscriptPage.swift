internal import TapRecord
internal import TapStore

/// Found messages as an HTML page that can be printed: the filters and files, then each conversation, with the copies of each
/// message and the digests of the stanzas.
///
/// The page has no scripts and loads nothing. Text from the wire is escaped.
struct TranscriptPage {
    /// A line at the top of the page: a name, and its value.
    typealias Fact = (name: String, value: String)

    private let zone: LocalZone
    private let hasContext: Bool
    private var conversations: [(conversation: Conversation, messages: [ShownMessage])] = []
    private var places: [Conversation: Int] = [:]

    /// - Parameters:
    ///   - zone: The zone of the times.
    ///   - hasContext: Whether messages are shown that do not match: matches are marked.
    init(zone: LocalZone, hasContext: Bool) {
        self.zone = zone
        self.hasContext = hasContext
    }

    /// Adds the next message.
    mutating func add(_ shown: ShownMessage) {
        let conversation = shown.message.row.conversation
        if let place = places[conversation] { return conversations[place].messages.append(shown) }
        places[conversation] = conversations.count
        conversations.append((conversation, [shown]))
    }

    /// Calls `write` with each piece of the page.
    ///
    /// - Parameters:
    ///   - facts: The filters, the files and the time of the search.
    ///   - warning: A warning about the result; nil if there is none.
    func write(_ facts: [Fact], warning: String?, to write: (String) -> Void) {
        write(
            """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"/><title>xmpptap search</title>
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
            <meta name="viewport" content="width=device-width"/>
            <style>
            \(HTMLText.palette)
            \(Self.style)
            </style></head><body>
            <h1>Messages found by xmpptap</h1>
            """
        )
        if let warning { write("<p class=\"bad\">\(HTMLText.escaped(warning))</p>") }
        write("<dl class=\"facts\">")
        for fact in facts + counts {
            write("<dt>\(HTMLText.escaped(fact.name))</dt><dd dir=\"auto\">\(HTMLText.lines(of: fact.value))</dd>")
        }
        write("</dl>")
        if conversations.count > 1 {
            write("<nav><h2>Conversations</h2><ol>")
            for (number, (conversation, messages)) in conversations.enumerated() {
                write(
                    "<li><a href=\"#c\(number + 1)\">\(Self.title(conversation))</a>, \(Plural.of(messages.count, "message"))</li>"
                )
            }
            write("</ol></nav>")
        }
        var count = 0
        for (number, (conversation, messages)) in conversations.enumerated() {
            write("<section id=\"c\(number + 1)\"><h2>\(Self.title(conversation))</h2>")
            for (place, shown) in messages.enumerated() {
                count += 1
                if hasContext, shown.beginsRange, place > 0 { write("<hr/>") }
                write(article(shown, number: count))
            }
            write("</section>")
        }
        write("</body></html>")
    }

    private var counts: [Fact] {
        let messages = conversations.flatMap(\.messages)
        let copies = messages.reduce(0) { $0 + $1.message.copies.count }
        let matches = messages.count { $0.isMatch }
        let digests = messages.flatMap { $0.message.copies.compactMap(\.digest) }
        let ofXML = digests.count { $0.isOfXML }
        var facts: [Fact] = [
            (
                "Messages",
                hasContext ? "\(matches) found, \(messages.count - matches) before and after them" : "\(messages.count)"
            ), ("Copies", "\(copies)"),
        ]
        let meaning =
            switch ofXML {
            case digests.count: "of the XML as recorded"
            case 0: "of the fields, because the XML is not known"
            default: "of the XML as recorded, or of the fields where the XML is not known, as noted"
            }
        facts.append(("SHA-256", "\(meaning); see 'xmpptap help audit'"))
        return facts
    }

    private static func title(_ conversation: Conversation) -> String {
        let (names, isRoom) =
            switch conversation {
            case .room(let room): ([room], true)
            case .people(let one, let other): (one == other ? [one] : [one, other], false)
            }
        return (isRoom ? "Room " : "") + names.map(Self.name).joined(separator: " and ")
    }

    /// An address or a nickname, whose direction does not affect the text around it.
    private static func name(_ text: String) -> String { "<bdi>\(HTMLText.escaped(text))</bdi>" }

    private func article(_ shown: ShownMessage, number: Int) -> String {
        let message = shown.message
        let row = message.row
        let isMarked = hasContext && shown.isMatch
        var html = "<article id=\"m\(number)\"\(isMarked ? " class=\"match\"" : "")><header>"
        html += "<a href=\"#m\(number)\">\(number)</a> \(time(row.time)) <b>\(Self.name(message.senderName))</b>"
        if !row.isOfRoom { html += " to \(Self.name(row.receiver))" }
        if isMarked { html += " <mark>found</mark>" }
        if row.seen != row.time { html += " <i>delayed; seen \(time(row.seen))</i>" }
        if let action = row.action {
            let rule = row.rule.map { " by \(Self.name($0))" } ?? ""
            html += " <i class=\"warn\">\(HTMLText.escaped(action))\(rule)</i>"
        }
        html += "</header>"
        if let subject = row.subject { html += "<p dir=\"auto\"><b>\(HTMLText.lines(of: subject))</b></p>" }
        if let body = row.body {
            html += "<p class=\"text\" dir=\"auto\">\(HTMLText.lines(of: body))</p>"
        } else {
            let answer = row.roundTrip.map { ", after \(LineBuffer.duration($0))" } ?? ""
            html += "<p class=\"text\"><code>\(HTMLText.escaped(message.description))</code>\(answer)</p>"
        }
        html += "<ul>"
        for copy in message.copies { html += line(copy) }
        return html + "</ul></article>"
    }

    private func line(_ copy: FoundMessage.Copy) -> String {
        let way =
            switch copy.source {
            case .live: copy.isSent ? "sent" : "received"
            case .carbon: "carbon copy"
            case .archive: "from an archive"
            }
        let tap = copy.tap.map { ", seen by \(HTMLText.escaped($0))" } ?? ""
        var html = "<li>\(Self.name(copy.account)): \(way)\(tap), run <code>\(HTMLText.escaped(copy.run))</code>, "
        html += "session \(copy.session), number \(copy.sequence)"
        if let digest = copy.digest {
            html += "; SHA-256 of the \(digest.isOfXML ? "XML" : "fields") <code>\(digest.text)</code>"
        }
        return html + "</li>"
    }

    /// Date and time with the zone, and in UTC as the title.
    private func time(_ time: Timestamp) -> String {
        let local = time.stamp(in: zone).replacing("T", with: " ", maxReplacements: 1)
        return "<time datetime=\"\(time.text)\" title=\"\(time.text)\">\(local)</time>"
    }

    private static let style = """
        body { max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem; background: var(--paper); color: var(--ink);
        font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
        h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin: 1.8rem 0 .4rem } a { color: inherit }
        .facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; padding: .8rem 1rem;
        border: 1px solid var(--lane); border-radius: .3rem } dt { color: var(--faint) } dd { margin: 0 }
        article { margin: 0; padding: .5rem .8rem; border-top: 1px solid var(--lane); border-left: 3px solid transparent }
        .match { border-left-color: var(--tap) } mark { background: none; color: var(--tap); font-size: .8rem; font-weight: bold }
        header, ul { color: var(--faint); font-size: .85rem } header b { color: var(--ink); font-size: .95rem }
        header a { text-decoration: none; font-variant-numeric: tabular-nums } time { font-variant-numeric: tabular-nums }
        header i { font-style: normal } .warn { color: var(--tap) } .bad { color: var(--bad); font-weight: bold }
        p { margin: .2rem 0 } .text { white-space: pre-wrap } ul { margin: .2rem 0 0; padding-left: 1.2rem }
        code { font: .9em ui-monospace, Menlo, Consolas, monospace } hr { border: 0; border-top: 3px double var(--lane) }
        .c { border: 1px solid var(--bad); border-radius: .2rem; color: var(--bad); font-size: .75em; padding: 0 .2em;
        unicode-bidi: isolate; direction: ltr; display: inline-block }
        @media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --faint: #444; --lane: #999; --tap: #7a4400;
        --bad: #900 } body { max-width: none; margin: 0; font-size: 10pt } article { break-inside: avoid }
        h2 { break-after: avoid } time::after { content: " (" attr(title) ")" } header a, nav a { text-decoration: none } }
        """
}
