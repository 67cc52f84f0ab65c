internal import TapRecord

/// XML that a log shows in one place: items of one direction, and the text around them.
struct LogFragment {
    /// An item, whole or in part.
    struct Item {
        let bytes: [UInt8]
        /// The number of the line on which the item begins, from 1.
        let line: Int
        let state: State
        /// Evidence about the item's sender, from its content.
        let evidence: LogEvidence

        init(bytes: [UInt8], line: Int, state: State = .whole) {
            (self.bytes, self.line, self.state) = (bytes, line, state)
            evidence = LogEvidence(bytes[...])
        }

        enum State {
            case whole
            /// The log does not show the end of the item.
            case cut
            /// The log shows the item's start tag and nothing else, as Prosody's log does at its usual levels.
            case startTagOnly
            /// The log shows the end of the item, but not its beginning.
            case endOnly
        }
    }

    var lead: LogLead
    /// The time of the line that holds the text in front of the items.
    var stamp: ClientLogStamp?
    var items: [Item] = []
    /// The number of the first line, from 1.
    var line: Int
}

/// A line of a log.
struct LogLine {
    /// The text without colour sequences and typographic characters, with Dino's notation of names translated to XML.
    var bytes: [UInt8]
    /// The number of the line, from 1.
    let number: Int
    let stamp: ClientLogStamp?
    /// Whether names were written as `{namespace}:name`.
    let hasClarkNames: Bool

    /// Creates a line. `outer` is the time that a container's log has recorded for the line; nil if there is none.
    init(_ raw: [UInt8], number: Int, outer: ClientLogStamp? = nil) {
        var plain = LogTypography.plain(LogEscapes.plain(raw))
        hasClarkNames = ClarkNotation.begins(plain)
        self.number = number
        let own = hasClarkNames ? nil : ClientLogStamp(plain)
        stamp = outer.map { $0.recorded(for: own) } ?? own
        if let own, SyslogEscapes.isPossible(plain) { plain = SyslogEscapes.decoded(plain, after: own) }
        bytes = hasClarkNames ? ClarkNotation.translated(plain) : plain
    }

    /// Creates a line with other bytes and the same time.
    init(_ line: LogLine, bytes: [UInt8]) {
        self.bytes = bytes
        number = line.number
        stamp = line.stamp
        hasClarkNames = line.hasClarkNames
    }

    /// Creates a line from the part of another line that begins at an index.
    init(_ line: LogLine, from start: Int) {
        bytes = Array(line.bytes[start...])
        number = line.number
        stamp = ClientLogStamp(bytes) ?? line.stamp
        hasClarkNames = line.hasClarkNames
    }

    /// Whether the line contains only spaces and tabs.
    var isBlank: Bool { bytes.allSatisfy { $0 == 0x20 || $0 == 0x09 } }

    /// Whether the text from an index on begins a stream.
    func beginsStream(from start: Int = 0) -> Bool {
        let text = bytes[start...].drop { $0 == 0x20 || $0 == 0x09 }
        return text.starts(with: "<?xml ".utf8) || text.starts(with: "<stream:stream ".utf8)
    }
}

/// An item whose end was not read yet, and the items of the same fragment before it.
struct LogOpenItem {
    var fragment: LogFragment
    /// The text in front of the fragment: on its first line, or in its heading.
    let front: [UInt8]
    /// The text in front of the fragment on its first line; empty if another fragment precedes it on that line.
    let lineFront: [UInt8]
    /// Whether the text that names the direction is on an earlier line.
    let isHeaded: Bool
    let escapes: LogEscapes
    /// Whether names were written as `{namespace}:name`, and texts without escapes.
    let hasClarkNames: Bool
    private(set) var scanner = LogXMLScanner()
    /// The number of the line on which the open item begins.
    private(set) var itemLine: Int
    private(set) var lines = 0
    /// The width at which lines were cut, and the number of blanks at their beginning; nil if no line was cut.
    private var wrap: (width: Int, indentation: Int)?
    /// Whether words on the line of the item name the direction. Such a line shows the data of one read, which may be
    /// only a part of an item.
    let namesDirection: Bool
    /// Whether Prosody has written the log, which begins each further line of an item with a tab.
    private let isProsodys: Bool

    init(
        _ fragment: LogFragment,
        front: [UInt8],
        lineFront: [UInt8],
        isHeaded: Bool,
        escapes: LogEscapes,
        hasClarkNames: Bool
    ) {
        self.fragment = fragment
        self.front = front
        self.lineFront = lineFront
        self.isHeaded = isHeaded
        self.escapes = escapes
        self.hasClarkNames = hasClarkNames
        itemLine = fragment.line
        isProsodys = LogLevelColumn.isProsodys(lineFront)
        namesDirection = !isHeaded && LogWords.direction(fragment.lead.words) != nil
    }

    /// Reads items from part of a line.
    ///
    /// - Returns: The index after the items.
    mutating func read(_ text: ArraySlice<UInt8>, number: Int) -> Int {
        if !scanner.isWithinItem { itemLine = number }
        var items: [[UInt8]] = []
        var end: Int
        if escapes == .none {
            end = scanner.read(text, into: &items)
        } else {
            let xml: [UInt8]
            (xml, end) = escapes.decoded(text)
            _ = scanner.read(xml[...], into: &items)
        }
        for item in items.flatMap({ LogWrapper.items(in: $0) ?? [$0] }) {
            let item = isProsodys ? LogItemRepair.withoutTabs(item) : item
            fragment.items.append(LogFragment.Item(bytes: item, line: itemLine))
            itemLine = number
        }
        return end
    }

    /// Appends a line that continues the item.
    ///
    /// - Parameter isBroken: Whether the text begins a new line of the XML; false if it only continues the data of an
    ///   earlier read.
    /// - Returns: The index after the items of the line.
    mutating func append(_ line: LogLine, from start: Int = 0, isBroken: Bool = true) -> Int {
        lines += 1
        if start == 0, let width = wrap, line.bytes.count <= width.width, isWrapped(line, width.indentation) {
            if line.bytes.count < width.width { wrap = nil }
            return read(line.bytes[width.indentation...], number: line.number)
        }
        wrap = nil
        // A line break within an attribute value comes from wrapping, so nothing is missing; elsewhere the break is
        // white space.
        if isBroken ? !scanner.isWithinValue : lacksBlank(before: line.bytes[start...]) {
            var none: [[UInt8]] = []
            _ = scanner.read([0x0A], into: &none)
        }
        if hasClarkNames, !line.hasClarkNames {
            _ = read(ClarkNotation.escaped(line.bytes[start...])[...], number: line.number)
            return line.bytes.count
        }
        return read(line.bytes[start...], number: line.number)
    }

    /// Records the width of the first line, at which a window may have wrapped the log.
    mutating func recordWidth(_ line: LogLine) {
        let isBlank = lineFront.allSatisfy { $0 == 0x20 }
        guard isBlank, !lineFront.isEmpty, line.bytes.count >= Self.narrowest, scanner.isWithinItem else { return }
        wrap = (line.bytes.count, lineFront.count)
    }

    private static let narrowest = 40

    /// Whether a line continues the line above it, which was cut at the width of a window. A line of XML that a printer
    /// has indented begins instead with a tag, or with more blanks if it begins with text.
    private func isWrapped(_ line: LogLine, _ indentation: Int) -> Bool {
        guard line.bytes.count > indentation, line.bytes[..<indentation].allSatisfy({ $0 == 0x20 }) else {
            return false
        }
        let next = line.bytes[indentation]
        if scanner.isWithinValue || next == 0x3C && scanner.item.last == 0x3E { return true }
        let last = scanner.item.last
        return !((last == 0x22 || last == 0x27) && LogLead.isAlphanumeric(next))
    }

    /// Whether the line break is missing between an attribute and the name or attribute before it: a logger that prints
    /// its text in front of each line of an item has left the break out.
    private func lacksBlank(before text: ArraySlice<UInt8>) -> Bool {
        guard scanner.isWithinTag, let last = scanner.item.last, text.first.map(LogLead.isAlphanumeric) == true else {
            return false
        }
        if last == 0x22 || last == 0x27 { return true }
        let tag = scanner.item.lastIndex(of: 0x3C).map { scanner.item[($0 + 1)...] } ?? []
        return !tag.isEmpty && !tag.contains(0x20) && !tag.contains(0x0A) && LogTag.continuesTag(text)
    }

    /// Whether a line of the XML begins with `text`, which follows a repeated text in front that names no direction. If
    /// not, `text` is the rest of the data of one read.
    func isBroken(before text: ArraySlice<UInt8>) -> Bool {
        guard !isHeaded, let next = text.first else { return true }
        let isBlank = next == 0x20 || next == 0x09
        if scanner.isWithinText { return isBlank || next == 0x3C || LogTag(scanner.item[...]).isNamed("message") }
        let last = scanner.item.last
        return isBlank || last == 0x22 || last == 0x27
    }

    /// Returns the bytes of the open item, whose end the log does not show.
    mutating func takeRest() -> [UInt8] { scanner.takeRest() }
}
