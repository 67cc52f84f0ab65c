/// The lanes of a diagram, and how arrows are drawn between them.
struct Lanes {
    /// The arrow of an item.
    struct Arrow {
        let sends: Bool
        /// Whether it is drawn between the client and xmpptap.
        var left: Bool
        /// Whether it is drawn between xmpptap and the server.
        var right: Bool
        /// Whether it does not arrive.
        var isStopped: Bool
    }

    /// Whether times are shown without milliseconds.
    let isShort: Bool
    private let width: Int
    private let client: Int
    /// The lane of xmpptap; nil if it did not relay the session.
    private let tap: Int?
    private let server: Int
    /// The first column of the login steps, which are beside the lanes; nil if the terminal is too narrow for that.
    private let margin: Int?

    init(width: Int, hasTap: Bool) {
        self.width = width
        isShort = width < 100
        let start = 2 + (width < 100 ? 8 : 12) + 1
        margin = width < 120 ? nil : start
        client = width < 120 ? start : start + 28
        server = max(client + 4, width - 2)
        tap = hasTap ? (client + server) / 2 : nil
    }

    func drawHeads(y: Int, to screen: inout Screen) {
        screen.put("time", x: 2, y: y, style: .dim)
        if let margin { screen.put("login", x: margin, y: y, style: .dim) }
        screen.put("client", x: client, y: y, style: .bold)
        if let tap { screen.put("xmpptap", x: max(client + 7, tap - 3), y: y, style: .bold) }
        screen.put("server", x: max(client + 15, server - 5), y: y, style: .bold)
    }

    func draw(y: Int, to screen: inout Screen) {
        for lane in [client, tap, server].compactMap({ $0 }) { screen.put("│", x: lane, y: y, style: .dim) }
    }

    /// Draws a completed login step.
    func drawStep(_ text: String, y: Int, style: Style, to screen: inout Screen) {
        if let margin {
            screen.put(text, x: margin, y: y, limit: client - margin - 1, style: style)
        } else {
            drawNote(text, y: y, style: style, to: &screen)
        }
    }

    /// Draws a text over the lanes.
    func drawNote(_ text: String, y: Int, style: Style, to screen: inout Screen) {
        screen.put(" ", x: client + 1, y: y)
        let used = screen.put(text, x: client + 2, y: y, limit: width - client - 2, style: style)
        screen.put(" ", x: client + 2 + used, y: y)
    }

    /// Draws an item; its label is on the side of the sender.
    func draw(_ arrow: Arrow, _ label: String, y: Int, style: Style, to screen: inout Screen) {
        guard let tap else { return draw(client, server, arrow, label, y: y, style: style, to: &screen) }
        let isLabelLeft = arrow.left && (arrow.sends || !arrow.right)
        if arrow.left { draw(client, tap, arrow, isLabelLeft ? label : "", y: y, style: style, to: &screen) }
        if arrow.right { draw(tap, server, arrow, isLabelLeft ? "" : label, y: y, style: style, to: &screen) }
    }

    private func draw(
        _ from: Int,
        _ to: Int,
        _ arrow: Arrow,
        _ label: String,
        y: Int,
        style: Style,
        to screen: inout Screen
    ) {
        let length = to - from - 1
        guard length > 2 else { return }
        screen.fill("─", x: from + 1, y: y, count: length, style: style)
        let head = arrow.isStopped ? "×" : arrow.sends ? "→" : "←"
        screen.put(head, x: arrow.sends ? to - 1 : from + 1, y: y, style: style)
        guard !label.isEmpty, length > 6 else { return }
        let start = from + 3
        screen.put(" ", x: start - 1, y: y)
        let used = screen.put(label, x: start, y: y, limit: length - 5, style: style)
        screen.put(" ", x: start + used, y: y)
    }
}
