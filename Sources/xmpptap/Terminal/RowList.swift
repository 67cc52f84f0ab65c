internal import TapCapture
internal import TapRecord
internal import TapRules

/// The rows of a filter that a view shows, the selected one, and the place of the view.
///
/// The selection is kept by the position of its record, because indices change with the filter. Unless the list is
/// followed, rows in view do not move, whatever arrives or is dropped.
struct RowList {
    private(set) var filter: RecordFilter?
    /// The number of the list that the indices belong to; -1 before the first answer.
    private var list = -1
    /// The indices of all rows.
    private(set) var range = 0..<0
    /// The position up to which the filter has searched.
    private(set) var scanned = 0
    /// The positions of all records.
    private(set) var whole = 0..<0
    /// The index of the first row in view.
    private(set) var top = 0
    private(set) var isFollowing: Bool
    /// The index of the selected row.
    private(set) var selected: Int?
    /// The position of the selected record, also while the filter hides it.
    private(set) var position: Int?
    /// Whether ``position`` has to be set from the selected row.
    private var isMoved = false
    /// The record that is put into view when the search has passed it, and its distance from the first row.
    private var anchor: (position: Int, below: Int)?
    /// The rows in view by their indices.
    private var rows: [Int: RecordRow] = [:]
    /// Number of rows that fit the view.
    private(set) var height = 1

    /// Creates the list of all records.
    ///
    /// - Parameter follows: Whether it begins at the newest records.
    init(_ filter: RecordFilter? = nil, follows: Bool = false) {
        self.filter = filter
        isFollowing = follows
    }

    /// Whether the filter has not searched all records yet.
    var isSearching: Bool { filter != nil && scanned < whole.upperBound }

    /// Number of rows below the view.
    var below: Int { max(0, range.upperBound - top - height) }

    /// The selected row; nil if it is not in view.
    var row: RecordRow? { selected.flatMap { rows[$0] } }

    /// Returns the row at an index; nil if it is not in view, or not kept any more.
    subscript(index: Int) -> RecordRow? { rows[index] }

    // MARK: Loading

    /// Reads the rows in view.
    ///
    /// - Parameters:
    ///   - height: Number of rows that fit the view.
    ///   - patience: How long to search with the filter.
    mutating func load(_ inspection: Inspection, height: Int, patience: Duration) {
        self.height = max(1, height)
        read(inspection, patience)
        if let anchor, reach(anchor, inspection) { read(inspection, .zero) }
        if selected == nil, anchor == nil, !isFollowing, !range.isEmpty {
            // The position of a hidden record is kept, so that it is selected again without the filter.
            if position == nil { select(top) } else { selected = max(top, range.lowerBound) }
        }
        // A key has selected a row that was not in view.
        guard isMoved, let row else { return }
        position = row.position
        isMoved = false
    }

    private mutating func read(_ inspection: Inspection, _ patience: Duration) {
        let place: Inspection.Place = .from(isFollowing ? -height : top)
        let found = inspection.list(filter, place, count: height, patience: patience)
        if found.list != list || found.range.upperBound < range.upperBound { begin(found) }
        range = found.range
        scanned = found.scanned
        whole = found.whole
        if isFollowing {
            top = max(range.lowerBound, range.upperBound - height)
        } else if top > max(range.lowerBound, range.upperBound - height) {
            // The terminal has become higher.
            top = max(range.lowerBound, range.upperBound - height)
            return fill(inspection.list(filter, .from(top), count: height, patience: .zero))
        } else if top < range.lowerBound, !(top..<range.lowerBound).prefix(height).contains(where: { rows[$0] != nil })
        {
            // Nothing is left of the rows that were dropped.
            top = range.lowerBound
        }
        fill(found)
    }

    /// Begins a list with other indices.
    private mutating func begin(_ found: Inspection.Rows) {
        if list >= 0, anchor == nil, !isFollowing, let known = position ?? rows[top]?.position {
            anchor = (known, position == nil ? 0 : (selected ?? top) - top)
        }
        list = found.list
        rows = [:]
        selected = nil
        top = found.range.lowerBound
    }

    /// Keeps the rows in view, also those that the table has dropped since they were read.
    private mutating func fill(_ found: Inspection.Rows) {
        guard found.list == list else { return }
        let view = top..<top + height
        var rows = rows.filter { view.contains($0.key) }
        for (offset, row) in found.rows.enumerated() where view.contains(found.start + offset) {
            // Of a record that is not kept any more there is only a remark.
            let index = found.start + offset
            if rows[index] == nil || row.session > 0 || row.number > 0 { rows[index] = row }
        }
        self.rows = rows
    }

    /// Puts the record of an anchor into view; returns whether the search has passed it.
    private mutating func reach(_ anchor: (position: Int, below: Int), _ inspection: Inspection) -> Bool {
        let found = inspection.find(anchor.position, in: filter, patience: .zero)
        guard found.isKnown, found.list == list else { return false }
        // The next match may still be found.
        guard found.isFound || found.index < range.upperBound || !isSearching else { return false }
        self.anchor = nil
        guard !range.isEmpty else {
            selected = nil
            return true
        }
        let index = min(max(found.index, range.lowerBound), range.upperBound - 1)
        selected = position == nil ? nil : index
        top = max(range.lowerBound, min(index - min(max(0, anchor.below), height - 1), range.upperBound - height))
        return true
    }

    // MARK: Changes

    /// Selects another filter; the selected record stays in view, if the filter lets it.
    mutating func setFilter(_ new: RecordFilter?) {
        guard new?.text != filter?.text else { return }
        filter = new
        if !isFollowing, anchor == nil, let known = position ?? rows[top]?.position {
            let isInView = selected.map { $0 >= top && $0 < top + height } ?? false
            anchor = (known, isInView ? (selected ?? top) - top : 0)
        }
        list = -1
        range = 0..<0
        rows = [:]
        selected = nil
        top = 0
    }

    /// Follows the newest rows.
    mutating func follow() {
        isFollowing = true
        selected = nil
        position = nil
        anchor = nil
        isMoved = false
    }

    /// Selects the row at an index, or the nearest one.
    mutating func select(_ index: Int) {
        guard !range.isEmpty else { return }
        let index = min(max(index, range.lowerBound), range.upperBound - 1)
        isFollowing = false
        anchor = nil
        selected = index
        isMoved = true
        position = rows[index]?.position ?? position
        if index < top { top = index } else if index >= top + height { top = index - height + 1 }
    }

    /// Selects a record by its position, as soon as a search has passed it.
    mutating func select(position new: Int) {
        position = new
        selected = nil
        isFollowing = false
        isMoved = false
        anchor = (new, height / 2)
    }

    /// Handles a key that moves the selection.
    ///
    /// - Returns: Whether the key has a meaning.
    mutating func move(_ key: Key, follows: Bool) -> Bool {
        let last = range.upperBound - 1
        let current = selected ?? (isFollowing ? last + 1 : top - 1)
        switch key {
        case .down, .character("j"):
            // Below the last row of a running proxy are those that will come.
            if follows, selected == last || isFollowing { follow() } else { select(current + 1) }
        case .up, .character("k"): select(selected == nil && !isFollowing ? top : current - 1)
        case .pageDown, .control("f"), .character(" "):
            if follows, isFollowing || current + height > last { follow() } else { select(current + height) }
        case .pageUp, .control("b"): select(current - height)
        case .control("d"): select(current + max(1, height / 2))
        case .control("u"): select(current - max(1, height / 2))
        case .home, .character("g"): select(range.lowerBound)
        case .end, .character("G"): select(last)
        case .character("f"), .character("F"): follow()
        default: return false
        }
        return true
    }

    /// Selects the last row in view if none is selected, for keys that act on the selected row.
    mutating func selectAny() {
        if selected == nil { select(min(range.upperBound, top + height) - 1) }
    }
}
