internal import TapCapture
internal import TapDiagnosis
internal import TapRecord

/// The view with all sessions.
struct SessionsView {
    /// Maximum number of sessions that are read again in each frame; more of them less often.
    private static let fewSessions = 500

    private var all: [InspectedSession] = []
    private var shown: [InspectedSession] = []
    private var answer: (omitted: Int, surveyed: Int, end: Int) = (0, 0, 0)
    private(set) var search = ""
    /// The number of the selected session; nil selects the first one.
    private var selected: UInt64?
    private var top = 0
    private var height = 1
    /// When the sessions are read again.
    private var due = ContinuousClock.now

    /// The selected session.
    var session: InspectedSession? { place.map { shown[$0] } }

    /// The sessions in the order of their first records.
    var sessions: [InspectedSession] { all }

    /// Whether not all records are counted yet.
    private var isBehind: Bool { isBehind(answer.end) }

    /// Whether records before a position are not counted yet.
    func isBehind(_ end: Int) -> Bool { answer.surveyed < end }

    private var place: Int? {
        guard !shown.isEmpty else { return nil }
        return shown.firstIndex { $0.number == selected } ?? 0
    }

    // MARK: Loading

    /// Reads the sessions.
    mutating func load(_ context: ViewContext) {
        let now = ContinuousClock.now
        guard now >= due || all.isEmpty else { return }
        due = now + .milliseconds(all.count <= Self.fewSessions ? 100 : 1000)
        let found = context.inspection.sessions(patience: context.patience)
        answer = (found.omitted, found.surveyed, found.end)
        all = found.sessions
        arrange()
    }

    private mutating func arrange() {
        let words = search.lowercased().trimmed
        shown = words.isEmpty ? all : all.filter { Self.text(of: $0).contains(words) }
    }

    /// Returns the searched text of a session, in lower case; the same fields as on the page.
    private static func text(of session: InspectedSession) -> String {
        [
            InspectedSession.name(of: session.number), "\(session.number)", session.jid, session.remote,
            session.stateWords, session.software, session.server,
        ].joined(separator: " ").lowercased()
    }

    /// Shows only the sessions that contain a text.
    mutating func find(_ text: String) {
        // A session stays selected while the text hides it.
        if selected == nil { selected = session?.number }
        search = text
        arrange()
    }

    // MARK: Keys

    mutating func handle(_ key: Key) -> ViewRequest? {
        guard let place else { return nil }
        switch key {
        case .down, .character("j"): select(place + 1)
        case .up, .character("k"): select(place - 1)
        case .pageDown, .control("f"), .character(" "): select(place + height)
        case .pageUp, .control("b"): select(place - height)
        case .control("d"): select(place + max(1, height / 2))
        case .control("u"): select(place - max(1, height / 2))
        case .home, .character("g"): select(0)
        case .end, .character("G"): select(shown.count - 1)
        case .enter, .right, .character("l"):
            let session = shown[place]
            select(place)
            // A failed login is best seen as a diagram with its diagnosis.
            return session.failure == nil ? .records(session: session.number) : .diagram(session: session.number)
        case .character("d"):
            select(place)
            return .diagram(session: shown[place].number)
        default: return nil
        }
        return nil
    }

    private mutating func select(_ place: Int) {
        guard !shown.isEmpty else { return }
        selected = shown[min(max(0, place), shown.count - 1)].number
    }

    // MARK: Drawing

    /// A sentence about the list.
    var status: String {
        let failed = all.count { $0.failure != nil }
        let open = all.count { $0.state == .open }
        var parts = [
            search.trimmed.isEmpty
                ? Words.plural(all.count, "session")
                : "\(Words.count(shown.count)) of \(Words.plural(all.count, "session"))"
        ]
        if open > 0 { parts.append("\(Words.count(open)) open") }
        if failed > 0 { parts.append(Words.plural(failed, "failed login")) }
        if answer.omitted > 0 { parts.append("\(Words.count(answer.omitted)) more are not listed") }
        if isBehind { parts.append("reading, \(Words.percent(answer.surveyed, of: answer.end))") }
        return parts.joined(separator: " · ")
    }

    mutating func draw(_ area: Area, _ context: ViewContext, to screen: inout Screen) {
        height = max(1, area.height - 1)
        let columns = Self.columns(screen.width)
        Column.drawTitles(columns.map(\.column), y: area.top, to: &screen)
        let place = place ?? 0
        if place < top { top = place } else if place >= top + height { top = place - height + 1 }
        top = max(0, min(top, shown.count - height))
        for (row, session) in shown.dropFirst(top).prefix(height).enumerated() {
            let y = area.top + 1 + row
            let isSelected = top + row == place
            let style = isSelected ? .selected : session.style
            if isSelected { screen.put(">", x: 0, y: y, style: .selected) }
            let cells = columns.map { ($0.column, $0.text(session, context.clock)) }
            Column.draw(cells, x: 2, y: y, limit: screen.width, style: style, to: &screen)
            if isSelected { screen.paint(row: y, style: .selected) }
        }
    }

    /// A hint for an empty list.
    func hint(_ context: ViewContext) -> String {
        if !all.isEmpty { return shown.isEmpty ? "No session matches." : "" }
        return context.isLive
            ? "No client has connected yet. Connect one to the address that xmpptap has printed."
            : isBehind ? "Reading …" : "There are no sessions in these records."
    }

    private typealias Cell = (column: Column, text: (InspectedSession, Clock) -> String)

    private static func columns(_ width: Int) -> [Cell] {
        var cells: [Cell] = []
        func add(
            _ title: String,
            _ width: Int,
            isRight: Bool = false,
            _ text: @escaping (InspectedSession, Clock) -> String
        ) {
            cells.append((Column(title: title, width: width, isRight: isRight), text))
        }
        add("#", width < 80 ? 4 : 6) { session, _ in InspectedSession.name(of: session.number) }
        add("account", width < 80 ? 20 : width < 120 ? 24 : 34) { session, _ in session.who }
        let state = cells.count
        add("state", 0) { session, _ in session.stateWords }
        if width >= 80 { add("since", 8) { session, clock in clock.time(session.began, isShort: true) } }
        if width >= 140 { add("lasted", 10, isRight: true) { session, _ in LineBuffer.duration(session.duration) } }
        // The state of a session whose login failed names the cause: it keeps about 40 columns on wide terminals.
        if width >= 184 { add("TLS", 17) { session, _ in Self.tls(session) } }
        if width >= 80 {
            add("sent", 6, isRight: true) { session, _ in Words.count(session.sent.stanzas) }
            add("received", 8, isRight: true) { session, _ in Words.count(session.received.stanzas) }
        }
        if width >= 100 {
            add("errors", 6, isRight: true) { session, _ in session.errors > 0 ? Words.count(session.errors) : "" }
        }
        if width >= 120 {
            add("slowest", 8, isRight: true) { session, _ in
                session.slowest > 0 ? LineBuffer.duration(session.slowest) : ""
            }
        }
        if width >= 190 {
            add("peers", 5, isRight: true) { session, _ in session.peers > 0 ? Words.count(session.peers) : "" }
        }
        if width >= 160 {
            add("client", 24) { session, _ in session.software.isEmpty ? session.remote : session.software }
        }
        let taken = cells.reduce(2) { $0 + $1.column.width + 1 } - 1
        cells[state].column.width = max(8, width - taken)
        return cells
    }

    private static func tls(_ session: InspectedSession) -> String {
        func version(_ text: String) -> String { text.isEmpty ? "none" : text }
        guard session.clientTLS != session.serverTLS else { return version(session.clientTLS) }
        return "\(version(session.clientTLS)) | \(version(session.serverTLS))"
    }
}

extension String {
    /// The text without white space at both ends.
    var trimmed: String {
        let start = drop { $0.isWhitespace }
        return String(start.reversed().drop { $0.isWhitespace }.reversed())
    }
}
