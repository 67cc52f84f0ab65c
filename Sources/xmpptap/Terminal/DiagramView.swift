internal import TapCapture
internal import TapDiagnosis
internal import TapRecord
internal import TapRules

/// One session as a diagram: client, xmpptap and server as lanes. An arrow ends at the next lane.
struct DiagramView {
    /// Idle time from which a row says how long nothing happened, in nanoseconds.
    private static let longPause: Int64 = 10_000_000_000
    /// The actions on items that do not reach the other side.
    private static let stopping = ["dropped", "refused", "cut", "reset"]
    /// The kinds of records that are not drawn as arrows, although they have a direction.
    private static let notes = [Record.Kind.session, .note, .tls, .chunk].map(\.rawValue)

    /// The part of the session that is drawn.
    enum Scope: String, CaseIterable {
        case everything
        case login
        case stanzas
        case troubles = "errors and warnings"

        fileprivate var condition: String {
            switch self {
            case .everything: ""
            case .login: " and phase:handshake"
            case .stanzas: " and (stanza or level:warn)"
            case .troubles: " and level:warn"
            }
        }
    }

    /// The number of the session; 0 if none is chosen.
    private(set) var number: UInt64 = 0
    private var scope = Scope.everything
    private(set) var list = RowList()
    private var session: InspectedSession?

    /// Shows a session.
    mutating func show(_ session: UInt64) {
        guard session != number else { return }
        number = session
        self.session = nil
        list = RowList(filter)
    }

    private var filter: RecordFilter? { try? RecordFilter("session:\(number)\(scope.condition)") }

    /// Selects a record by its position.
    mutating func select(position: Int) { list.select(position: position) }

    /// Takes the figures of the session from a list.
    mutating func update(_ sessions: [InspectedSession]) {
        if number == 0, let first = sessions.first(where: { $0.failure != nil }) ?? sessions.first {
            show(first.number)
        }
        session = sessions.first { $0.number == number }
    }

    mutating func load(_ area: Area, _ width: Int, _ context: ViewContext) {
        let head = head(area, width, context).count
        guard number > 0 else { return }
        list.load(context.inspection, height: area.height - head - 1, patience: context.patience)
    }

    /// Selects the next row, or the one before, and returns its record.
    mutating func step(_ distance: Int, _ area: Area, _ width: Int, _ context: ViewContext) -> Int? {
        load(area, width, context)
        list.select((list.selected ?? list.top) + distance)
        load(area, width, context)
        return list.row?.position
    }

    // MARK: Keys

    mutating func handle(
        _ key: Key,
        _ area: Area,
        _ width: Int,
        _ sessions: [InspectedSession],
        _ context: ViewContext
    ) -> ViewRequest? {
        load(area, width, context)
        switch key {
        case .enter, .right:
            list.selectAny()
            load(area, width, context)
            return list.row.map { .detail(position: $0.position) }
        case .character("a"): return list.row.flatMap { RecordsView.partner(of: $0.position, context) }
        case .character("r"): return number > 0 ? .records(session: number) : nil
        case .character("l"):
            let place = Scope.allCases.firstIndex(of: scope) ?? 0
            scope = Scope.allCases[(place + 1) % Scope.allCases.count]
            list.setFilter(filter)
            return .say("drawn: \(scope.rawValue)")
        case .character("["), .character("]"):
            guard let place = sessions.firstIndex(where: { $0.number == number }) else { return nil }
            let next = place + (key == .character("]") ? 1 : -1)
            guard sessions.indices.contains(next) else { return .say("there is no other session") }
            return .diagram(session: sessions[next].number)
        case .character("x"):
            guard let failure = session?.failure else { return .say("the login has not failed") }
            list.select(position: failure.position)
            return nil
        case .left, .character("h"): return .back
        default:
            _ = list.move(key, follows: context.isLive)
            return nil
        }
    }

    // MARK: Drawing

    /// Returns the account and the state of the session, and the diagnosis of a failed login, as lines.
    private func head(_ area: Area, _ width: Int, _ context: ViewContext) -> [(text: String, style: Style)] {
        guard let session else { return [] }
        var names = [session.who]
        if !session.server.isEmpty { names.append("to \(session.server)") }
        if session.resumes > 0 { names.append("resumes session \(InspectedSession.name(of: session.resumes))") }
        if session.failure == nil { names.append(session.stateWords) }
        names.append("since \(context.clock.stamp(session.began).prefix(19))")
        var lines: [(text: String, style: Style)] = [(names.joined(separator: " · "), .plain)]
        guard let failure = session.failure else { return lines }
        // The diagram needs most of the rows.
        let limit = max(2, area.height / 6)
        func add(_ text: String, _ style: Style) {
            let wrapped = Columns.wrapped(LineBuffer.escaped(text), to: max(10, width - 2))
            lines += wrapped.prefix(limit).map { ($0, style) }
            if wrapped.count > limit { lines[lines.count - 1].text += "…" }
        }
        // The text of a server can end with a full stop.
        let finding = failure.finding.hasSuffix(".") ? failure.finding : "\(failure.finding)."
        add("The login failed at \(failure.step): \(finding)", .bad)
        // An audit store has the cause only.
        if !failure.side.isEmpty { add(Self.fault(failure), .plain) }
        if let advice = failure.advice { add("Try: \(advice)", .bold) }
        return lines
    }

    /// A sentence that names the side which is at fault.
    static func fault(_ failure: InspectedSession.Failure) -> String {
        let name: String
        switch LoginCause.Side(rawValue: failure.side) {
        case .unknown: return "The records do not show who is at fault."
        case .tap: name = failure.side
        case .client, .server, .network, nil: name = "The \(failure.side)"
        }
        let rule = failure.rule.map { " (\($0))" } ?? ""
        return "\(name) is at fault\(rule)\(failure.isProxyTheCause == false ? "; xmpptap is not the cause" : "")."
    }

    /// A sentence about the diagram.
    func status(_ context: ViewContext) -> String {
        guard number > 0 else { return "no sessions yet" }
        var parts = ["session \(InspectedSession.name(of: number))", scope.rawValue]
        parts.append(Words.plural(list.range.count, "record"))
        if list.isSearching { parts.append("searching") }
        if list.isFollowing {
            parts.append("following")
        } else if list.below > 0 {
            parts.append("\(Words.count(list.below)) below")
        }
        return parts.joined(separator: " · ")
    }

    func draw(_ area: Area, _ context: ViewContext, to screen: inout Screen) {
        var y = area.top
        let end = area.top + area.height
        for (index, line) in head(area, screen.width, context).enumerated() where y < end - 2 {
            // The first line has texts from the wire; the others are escaped and wrapped.
            if index == 0 {
                screen.put(line.text, x: 1, y: y, style: line.style)
            } else {
                screen.put(escaped: line.text, x: 1, y: y, style: line.style)
            }
            y += 1
        }
        let lanes = Lanes(width: screen.width, hasTap: session?.source.isEmpty ?? true)
        guard y < end else { return }
        lanes.drawHeads(y: y, to: &screen)
        y += 1
        for index in list.top..<list.top + list.height {
            guard y < end, index < list.range.upperBound else { break }
            draw(index, y, lanes, context, to: &screen)
            y += 1
        }
    }

    private func draw(_ index: Int, _ y: Int, _ lanes: Lanes, _ context: ViewContext, to screen: inout Screen) {
        guard let row = list[index] else {
            screen.put(index < list.range.lowerBound ? "no longer kept" : "…", x: 2, y: y, style: .dim)
            return
        }
        screen.put(context.clock.time(row.time, isShort: lanes.isShort), x: 2, y: y, style: .dim)
        lanes.draw(y: y, to: &screen)
        let pause = context.clock.pause(list[index - 1], row, from: Self.longPause)
        let label = row.contents.isEmpty ? row.item : "\(row.item) \(row.contents)"
        if row.isStep {
            let (sign, style): (OutputStyle.Mark, Style) =
                switch row.stepResult {
                case .ok: (.done, .good)
                case .skipped: (.skipped, .dim)
                case .failed, nil: (.failed, .bad)
                }
            lanes.drawStep("\(sign.rawValue) \(row.text)", y: y, style: style, to: &screen)
        } else if let direction = row.direction, !Self.notes.contains(row.kind) {
            let mark =
                row.action.isEmpty
                ? (row.code == "inferred" ? " [inferred]" : row.mark.isEmpty ? "" : " [xmpptap]") : " [\(row.action)]"
            lanes.draw(Self.arrow(row, direction), pause + label + mark, y: y, style: row.style, to: &screen)
        } else {
            lanes.drawNote(pause + label, y: y, style: row.style, to: &screen)
        }
        guard index == list.selected else { return }
        screen.put(">", x: 0, y: y)
        screen.paint(row: y, style: .selected)
    }

    /// Which halves of the diagram have an arrow: from the client to xmpptap, from xmpptap to the server, or back.
    private static func arrow(_ row: RecordRow, _ direction: Direction) -> Lanes.Arrow {
        let sends = direction == .send
        var arrow = Lanes.Arrow(sends: sends, left: true, right: true, isStopped: false)
        if row.isOwn, row.code != "inferred" {
            arrow.left = row.leg.map { $0 == .client } ?? !sends
            arrow.right = !arrow.left
        }
        arrow.isStopped = stopping.contains(row.action)
        if arrow.isStopped || row.action == "answered" {
            arrow.left = sends
            arrow.right = !sends
        }
        return arrow
    }
}
