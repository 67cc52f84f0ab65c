extension CompactForm {
    /// The style of the rows.
    package struct Style: Sendable, Hashable {
        /// Columns of the terminal, 20 or more; default 100.
        package var width = 100
        /// Whether marks, levels and XML are coloured; default false.
        package var isColoured = false
        /// Whether the rows of a login are held back until its outcome is known; default true. A live view calls
        /// ``CompactForm/unfold(at:to:)`` to show the rows of a slow login.
        package var foldsLogins = true
        /// Whether the terminal supports only ASCII, so that marks and other characters are replaced; default false.
        package var isASCII = false
        /// Whether the text of messages is shown beside the summary; default false.
        package var showsBodies = false
        /// The zone of the times; default UTC.
        package var zone = LocalZone.utc
        /// Whether a line with the day precedes the first row of each day; default true.
        package var namesDays = true

        /// Creates a style without colours, with 100 columns.
        package init() {}
    }

    /// The columns that fit a terminal of a given width, and the widths of the time and the kind.
    struct Grid {
        var time = 12
        var kind = 14
        var hasSession = true
        var hasAccount = false
        var hasPair = true
        var hasTrip = true
        var hasSize = true

        init(_ width: Int) {
            switch width {
            case 100...: (kind, hasAccount) = (17, true)
            case 76...: break
            case 60...: hasSize = false
            case 40...: (time, kind, hasPair, hasTrip, hasSize) = (8, 12, false, false, false)
            default: (time, kind, hasSession, hasPair, hasTrip, hasSize) = (0, 10, false, false, false, false)
            }
        }
    }
}

extension CompactForm.Style {
    func paint(_ colour: Colour, to line: inout LineBuffer) {
        if isColoured { line.append(colour.sequence) }
    }

    func unpaint(to line: inout LineBuffer) {
        if isColoured { line.append(Colour.end) }
    }
}
