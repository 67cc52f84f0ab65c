internal import HTTPTypes
internal import HummingbirdCore
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

// The routes by which a page acts on sessions, with `--web-act`: those of the control service, and those of the tray.
extension Route {
    /// Maximum number of bytes of held stanzas in an answer, except the first one.
    private static let maximumHeldBytes = 4 << 20
    /// Maximum number of pauses in an answer.
    private static let maximumPauses = 200

    static func actions(_ actions: PageActions) -> [Route] {
        let context = actions.context
        return sessions(context) + commands(context) + held(context, for: .page) { actions.notePause() }
            + level(context) + rules(context) + [tray(actions), closing(actions)]
    }

    /// The held stanzas of all sessions, and the pauses that pages have set. The page that asks counts as open.
    private static func tray(_ actions: PageActions) -> Route {
        Route(method: .get, path: "/page/held", query: ["page"]) { request in
            actions.see(try pageName(request.query("page")))
            let holdings = await actions.context.sessions.holdings()
            let pauses = holdings.filter { $0.pause?.owner == .page }
            return .json { line in
                var (bytes, omitted) = (0, 0)
                line.field("held")
                line.openArray()
                for holding in holdings {
                    for item in holding.items {
                        bytes += item.bytes.count
                        guard bytes <= maximumHeldBytes || bytes == item.bytes.count else {
                            omitted += 1
                            continue
                        }
                        line.openObject()
                        line.field("session", holding.session)
                        item.append(to: &line, at: holding.now)
                        line.field("paused_by_page", item.pause?.owner == .page)
                        line.field("stanza", item.bytes.span.bytes, orBase64: "base64")
                        line.closeObject()
                    }
                }
                line.closeArray()
                line.field("omitted", omitted)
                line.field("pauses", pauses.prefix(maximumPauses)) { line, holding in
                    line.field("session", holding.session)
                    if let direction = holding.pause?.direction { line.field("direction", literal: direction.name) }
                    line.field("filter", holding.pause?.text ?? "")
                    line.field("left", holding.left)
                }
                line.field("omitted_pauses", max(0, pauses.count - maximumPauses))
            }
        }
    }

    /// A page says that it is closed. It cannot wait for an answer.
    private static func closing(_ actions: PageActions) -> Route {
        Route(method: .post, path: "/page/closed") { request in
            let body = try await request.body()
            try body.allow("page")
            await actions.close(try pageName(try body.text("page")))
            return Response(status: .noContent)
        }
    }

    private static func pageName(_ name: String?) throws(Problem) -> String {
        guard let name, !name.isEmpty, name.utf8.count <= PageActions.maximumName else {
            throw .bad("page must be the identifier of a page, of at most \(PageActions.maximumName) bytes")
        }
        return name
    }
}
