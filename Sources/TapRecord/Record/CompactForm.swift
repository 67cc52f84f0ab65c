internal import XMPPCore

/// Writes records as rows of columns for a terminal, and cuts each row to the terminal's width.
///
/// ```
/// ── 2026-11-27 +01:00 ───────────────────────────────────────────────────────────
/// ── 1 · romeo@localhost/balcony ← 127.0.0.1:58884 → localhost:5222 ──────────────
/// 11:30:25.387  ←  features          offers sasl (SCRAM-SHA-256 SCRAM-SHA-1 PLAIN)   257 B
/// 11:30:25.400  ✓  login             SCRAM-SHA-256                         14 ms
/// 11:30:25.402  ✓  ready             romeo@localhost/balcony               20 ms
/// 11:30:25.830  →  iq get            asks for the roster                              65 B  #3
/// 11:30:25.831  ←  iq result         roster: 2 contacts                   152 µs     257 B  #3
/// 11:30:28.512  ✗  iq error          service-unavailable: blocklist        74 µs     207 B  #7
/// ```
///
/// A day change, or a change of the offset from UTC, writes a line with the day and the offset before the next row. A
/// successful login is folded to its outcome, repeated rows are counted, and a request and its answer share a number
/// instead of their id. If a row lacks a round trip or a size, its text uses the columns of that figure. The session
/// column appears with the second session, and shows the account if there is space. The other forms show everything
/// that this form omits. The form needs all records of a log, in order. Texts from the wire are escaped
/// (``LineBuffer/appendEscaped(_:)-(RawSpan)``).
package struct CompactForm: ~Copyable, Sendable {
    /// The style of the rows; it may change from row to row.
    package var style: Style { didSet { grid = Grid(style.width) } }

    private var grid: Grid
    private var timestamps: TimestampWriter
    /// The day of the last row.
    private var day: TimestampWriter.Day?
    private var texts: TextForm
    private var sessions: [UInt64: SessionRows] = [:]
    /// A cache of `sessions`, indexed by the lowest bits of the session number.
    private var usual = [SessionRows?](repeating: nil, count: 64)
    /// The first open session of each account.
    private var accounts: [[UInt8]: SessionRows] = [:]
    /// Whether two sessions had the same account.
    private var hasSharedAccounts = false
    /// The session of the last row.
    private var lastSession: UInt64 = 0
    /// Whether rows name their session, because there have been several.
    private var hasSessionColumn = false
    /// The width of the highest session number, in columns.
    private var sessionColumns = 1
    /// The width of the highest pair number and the space before it, in columns.
    private var pairColumns = 5
    private var pairs = PairNumbers()
    private var repeated = RepeatedRow()
    // Buffers for the parts of a row, stored to reuse their memory.
    private var kind = LineBuffer(capacity: 32)
    private var text = LineBuffer(capacity: 256)
    private var row = LineBuffer()

    /// Creates a form with a style.
    package init(style: Style = Style()) {
        self.style = style
        grid = Grid(style.width)
        timestamps = TimestampWriter(zone: style.zone)
        var texts = TextForm.Style()
        texts.showsBodies = style.showsBodies
        texts.shortensIDs = true
        self.texts = TextForm(style: texts)
    }

    /// Appends the shown parts of a record; `content` holds its texts. Rows may be held back until later records
    /// determine their form: ``flush(to:)`` writes them.
    package mutating func append(
        _ record: borrowing Record,
        content: Span<UInt8>,
        _ shown: LogFilter.Shown,
        to line: inout LineBuffer
    ) {
        guard !shown.isEmpty else { return }
        let start = line.count
        defer { if style.isASCII { line.makeASCII(from: start) } }
        let session = record.session > 0 ? rows(of: record) : nil
        if let session, session.follow(record.jid) { compareAccount(of: session) }
        let showsXML = shown.contains(.xml) && record.kind != .whitespace
        // A user who selects XML, or more than summaries, also wants the steps of the login.
        if showsXML || record.level >= .verbose, let session { unfold(session, to: &line) }
        let mark = RowMark(record, content)
        let pair = pairs.number(of: record, content)
        if showsXML || !hold(record, content, session, mark, pair, to: &line) {
            write(record, content, session, mark, pair, countsRepetitions: !showsXML, to: &line)
            if showsXML { appendXML(record, content, to: &line) }
        }
        if record.code == Record.Code.sessionEnded { forget(record.session) }
    }

    /// Appends everything that is held back: the rows of pending logins, and the repetition count of the last row.
    package mutating func flush(to line: inout LineBuffer) {
        let start = line.count
        defer { if style.isASCII { line.makeASCII(from: start) } }
        unfold(Array(sessions.values), to: &line)
        closeRepetition(to: &line)
    }

    /// Appends the held rows of slow logins; `monotonic` is the current time, in nanoseconds since the run began.
    package mutating func unfold(at monotonic: Int64, to line: inout LineBuffer) {
        let start = line.count
        defer { if style.isASCII { line.makeASCII(from: start) } }
        unfold(sessions.values.filter { $0.held != nil && monotonic &- $0.began > Self.maximumFoldLength }, to: &line)
    }

    // MARK: Sessions

    /// The state of a session's rows. A class, so that each row looks it up only once. It is used by one form only,
    /// because forms cannot be copied.
    private final class SessionRows: @unchecked Sendable {
        let number: UInt64
        /// The time of the session's first record, in nanoseconds since the run began.
        let began: Int64
        /// The description of the session's origin: the addresses of client and server, the message of its first
        /// record, or only the client's address.
        let beginning: String
        /// The description used if ``beginning`` does not fit: the client's address.
        let address: String
        /// Whether ``beginning`` describes the connections of a relayed session.
        let isRelayed: Bool
        /// The claimed user name, until the JID is known.
        var user: String?
        /// Whether the line that introduces the session has been written.
        var isAnnounced = false
        /// The held rows of the login; nil once they are written.
        var held: [HeldRow]? = []
        /// The index of the row with the server's last features.
        var features: Int?
        /// The time at which the client began to authenticate, in nanoseconds since the run began.
        var authenticationBegan: Int64?
        /// The session's full JID, according to the last record; empty if it has none.
        private(set) var jid: [UInt8] = []
        /// The number of bytes of the JID before its resource, and the position of its `@`.
        private(set) var own: (length: Int, at: Int?) = (0, nil)
        /// Whether another open session has the same account.
        var sharesAccount = false { didSet { cell.columns = 0 } }
        /// The session's cell in rows, and the number of columns for which it was made.
        var cell: (bytes: [UInt8], columns: Int) = ([], 0)

        init(_ number: UInt64, began: Int64, beginning: String, address: String, isRelayed: Bool) {
            self.number = number
            self.began = began
            self.beginning = beginning
            self.address = address
            self.isRelayed = isRelayed
        }

        /// The bare JID of the session's account; empty if there is none.
        var account: [UInt8] { Array(jid.prefix(own.length)) }

        /// Updates the JID and the positions of its parts, if it has changed.
        ///
        /// - Returns: Whether the JID has changed.
        func follow(_ jid: String?) -> Bool {
            // Equal strings may differ in their bytes, and so in the positions of their parts.
            let last = self.jid
            guard jid?.withBytes({ !$0.equals(last.span) }) ?? !last.isEmpty else { return false }
            let bytes = Array((jid ?? "").utf8)
            let bare = bytes.span.untilSlash
            own = (bare.count, bare.firstIndex(of: 0x40))
            self.jid = bytes
            cell.columns = 0
            return true
        }
    }

    /// Marks the session, and another open session of the same account, as sessions that share the account.
    private mutating func compareAccount(of session: SessionRows) {
        let account = session.account
        guard !account.isEmpty else { return }
        guard let other = accounts[account], other !== session else { return accounts[account] = session }
        session.sharesAccount = true
        other.sharesAccount = true
        hasSharedAccounts = true
    }

    /// Forgets a session that has ended.
    private mutating func forget(_ number: UInt64) {
        if let session = sessions.removeValue(forKey: number), case let account = session.account,
            accounts[account] === session
        {
            accounts[account] = nil
        }
        usual[Int(number & 63)] = nil
    }

    /// A held row of a login; its layout is completed when the columns are known.
    private struct HeldRow: Sendable {
        let cells: Cells
        let kind: [UInt8]
        let text: [UInt8]
        /// Whether the row is also shown after a successful login.
        var isKept: Bool
    }

    private static let maximumHeldRows = 128
    private static let maximumSessions = 4096
    /// Duration after which a login is no longer held back, in nanoseconds.
    private static let maximumFoldLength: Int64 = 3_000_000_000

    private mutating func rows(of record: borrowing Record) -> SessionRows {
        let place = Int(record.session & 63)
        if let rows = usual[place], rows.number == record.session { return rows }
        let rows = sessions[record.session] ?? begin(record)
        usual[place] = rows
        return rows
    }

    private mutating func begin(_ record: borrowing Record) -> SessionRows {
        if sessions.count >= Self.maximumSessions {
            sessions.removeAll()
            accounts.removeAll()
            usual = usual.map { _ in nil }
        }
        let isBeginning = record.code == Record.Code.sessionBegan
        let address = record.remote ?? ""
        let upstream = isBeginning ? record.details?[Record.Detail.upstream]?.text : nil
        let rows = SessionRows(
            record.session,
            began: record.monotonic,
            beginning: upstream.map { "\(address) → \($0)" }
                ?? (isBeginning ? record.message.map { "\($0)" } ?? "" : address),
            address: address,
            isRelayed: upstream != nil
        )
        // A log that begins within a session has no login to fold.
        if !isBeginning || !style.foldsLogins { rows.held = nil }
        sessions[record.session] = rows
        // Several sessions may begin before a row has been written.
        if sessions.count > 1 || lastSession != 0 && lastSession != record.session { hasSessionColumn = true }
        sessionColumns = max(sessionColumns, min(record.session.decimalDigits, Self.maximumSessionColumns))
        return rows
    }

    /// Writes the line that introduces the rows of a session, unless it has been written.
    ///
    /// - Parameter time: The time of the first row.
    private mutating func announce(
        _ rows: SessionRows,
        _ who: String?,
        at time: Timestamp,
        to line: inout LineBuffer
    ) {
        guard !rows.isAnnounced else { return }
        rows.isAnnounced = true
        closeRepetition(to: &line)
        beginDay(of: time, to: &line)
        let width = max(20, style.width)
        for beginning in [rows.beginning, rows.address] {
            row.removeAll()
            row.append("── ")
            row.append(decimal: rows.number)
            if let name = who ?? rows.user {
                row.append(who == nil ? " · ~" : " · ")
                row.appendEscaped(name)
                row.append(rows.isRelayed ? " ← " : " · ")
            } else {
                row.append(" · ")
            }
            row.appendEscaped(beginning)
            row.append(0x20)
            if Columns.fitting(row.utf8, into: width).bytes == row.count { break }
        }
        appendRule(to: &line)
    }

    /// Writes the line that introduces a day, if `time` is on a different day than the last row.
    private mutating func beginDay(of time: Timestamp, to line: inout LineBuffer) {
        guard style.namesDays, grid.time > 0, let day = timestamps.day(of: time), day != self.day else { return }
        self.day = day
        row.removeAll()
        row.append("── ")
        timestamps.appendDay(of: time, to: &row)
        row.append(0x20)
        appendRule(to: &line)
    }

    /// Writes ``row``, and a horizontal rule after it to the edge of the terminal.
    private func appendRule(to line: inout LineBuffer) {
        style.paint(.dim, to: &line)
        let start = line.count
        line.append(row)
        let taken = line.cut(from: start, to: max(20, style.width))
        for _ in 0..<max(0, style.width - taken) { line.append("─") }
        style.unpaint(to: &line)
        line.endLine()
    }

    // MARK: Folding

    /// Holds back or folds a login's row; returns false if the row has to be written now.
    private mutating func hold(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ session: SessionRows?,
        _ mark: RowMark,
        _ pair: Int?,
        to line: inout LineBuffer
    ) -> Bool {
        guard let session, let count = session.held?.count else { return false }
        if let user = record.user { session.user = user }
        if record.code == Record.Code.sessionReady {
            fold(record, session, to: &line)
            return true
        }
        guard mark != .failed, record.monotonic &- session.began <= Self.maximumFoldLength,
            count < Self.maximumHeldRows,
            record.code != Record.Code.sessionEnded
        else {
            unfold(session, to: &line)
            return false
        }
        // The line that introduces the session contains the same information.
        guard record.code != Record.Code.sessionBegan else { return true }
        fill(record, content, session, pair)
        if record.direction == .send, record.kind == .element,
            kind.utf8.equals("auth") || kind.utf8.equals("authenticate")
        {
            session.authenticationBegan = record.monotonic
            // Of the features that the server has sent, only the last ones before the authentication are shown.
            if let features = session.features {
                session.held?[features].isKept = true
            }
        }
        var isKept = mark == .warned
        var cells = Cells(record, mark, pair)
        if record.kind == .element, kind.utf8.equals("success") {
            isKept = true
            let since = session.authenticationBegan.map { record.monotonic &- $0 }
            kind.removeAll()
            kind.append("login")
            text.removeAll()
            if let mechanism = record.sasl?["mechanism"]?.text { text.appendEscaped(mechanism) }
            cells.mark = .done
            cells.trip = since ?? cells.trip
            cells.size = nil
        }
        if record.kind == .element, kind.utf8.equals("features") { session.features = count }
        // Limits the memory: a row cannot show more text than this.
        kind.cut(from: 0, to: max(20, style.width))
        text.cut(from: 0, to: max(20, style.width))
        session.held?.append(HeldRow(cells: cells, kind: kind.bytes, text: text.bytes, isKept: isKept))
        return true
    }

    /// Writes a held row, without an account: the account was unknown when the row was held.
    private mutating func append(_ held: HeldRow, to line: inout LineBuffer) {
        var taken = beginRow(held.cells, nil, to: &line)
        let kind = line.count
        line.append(bytes: held.kind)
        taken += endKind(from: kind, to: &line)
        let text = line.count
        line.append(bytes: held.text)
        endRow(held.cells, textFrom: text, after: taken, to: &line)
    }

    /// Folds a successful login to its outcome.
    private mutating func fold(_ record: borrowing Record, _ session: SessionRows, to line: inout LineBuffer) {
        announce(session, record.jid, at: session.held?.first { $0.isKept }?.cells.time ?? record.time, to: &line)
        for held in session.held ?? [] where held.isKept { append(held, to: &line) }
        if !hasSessionColumn { pairs.begin() }
        session.held = nil
        var cells = Cells(record, .done, nil)
        cells.trip = record.monotonic &- session.began
        var taken = beginRow(cells, session, to: &line)
        let kind = line.count
        line.append("ready")
        taken += endKind(from: kind, to: &line)
        let text = line.count
        if let jid = record.jid { line.appendEscaped(jid) }
        endRow(cells, textFrom: text, after: taken, to: &line)
    }

    /// Writes the held rows of a login in order.
    private mutating func unfold(_ session: SessionRows, to line: inout LineBuffer) {
        guard let held = session.held else { return }
        session.held = nil
        guard let first = held.first else { return }
        announce(session, nil, at: first.cells.time, to: &line)
        for held in held { append(held, to: &line) }
    }

    private mutating func unfold(_ several: [SessionRows], to line: inout LineBuffer) {
        for session in several.sorted(by: { $0.number < $1.number }) { unfold(session, to: &line) }
    }

    // MARK: Rows

    private mutating func write(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ session: SessionRows?,
        _ mark: RowMark,
        _ pair: Int?,
        countsRepetitions: Bool,
        to line: inout LineBuffer
    ) {
        if let session, !session.isAnnounced { announce(session, record.jid, at: record.time, to: &line) }
        let isChatter = countsRepetitions && RepeatedRow.isChatter(record, content)
        if isChatter {
            fill(record, content, session, pair)
            if repeated.counts(kind, text, mark, record) { return }
            closeRepetition(to: &line)
            repeated.begin(kind, text, mark, record)
        } else {
            closeRepetition(to: &line)
        }
        let cells = Cells(record, mark, pair)
        var taken = beginRow(cells, session, to: &line)
        let kindStart = line.count
        if isChatter { line.append(kind) } else { appendKind(record, content, to: &line) }
        taken += endKind(from: kindStart, to: &line)
        let textStart = line.count
        if isChatter { line.append(text) } else { appendText(record, content, session, pair, to: &line) }
        guard record.level <= .warn, !isChatter, !Self.showsContent(record) else {
            return endRow(cells, textFrom: textStart, after: taken, to: &line)
        }
        wrapText(from: textStart, after: taken, advice: record.details?[Record.Detail.advice]?.text, to: &line)
    }

    /// Wraps the text that begins at `start`, after `taken` columns, and appends the advice on a line below it.
    private func wrapText(from start: Int, after taken: Int, advice: String?, to line: inout LineBuffer) {
        let width = max(20, style.width)
        // A narrow terminal has no space beside the kind.
        let isBeside = width - taken >= Self.leastWrappedColumns
        let indent = isBeside ? taken : 2
        line.cut(from: start, to: Self.maximumWrappedRows * (width - indent))
        var pieces = Columns.wrapped(line.utf8.extracting(start...).string(), to: width - indent)
        if let advice {
            var words = LineBuffer(capacity: 128)
            words.append("try: ")
            words.appendEscaped(advice)
            words.cut(from: 0, to: Self.maximumWrappedRows * (width - indent))
            pieces += Columns.wrapped(words.text, to: width - indent)
        }
        line.truncate(to: start)
        if isBeside, !pieces.isEmpty { line.append(string: pieces.removeFirst()) }
        line.trimSpaces()
        line.endLine()
        for piece in pieces {
            line.append(spaces: indent)
            line.append(string: piece)
            line.endLine()
        }
    }

    /// Maximum number of rows for a text, and for its advice: a peer's text may be as long as a stanza.
    private static let maximumWrappedRows = 8
    /// Minimum number of columns after the kind; if fewer remain, a text is wrapped below its row.
    private static let leastWrappedColumns = 24

    /// Writes the repetition count of the last row.
    private mutating func closeRepetition(to line: inout LineBuffer) {
        let count = repeated.end()
        guard count > 0 else { return }
        let place = (grid.time > 0 ? grid.time + 2 : 0) + (hasSessionColumn ? sessionCell : 0)
        row.removeAll()
        row.append(spaces: place)
        row.append("⋮  ")
        row.append(decimal: UInt64(count))
        row.append(" more of these")
        style.paint(.dim, to: &line)
        let start = line.count
        line.append(row)
        line.cut(from: start, to: max(20, style.width))
        style.unpaint(to: &line)
        line.endLine()
    }

    private static let maximumSessionColumns = 8
    /// Columns of an account's name, and of a resource beside it.
    private static let accountColumns = 8
    private static let resourceColumns = 8
    private static let figureColumns = 8

    /// The width of an account's cell, in columns; includes a resource if two sessions have the same account.
    private var accountCell: Int { Self.accountColumns + (hasSharedAccounts ? Self.resourceColumns + 1 : 0) }

    /// The width of a session's number and account with the spaces after them, in columns.
    private var sessionCell: Int {
        guard grid.hasSession else { return 0 }
        return sessionColumns + 1 + (grid.hasAccount ? accountCell + 2 : 0)
    }

    /// The cells of a row except account, kind and text.
    private struct Cells: Sendable {
        let time: Timestamp
        let session: UInt64
        var mark: RowMark
        let pair: Int?
        var trip: Int64?
        var size: UInt64?

        init(_ record: borrowing Record, _ mark: RowMark, _ pair: Int?) {
            time = record.time
            session = record.session
            self.mark = mark
            self.pair = pair
            // Only for items: the texts of other records, such as login steps and session ends, contain the duration.
            trip = CompactForm.showsContent(record) ? record.roundTrip : nil
            size = record.length > 0 ? record.length : nil
        }
    }

    /// Appends a row up to its kind; returns the number of columns used.
    private mutating func beginRow(_ cells: Cells, _ session: SessionRows?, to line: inout LineBuffer) -> Int {
        beginDay(of: cells.time, to: &line)
        lastSession = cells.session
        var taken = 3
        if grid.time > 0 {
            style.paint(.dim, to: &line)
            let end = line.count + grid.time
            timestamps.appendTimeOfDay(cells.time, to: &line)
            line.truncate(to: end)
            style.unpaint(to: &line)
            line.append("  ")
            taken += grid.time + 2
        }
        if hasSessionColumn, grid.hasSession {
            appendSession(cells.session, session, to: &line)
            taken += sessionCell
        }
        style.paint(cells.mark.colour, to: &line)
        line.append(cells.mark.literal)
        line.append("  ")
        return taken
    }

    /// Completes the kind that begins at `start`; returns the columns of the kind and the spaces after it.
    private func endKind(from start: Int, to line: inout LineBuffer) -> Int {
        let columns = line.cut(from: start, to: grid.kind)
        style.unpaint(to: &line)
        line.append(spaces: grid.kind - columns + 1)
        return grid.kind + 1
    }

    /// Completes a row whose text begins at `start`, after `taken` columns.
    private mutating func endRow(
        _ cells: Cells,
        textFrom start: Int,
        after taken: Int,
        to line: inout LineBuffer
    ) {
        let width = max(20, style.width)
        // The figures from the right: pair number, size, round trip. The text also uses the columns of missing figures
        // next to it.
        var trip = grid.hasTrip ? cells.trip : nil
        let size = grid.hasSize ? cells.size : nil
        let pair = grid.hasPair ? cells.pair : nil
        if let pair { pairColumns = max(pairColumns, 3 + UInt64(pair).decimalDigits) }
        let hasPairColumn = grid.hasPair && (pair != nil || size != nil || trip != nil)
        var hasSizeColumn = grid.hasSize && (size != nil || trip != nil || pair != nil)
        var reserved =
            (hasPairColumn ? pairColumns : 0) + (hasSizeColumn ? Self.figureColumns : 0)
            + (trip != nil ? Self.figureColumns : 0)
        // The reason for a failure matters more than its duration and size.
        if cells.mark == .failed {
            let wanted = taken + Columns.count(line.utf8.extracting(start...))
            if trip != nil, wanted + reserved > width {
                trip = nil
                reserved -= Self.figureColumns
            }
            if hasSizeColumn, wanted + reserved > width {
                hasSizeColumn = false
                reserved -= Self.figureColumns
            }
        }
        let room = max(1, width - taken - reserved)
        let textColumns = line.cut(from: start, to: room)
        guard reserved > 0 else { return line.endLine() }
        line.append(spaces: room - textColumns)
        if let trip { appendFigure(to: &line) { $0.append(duration: trip) } }
        if hasSizeColumn { appendFigure(to: &line) { if let size { $0.append(size: size) } } }
        if let pair {
            style.paint(.dim, to: &line)
            line.append("  #")
            line.append(decimal: UInt64(pair))
            style.unpaint(to: &line)
        }
        line.trimSpaces()
        line.endLine()
    }

    /// Appends the session's number and, if there is room, the name of its account or its domain.
    private func appendSession(_ number: UInt64, _ session: SessionRows?, to line: inout LineBuffer) {
        if let session, session.cell.columns == sessionCell { return line.append(bytes: session.cell.bytes) }
        let start = line.count
        // A record without a session is about xmpptap itself.
        let digits = number > 0 ? number.decimalDigits : 0
        line.append(spaces: sessionColumns - digits)
        let figure = line.count
        if digits > 0 { line.append(decimal: number) }
        line.cut(from: figure, to: sessionColumns)
        line.append(0x20)
        if grid.hasAccount {
            let account = line.count
            var columns = 0
            if let session {
                let jid = session.jid
                line.appendEscaped(jid.span.extracting(0..<(session.own.at ?? session.own.length)).bytes)
                columns = line.cut(from: account, to: Self.accountColumns)
                if session.sharesAccount {
                    let resource = line.count
                    line.appendEscaped(jid.span.extracting(session.own.length...).bytes)
                    columns += line.cut(from: resource, to: Self.resourceColumns + 1)
                }
            }
            line.append(spaces: accountCell + 2 - columns)
        }
        guard let session else { return }
        session.cell = ([], sessionCell)
        line.copy(start..<line.count, to: &session.cell.bytes)
    }

    /// Appends a figure, right-aligned in its column, which begins with a space.
    private func appendFigure(to line: inout LineBuffer, _ body: (inout LineBuffer) -> Void) {
        let start = line.count
        line.append(spaces: Self.figureColumns)
        body(&line)
        line.remove(line.cut(from: start + Self.figureColumns, to: Self.figureColumns - 1), at: start)
    }

    /// Writes the kind and the text of a row into ``kind`` and ``text``.
    private mutating func fill(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ session: SessionRows?,
        _ pair: Int?
    ) {
        var cell = LineBuffer(capacity: 0)
        swap(&cell, &kind)
        cell.removeAll()
        appendKind(record, content, to: &cell)
        swap(&cell, &kind)
        swap(&cell, &text)
        cell.removeAll()
        appendText(record, content, session, pair, to: &cell)
        swap(&cell, &text)
    }

    private func appendKind(_ record: borrowing Record, _ content: Span<UInt8>, to kind: inout LineBuffer) {
        let start = kind.count
        switch record.kind {
        case .stanza, .element:
            kind.appendEscaped(content.slice(record.name ?? .empty).bytes)
            guard let type = record.type else { break }
            kind.append(0x20)
            kind.appendEscaped(content.slice(type).bytes)
            // If both do not fit, shows only the type: that of a message or presence, such as `groupchat` or
            // `unsubscribed`, implies the kind.
            if record.kind == .stanza, kind.count - start > grid.kind {
                kind.truncate(to: start)
                kind.appendEscaped(content.slice(type).bytes)
            }
        case .streamOpen: kind.append("stream")
        case .streamClose: kind.append("end of stream")
        case .declaration: kind.append("XML declaration")
        case .session: kind.append(record.code == Record.Code.sessionEnded ? "end" : "session")
        case .note where record.code == Record.Code.loginFailed: kind.append("login failed")
        case .note, .error: kind.append(record.part.literal)
        case .tls, .bytes, .chunk, .whitespace, .frame: kind.append(record.kind.literal)
        }
    }

    /// Returns whether a row shows an item of the stream instead of the message of the record.
    fileprivate static func showsContent(_ record: borrowing Record) -> Bool {
        record.direction != nil && (record.kind.isStreamItem || record.kind == .bytes || record.kind == .chunk)
    }

    /// - Parameter pair: The number that a request and its answer share; nil if the item has none.
    private mutating func appendText(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ session: SessionRows?,
        _ pair: Int?,
        to text: inout LineBuffer
    ) {
        let beginning = text.count
        if let action = record.action {
            text.appendEscaped(action)
            if action == Record.answered { text.append(" by xmpptap") }
            if let rule = record.rule {
                text.append(0x20)
                text.appendEscaped(rule)
            }
            text.append("; ")
        } else if record.origin == .tap {
            text.append("by xmpptap; ")
        }
        guard Self.showsContent(record) else {
            if record.code == Record.Code.loginFailed, let finding = record.details?[Record.Detail.finding]?.text {
                // Shows the code of the cause, because it is short and also appears in the summary at the end.
                if let cause = record.details?[Record.Detail.cause]?.text {
                    text.appendEscaped(cause)
                    text.append(": ")
                }
                text.appendEscaped(finding)
                return
            }
            texts.appendRemark(record, to: &text)
            text.drop(" ", at: beginning)
            return
        }
        // The row of the request already names the other side, so the row of the answer omits it.
        let isPaired = pair != nil && grid.hasPair
        if record.kind == .stanza, !(isPaired && record.answers != nil) {
            appendPeer(record, content, session, to: &text)
        }
        if let condition = record.condition {
            text.appendEscaped(condition)
            if let message = record.message {
                text.append(": ")
                text.appendEscaped("\(message)")
            }
        }
        let start = text.count
        if record.condition != nil { text.append(":") }
        let words = text.count
        if !texts.appendContent(record, content, to: &text) {
            text.truncate(to: start)
            // Without content, the row shows only the action: removes the separator after it.
            if record.condition == nil, text.count > beginning + 2 { text.truncate(to: text.count - 2) }
        } else if start == words {
            text.drop(" ", at: start)
        } else if !text.drop(" refused:", at: words), text.count == words + 8, text.drop(" refused", at: words) {
            // Omits the word "refused", because the condition before it has the same meaning.
            text.truncate(to: start)
        }
        if record.isTruncated { text.append(" truncated") }
    }

    /// Appends the other side, such as `to juliet/balcony  `, if it is neither the account itself nor its server. The
    /// resource distinguishes the clients of a contact, and the occupants of a room.
    private func appendPeer(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ session: SessionRows?,
        to text: inout LineBuffer
    ) {
        let isSend = record.direction == .send
        guard let range = isSend ? record.to : record.from else { return }
        let peer = content.slice(range)
        let bare = peer.untilSlash
        var name = bare.count
        if let session, case let jid = session.jid, !jid.isEmpty {
            let account = jid.span.extracting(0..<session.own.length)
            if bare.equals(account) {
                guard bare.count < peer.count, !peer.equals(jid.span) else { return }
                // The peer is another client of the account: only its resource is shown.
                name = 0
            }
            if let at = session.own.at {
                let domain = account.extracting((at + 1)...)
                if bare.equals(domain) { return }
                // For an account on the same server, the local part is enough.
                if name > 0, let at = bare.firstIndex(of: 0x40), bare.extracting((at + 1)...).equals(domain) {
                    name = at
                }
            }
        }
        text.append(isSend ? "to " : "from ")
        text.appendEscaped(bare.extracting(0..<name).bytes)
        let resource = peer.extracting(bare.count...)
        if !text.appendShortID(resource) { text.appendEscaped(resource.bytes) }
        text.append("  ")
    }

    // MARK: XML

    private mutating func appendXML(_ record: borrowing Record, _ content: Span<UInt8>, to line: inout LineBuffer) {
        if let xml = record.xml { appendXML(content.slice(xml), to: &line) }
        if let edited = record.edited { appendXML(content.slice(edited), to: &line) }
    }

    private func appendXML(_ xml: Span<UInt8>, to line: inout LineBuffer) {
        let colours = style.isColoured
        var isFirst = true
        let start = line.count
        PrettyForm.append(xml, to: &line) { piece, line in
            // The first piece begins with a newline, which the row above already has.
            if isFirst {
                isFirst = false
                line.drop("\n", at: start)
            }
            XMLColours.append(piece, isColoured: colours, to: &line)
        }
        line.endLine()
    }
}
