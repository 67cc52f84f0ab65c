internal import TapCapture

/// A column of a table.
struct Column {
    let title: String
    var width: Int
    var isRight = false

    /// Draws the cells of a row, one space apart.
    ///
    /// - Parameter limit: The column of the screen at which the table ends.
    static func draw(
        _ cells: [(column: Column, text: String)],
        x: Int,
        y: Int,
        limit: Int,
        style: Style,
        to screen: inout Screen
    ) {
        var x = x
        for (column, text) in cells {
            let width = min(column.width, limit - x)
            guard width > 0 else { return }
            let used = screen.put(text, x: x, y: y, limit: width, style: style)
            if column.isRight, used < width {
                screen.fill(x: x, y: y, count: used)
                screen.put(text, x: x + width - used, y: y, limit: used, style: style)
            }
            x += column.width + 1
        }
    }

    /// Draws the titles of columns, with space before them for the mark of the selected row.
    static func drawTitles(_ columns: [Column], y: Int, to screen: inout Screen) {
        draw(columns.map { ($0, $0.title) }, x: 2, y: y, limit: screen.width, style: .dim, to: &screen)
    }
}

/// The part of the screen in which a view is drawn.
struct Area {
    var top: Int
    var height: Int
}

/// The inspection, the clock and the limits, for all views.
struct ViewContext {
    let inspection: Inspection
    var clock: Clock
    /// How long a view may search when it is drawn or handles a key.
    var patience: Duration = .milliseconds(8)

    var isLive: Bool { inspection.subject.isLive }
}

/// A request of a view to other views.
enum ViewRequest: Hashable {
    /// Show the records of a session.
    case records(session: UInt64)
    /// Show a session as a diagram.
    case diagram(session: UInt64)
    /// Show a record with all that is known about it.
    case detail(position: Int)
    /// Show a record in the list, without a filter if that hides it.
    case reveal(position: Int)
    /// Go back.
    case back
    /// Tell the user.
    case say(String)
}
