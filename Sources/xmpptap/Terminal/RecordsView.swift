internal import TapCapture
internal import TapRecord
internal import TapRules

/// The list of records.
struct RecordsView {
    /// Idle time from which a row says how long nothing happened, in nanoseconds.
    private static let idle: Int64 = 30_000_000_000

    private(set) var list: RowList

    init(isLive: Bool) { list = RowList(follows: isLive) }

    /// The filter as text; empty if there is none.
    var filter: String { list.filter?.text ?? "" }

    mutating func load(_ area: Area, _ context: ViewContext) {
        list.load(context.inspection, height: area.height - 1, patience: context.patience)
    }

    /// Shows only records that match.
    mutating func setFilter(_ filter: RecordFilter?) { list.setFilter(filter) }

    /// Selects a record by its position.
    mutating func select(position: Int) { list.select(position: position) }

    /// Selects the next row, or the one before, and returns its record.
    mutating func step(_ distance: Int, _ area: Area, _ context: ViewContext) -> Int? {
        // The list may have been moved since it was drawn.
        load(area, context)
        list.select((list.selected ?? list.top) + distance)
        load(area, context)
        return list.row?.position
    }

    // MARK: Keys

    mutating func handle(_ key: Key, _ area: Area, _ context: ViewContext) -> ViewRequest? {
        // Several keys can arrive between two frames.
        load(area, context)
        switch key {
        case .enter, .right, .character("l"):
            return chosen(area, context).map { .detail(position: $0.position) }
        case .character("d"):
            guard let row = chosen(area, context), row.session > 0 else {
                return .say("this row belongs to no session")
            }
            return .diagram(session: row.session)
        case .character("a"): return chosen(area, context).flatMap { Self.partner(of: $0.position, context) }
        case .left, .character("h"): return .back
        default:
            _ = list.move(key, follows: context.isLive)
            return nil
        }
    }

    /// Returns the selected row; if none is selected, the last one in view.
    mutating func chosen(_ area: Area, _ context: ViewContext) -> RecordRow? {
        list.selectAny()
        load(area, context)
        return list.row
    }

    /// Goes from a request to its answer, and back.
    static func partner(of position: Int, _ context: ViewContext) -> ViewRequest {
        let whole = context.inspection.whole(at: position)
        if let target = whole.request ?? whole.answer { return .reveal(position: target) }
        return .say(
            whole.isPaired
                ? "this record has no request and no answer" : "the answers are still being paired"
        )
    }

    // MARK: Drawing

    /// A sentence about the list.
    func status(_ context: ViewContext) -> String {
        let shown = list.range.count
        var parts = [
            list.filter == nil
                ? "\(Words.plural(shown, "record"))"
                : "\(Words.count(shown)) of \(Words.plural(list.whole.count, "record"))"
        ]
        if list.isSearching {
            parts.append(
                "searching, \(Words.percent(list.scanned - list.whole.lowerBound, of: list.whole.count))"
            )
        }
        if list.filter == nil, list.range.lowerBound > 0 {
            parts.append("\(Words.count(list.range.lowerBound)) older ones are no longer kept")
        }
        if list.isFollowing {
            parts.append("following")
        } else if list.below > 0 {
            parts.append("\(Words.count(list.below)) below")
        }
        if let since = context.inspection.since {
            parts.append("recording since \(context.clock.time(since, isShort: true))")
        }
        return parts.joined(separator: " · ")
    }

    func draw(_ area: Area, _ context: ViewContext, to screen: inout Screen) {
        let columns = Self.columns(screen.width)
        Column.drawTitles(columns.map(\.column), y: area.top, to: &screen)
        for line in 0..<max(0, area.height - 1) {
            let index = list.top + line
            let y = area.top + 1 + line
            guard index < list.range.upperBound else { break }
            guard let row = list[index] else {
                screen.put(index < list.range.lowerBound ? "no longer kept" : "…", x: 2, y: y, style: .dim)
                continue
            }
            let isSelected = index == list.selected
            let pause = context.clock.pause(list[index - 1], row, from: Self.idle)
            let cells = columns.map { ($0.column, $0.text(row, context.clock, pause)) }
            Column.draw(cells, x: 2, y: y, limit: screen.width, style: row.style, to: &screen)
            guard isSelected else { continue }
            screen.put(">", x: 0, y: y)
            screen.paint(row: y, style: .selected)
        }
    }

    private typealias Cell = (column: Column, text: (RecordRow, Clock, String) -> String)

    private static func columns(_ width: Int) -> [Cell] {
        var cells: [Cell] = []
        func add(
            _ title: String,
            _ width: Int,
            isRight: Bool = false,
            _ text: @escaping (RecordRow, Clock, String) -> String
        ) {
            cells.append((Column(title: title, width: width, isRight: isRight), text))
        }
        if width >= 80 { add("#", 6, isRight: true) { row, _, _ in row.number > 0 ? "\(row.number)" : "" } }
        let isShort = width < 100
        add("time", isShort ? 8 : 12) { row, clock, _ in clock.time(row.time, isShort: isShort) }
        add(width < 80 ? "ses" : "session", width < 80 ? 3 : 7) { row, _, _ in
            row.session > 0 ? InspectedSession.name(of: row.session) : ""
        }
        add(width < 80 ? "" : "dir", width < 80 ? 1 : 3) { row, _, _ in
            row.direction.map { $0 == .send ? "→" : "←" } ?? ""
        }
        add("item", width < 80 ? 14 : 18) { row, _, _ in row.item }
        if width >= 120 { add("peer", min(34, width / 5)) { row, _, _ in row.peer } }
        let text = cells.count
        add("content", 0) { row, _, pause in pause + row.mark + row.contents }
        if width >= 140 { add("size", 7, isRight: true) { row, _, _ in row.size > 0 ? Words.size(row.size) : "" } }
        if width >= 80 {
            add("answer", 7, isRight: true) { row, _, _ in
                row.answers == nil ? "" : row.trip.map(LineBuffer.duration) ?? ""
            }
        }
        let taken = cells.reduce(2) { $0 + $1.column.width + 1 } - 1
        cells[text].column.width = max(8, width - taken)
        return cells
    }
}
