internal import TapCapture
internal import TapCore
internal import TapRecord
internal import TapRules

/// The inspector in a terminal: its views, and what connects them. It takes keys and draws screens, and uses no terminal.
struct Inspector {
    enum View: Hashable {
        case sessions, records, diagram, detail, keys, messages
    }

    /// An action that only the owner of the terminal can perform.
    enum Request: Hashable {
        case quit
        case suspend
        /// Draw the whole screen again.
        case redraw
        /// Edit a held stanza with the user's editor.
        case edit(HeldStanzas.Stanza)
    }

    /// The smallest terminal.
    static let smallest = (width: 60, height: 10)
    private static let troubles = "level:warn or type:error"
    /// How long a message stays.
    private static let timeToRead = Duration.seconds(6)
    /// How long a step of a search lasts, so that keys are answered in the meantime.
    private static let step = Duration.milliseconds(8)

    private let messages: TerminalMessages
    private let held: HeldStanzas?
    private let zone: LocalZone
    private var isUTC = false
    private var context: ViewContext

    private(set) var view = View.sessions
    /// The view under the list of keys or messages.
    private var under = View.sessions
    /// The view from which the details were opened.
    private var origin = View.records
    private var sessions = SessionsView()
    private var records: RecordsView
    private var diagram = DiagramView()
    private var detail = DetailView()
    /// The first line of the list of keys or messages.
    private var scrolled = 0
    /// The line that is edited; nil if keys are commands.
    private var box: FilterBox?
    private var said: (text: String, until: ContinuousClock.Instant)?
    /// The start of the search for the next error or warning.
    private var seeking: (position: Int, backwards: Bool)?
    /// The record that is shown without a filter, if that hides it.
    private var revealing: Int?
    private var area = Area(top: 2, height: 6)
    private var width = 80
    private var isTooSmall = false
    /// The state that was drawn last.
    private var drawn = News()

    /// The parts of the state that change without keys.
    private struct News: Equatable {
        var end = 0
        var first = 0
        var messages = 0
        var held = 0
        var read: UInt64 = 0
        var hasSaid = false
    }

    /// Creates an inspector that shows the sessions.
    ///
    /// - Parameters:
    ///   - messages: The messages of xmpptap.
    ///   - held: The held stanzas of a running proxy; nil for files.
    ///   - zone: The zone of this machine.
    init(
        _ inspection: Inspection,
        messages: TerminalMessages = TerminalMessages(),
        held: HeldStanzas? = nil,
        zone: LocalZone
    ) {
        self.messages = messages
        self.held = held
        self.zone = zone
        context = ViewContext(inspection: inspection, clock: Clock(zone: zone))
        records = RecordsView(isLive: inspection.subject.isLive)
    }

    // MARK: Keys

    /// Handles a key.
    ///
    /// - Returns: A request to the owner of the terminal.
    mutating func handle(_ key: Key) -> Request? {
        if key == .control("c") { return .quit }
        if key == .control("z") { return .suspend }
        if key == .control("l") { return .redraw }
        guard box == nil else {
            edit(key)
            return nil
        }
        said = nil
        if key == .character("q") { return .quit }
        guard !isTooSmall else { return nil }
        if handleHeld(key) { return nil }
        if key == .character("e"), held != nil {
            if let stanza { return .edit(stanza) }
            tell("no stanza is held; H holds the next one")
            return nil
        }
        guard !handleCommon(key) else { return nil }
        handleInView(key)
        return nil
    }

    /// Handles a key that all views have; returns false if it is none.
    private mutating func handleCommon(_ key: Key) -> Bool {
        switch key {
        case .character("1"): open(.sessions)
        case .character("2"): open(.records)
        case .character("3"): openDiagram()
        case .character("?"), .function(1): cover(.keys)
        case .character("m"): cover(.messages)
        case .character("z"):
            isUTC.toggle()
            context.clock = Clock(zone: isUTC ? .utc : zone)
            detail.show(detail.position, context)
            tell(isUTC ? "times are in UTC" : "times are in the zone of this machine")
        case .character("w"), .character("W"): seek(backwards: key == .character("W"))
        case .character("/"):
            switch view {
            case .sessions: box = FilterBox(.sessions, sessions.search)
            case .records: box = FilterBox(.records, records.filter)
            default: return false
            }
        case .escape: goBack()
        default: return false
        }
        return true
    }

    private mutating func handleInView(_ key: Key) {
        switch view {
        case .sessions: perform(sessions.handle(key))
        case .records: handleInRecords(key)
        case .diagram: perform(diagram.handle(key, area, width, sessions.sessions, context))
        case .detail:
            switch key {
            case .character("n"), .character("p"): step(key == .character("n") ? 1 : -1)
            default: perform(detail.handle(key, context))
            }
        case .keys, .messages: scroll(key)
        }
    }

    private mutating func handleInRecords(_ key: Key) {
        switch key {
        case .character("c"): records.setFilter(nil)
        case .character("s"):
            guard let row = records.chosen(area, context), row.session > 0 else {
                return tell("this row belongs to no session")
            }
            narrow("session:\(row.session)")
        default: perform(records.handle(key, area, context))
        }
    }

    /// Scrolls the list of keys or messages.
    private mutating func scroll(_ key: Key) {
        switch key {
        case .down, .character("j"): scrolled += 1
        case .up, .character("k"): scrolled -= 1
        case .pageDown, .character(" "), .control("f"): scrolled += area.height
        case .pageUp, .control("b"): scrolled -= area.height
        case .home, .character("g"): scrolled = 0
        case .end, .character("G"): scrolled = .max / 2
        case .left, .character("h"), .enter: goBack()
        default: break
        }
        scrolled = max(0, scrolled)
    }

    /// Moves to the next record, or the one before, in the list from which the details were opened.
    private mutating func step(_ distance: Int) {
        let position =
            origin == .diagram
            ? diagram.step(distance, area, width, context) : records.step(distance, area, context)
        if let position { detail.show(position, context) }
    }

    // MARK: Held stanzas

    /// The held stanza that keys act on: one of the session in view, or else the oldest.
    private var stanza: HeldStanzas.Stanza? {
        let items = held?.items ?? []
        let session = currentSession
        return items.first { $0.session == session } ?? items.first
    }

    private var currentSession: UInt64? {
        switch view {
        case .sessions: sessions.session?.number
        case .records: records.list.row.flatMap { $0.session > 0 ? $0.session : nil }
        case .diagram: diagram.number > 0 ? diagram.number : nil
        case .detail: detail.session
        case .keys, .messages: nil
        }
    }

    private mutating func handleHeld(_ key: Key) -> Bool {
        guard let held else { return false }
        switch key {
        case .character("H"):
            if let session = currentSession { held.hold(session) } else { tell("select a session or a record first") }
        case .character("P"):
            if let stanza { held.release(stanza, .pass) } else { tell("no stanza is held") }
        case .character("D"):
            if let stanza { held.release(stanza, .drop) } else { tell("no stanza is held") }
        default: return false
        }
        return true
    }

    // MARK: The line for filters

    private mutating func edit(_ key: Key) {
        guard var box else { return }
        switch key {
        case .enter, .escape:
            // A filter with a mistake is not applied: the last good one stays.
            self.box = nil
            return
        case .up, .down, .pageUp, .pageDown:
            // The list can be moved while the filter is edited.
            if box.subject == .records { handleInRecords(key) } else { perform(sessions.handle(key)) }
            return
        default: break
        }
        guard box.handle(key) else { return }
        self.box = box
        switch box.subject {
        case .sessions: sessions.find(box.text)
        case .records: if case .some(let filter) = box.filter { records.setFilter(filter) }
        }
    }

    /// Adds a condition to the filter.
    private mutating func narrow(_ condition: String) {
        let old = records.filter.trimmed
        let text = old.isEmpty ? condition : RecordFilter.joined(old, condition)
        setFilter(text)
    }

    private mutating func setFilter(_ text: String) {
        do throws(FilterFault) {
            records.setFilter(text.isEmpty ? nil : try RecordFilter(text))
            open(.records)
        } catch { tell("\(error)") }
    }

    // MARK: Views

    private mutating func perform(_ request: ViewRequest?) {
        switch request {
        case .records(let session): setFilter("session:\(session)")
        case .diagram(let session):
            diagram.show(session)
            open(.diagram)
        case .detail(let position):
            origin = view
            detail.show(position, context)
            view = .detail
        case .reveal(let position): reveal(position)
        case .back: goBack()
        case .say(let text): tell(text)
        case nil: break
        }
    }

    private mutating func open(_ view: View) {
        self.view = view
        seeking = nil
    }

    private mutating func openDiagram() {
        if let session = currentSession, view != .diagram { diagram.show(session) }
        diagram.update(sessions.sessions)
        open(.diagram)
    }

    /// Shows the list of keys, or messages, over the view.
    private mutating func cover(_ view: View) {
        if self.view != .keys, self.view != .messages { under = self.view }
        self.view = view
        scrolled = view == .messages ? .max / 2 : 0
    }

    private mutating func goBack() {
        switch view {
        case .keys, .messages: view = under
        case .detail: view = origin
        case .records where !records.filter.isEmpty: records.setFilter(nil)
        case .sessions where !sessions.search.isEmpty: sessions.find("")
        case .records, .diagram, .sessions: open(.sessions)
        }
    }

    /// Shows a record, and selects it in the list.
    private mutating func reveal(_ position: Int) {
        if view == .detail { detail.show(position, context) }
        if view == .diagram || view == .detail && origin == .diagram {
            diagram.select(position: position)
            return
        }
        if view != .detail { open(.records) }
        records.select(position: position)
        revealing = position
    }

    private mutating func seek(backwards: Bool) {
        if view != .records, view != .detail { open(.records) }
        let known = view == .detail ? detail.position : records.list.position
        seeking = (known ?? (backwards ? context.inspection.table.range.upperBound : -1), backwards)
    }

    private mutating func tell(_ text: String) { said = (text, .now + Self.timeToRead) }

    // MARK: Work without keys

    /// Continues searches for a short time.
    ///
    /// - Returns: Whether there is more to do at once.
    mutating func advance() -> Bool {
        var hasMore = false
        if context.isLive { hasMore = context.inspection.extendSurvey(patience: Self.step) }
        if let (position, backwards) = seeking, let filter = try? RecordFilter(Self.troubles) {
            let found = context.inspection.nearest(
                filter,
                from: position,
                backwards: backwards,
                patience: Self.step
            )
            if let position = found.position {
                seeking = nil
                reveal(position)
            } else if found.isDone {
                seeking = nil
                tell(backwards ? "no earlier error or warning" : "no later error or warning")
            } else {
                hasMore = true
            }
        }
        if let position = revealing {
            let found = context.inspection.find(position, in: records.list.filter, patience: Self.step)
            if found.isKnown { revealing = nil } else { hasMore = true }
            if found.isKnown, !found.isFound, !records.filter.isEmpty {
                records.setFilter(nil)
                records.select(position: position)
                tell("the filter hides this record, so it was removed")
            }
        }
        switch view {
        case .records where records.list.isSearching:
            records.load(area, context)
            return true
        case .diagram where diagram.list.isSearching:
            diagram.load(area, width, context)
            return true
        default: return hasMore
        }
    }

    /// Whether the screen has to be drawn again, although no key was pressed.
    func hasNews() -> Bool {
        // The sessions are not read in each frame.
        news != drawn || (view == .sessions || view == .diagram) && sessions.isBehind(drawn.end)
    }

    private var news: News {
        let range = context.inspection.table.range
        return News(
            end: range.upperBound,
            first: range.lowerBound,
            messages: messages.newest.count,
            held: held?.version ?? 0,
            read: context.inspection.progress.read,
            hasSaid: (said?.until).map { $0 > .now } ?? false
        )
    }

    // MARK: Drawing

    /// Draws the view.
    mutating func draw(to screen: inout Screen) {
        drawn = news
        width = screen.width
        isTooSmall = screen.width < Self.smallest.width || screen.height < Self.smallest.height
        guard !isTooSmall else {
            let size = "\(Self.smallest.width) x \(Self.smallest.height)"
            screen.put("The terminal is too small.", x: 0, y: 0, style: .bold)
            screen.put("\(screen.width) x \(screen.height), needed: \(size)", x: 0, y: 1)
            screen.put("q quits", x: 0, y: 2)
            return
        }
        area = Area(top: 2, height: screen.height - 4)
        drawTitle(to: &screen)
        sessions.load(context)
        let status: String
        var hint = ""
        switch view {
        case .sessions:
            sessions.draw(area, context, to: &screen)
            status = sessions.status
            hint = sessions.hint(context)
        case .records:
            records.load(area, context)
            records.draw(area, context, to: &screen)
            status = records.status(context)
            if records.list.range.isEmpty { hint = records.list.isSearching ? "Searching …" : "No record matches." }
        case .diagram:
            diagram.update(sessions.sessions)
            diagram.load(area, width, context)
            diagram.draw(area, context, to: &screen)
            status = diagram.status(context)
        case .detail:
            detail.refresh(context)
            detail.draw(area, context, to: &screen)
            status = detail.status
        case .keys:
            status = "Keys"
            drawKeys(to: &screen)
        case .messages:
            status = "Messages of xmpptap"
            drawMessages(to: &screen)
        }
        screen.put(status + progress, x: 1, y: 1)
        if view == .records, !records.filter.isEmpty, box == nil {
            drawFilter(after: Columns.count(status + progress) + 3, to: &screen)
        }
        if !hint.isEmpty { drawHint(hint, to: &screen) }
        drawBottom(to: &screen)
    }

    private func drawTitle(to screen: inout Screen) {
        let subject = context.inspection.subject
        let tabs: [(View, String)] = [(.sessions, "1 Sessions"), (.records, "2 Records"), (.diagram, "3 Diagram")]
        let shown = view == .detail ? origin : view == .keys || view == .messages ? under : view
        // The current view is marked without colours, too.
        let right = tabs.map { $0.0 == shown ? "[\($0.1)]" : " \($0.1) " }.joined()
        let place = subject.server.isEmpty ? "" : " to \(subject.server)"
        let secrets = context.inspection.redaction.contains(RedactionPolicy.none.rawValue) ? " · secrets are shown" : ""
        let left = "\(subject.title)\(place) · \(subject.isLive ? "live" : "read-only")\(secrets)"
        let room = screen.width - Columns.count(right) - 3
        screen.put(left, x: 1, y: 0, limit: room)
        screen.put(right, x: screen.width - Columns.count(right) - 1, y: 0)
        screen.paint(row: 0, style: .title)
    }

    /// The progress of reading the files, for the status line.
    private var progress: String {
        let (read, size, _) = context.inspection.progress
        guard !context.isLive, read < size else { return "" }
        return " · reading the file, \(Words.percent(read, of: size))"
    }

    private func drawFilter(after start: Int, to screen: inout Screen) {
        guard start + 20 < screen.width else { return }
        screen.put("filter: \(records.filter)", x: start, y: 1, style: .bold)
    }

    private func drawHint(_ hint: String, to screen: inout Screen) {
        var y = area.top + 2
        screen.put(hint, x: 2, y: y)
        guard view == .sessions, context.isLive else { return }
        // Where to connect a client is among the messages.
        let lines = messages.lines.flatMap { Columns.wrapped($0, to: screen.width - 3) }
        for line in lines.suffix(max(0, area.height - 4)) {
            y += 1
            screen.put(escaped: line, x: 2, y: y, style: .dim)
        }
    }

    private mutating func drawKeys(to screen: inout Screen) {
        let lines = KeyList.lines(hasHeld: held != nil)
        scrolled = min(scrolled, max(0, lines.count - area.height))
        for (row, line) in lines.dropFirst(scrolled).prefix(area.height).enumerated() {
            let y = area.top + row
            screen.put(line.key, x: line.meaning.isEmpty ? 1 : 3, y: y, style: line.meaning.isEmpty ? .bold : .plain)
            screen.put(line.meaning, x: 24, y: y)
        }
    }

    private mutating func drawMessages(to screen: inout Screen) {
        let lines = messages.lines.flatMap { Columns.wrapped($0, to: screen.width - 3) }
        scrolled = min(scrolled, max(0, lines.count - area.height))
        if lines.isEmpty { screen.put("There are none.", x: 2, y: area.top, style: .dim) }
        for (row, line) in lines.dropFirst(scrolled).prefix(area.height).enumerated() {
            screen.put(escaped: line, x: 1, y: area.top + row)
        }
    }

    /// Draws the line for messages, and the keys of the view; or the line that is edited.
    private func drawBottom(to screen: inout Screen) {
        let y = screen.height - 2
        if let box {
            box.draw(y: y, to: &screen)
            return
        }
        let trouble = context.inspection.progress.trouble
        if let said, said.until > .now {
            screen.put(said.text, x: 1, y: y, style: .bold)
        } else if let stanza {
            let count = held?.items.count ?? 0
            let seconds = held?.remaining(stanza) ?? 0
            let text =
                "\(Words.plural(count, "stanza")) held (e edit, P pass, D drop): session \(stanza.session) "
                + "\(stanza.direction), passes in \(seconds) s: \(stanza.text)"
            screen.put(text, x: 1, y: y, style: .warned)
        } else if seeking != nil {
            screen.put("searching …", x: 1, y: y)
        } else if let trouble {
            screen.put(trouble, x: 1, y: y, style: .bad)
        } else if view != .messages, let line = messages.newest.line {
            screen.put(escaped: line, x: 1, y: y, style: .dim)
        }
        // These keys are always shown; the others as far as they fit.
        let last = "? keys  q quit"
        var text = ""
        for key in KeyList.bottom(view) where text.count + key.count + 2 + last.count < screen.width - 1 {
            text += "\(key)  "
        }
        screen.put(text + last, x: 1, y: screen.height - 1)
        screen.paint(row: screen.height - 1, style: .title)
    }
}
