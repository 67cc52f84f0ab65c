internal import TapRecord

/// XML that a log shows in one place: items of one direction, with the text around them.
struct LogFragment {
    /// An item, whole or in part.
    struct Item {
        let bytes: [UInt8]
        /// The number of the line on which it begins, from 1.
        let line: Int
        let state: State
        /// What its content says about its sender.
        let evidence: LogEvidence

        init(bytes: [UInt8], line: Int, state: State = .whole) {
            (self.bytes, self.line, self.state) = (bytes, line, state)
            evidence = LogEvidence(bytes[...])
        }

        enum State {
            case whole
            /// The log does not show its end.
            case cut
            /// The log shows its start tag and nothing else, as Prosody's log does at its usual levels.
            case startTagOnly
            /// The log shows its end, and not its beginning.
            case endOnly
        }
    }

    var lead: LogLead
    /// The time of the line with the text in front.
    var stamp: ClientLogStamp?
    var items: [Item] = []
    /// The number of its first line, from 1.
    var line: Int
}

/// A line of a log.
struct LogLine {
    /// The text, without colours and without Dino's notation of names.
    var bytes: [UInt8]
    /// Its number, from 1.
    let number: Int
    let stamp: ClientLogStamp?
    /// Its names were written as `{namespace}:name`.
    let hasClarkNames: Bool

    init(_ raw: [UInt8], number: Int) {
        let plain = LogTypography.plain(LogEscapes.plain(raw))
        hasClarkNames = ClarkNotation.begins(plain)
        bytes = hasClarkNames ? ClarkNotation.translated(plain) : plain
        self.number = number
        stamp = hasClarkNames ? nil : ClientLogStamp(bytes)
    }

    /// The part of a line from an index on.
    init(_ line: LogLine, from start: Int) {
        bytes = Array(line.bytes[start...])
        number = line.number
        stamp = ClientLogStamp(bytes) ?? line.stamp
        hasClarkNames = line.hasClarkNames
    }

    /// The line shows no characters but blanks.
    var isBlank: Bool { bytes.allSatisfy { $0 == 0x20 || $0 == 0x09 } }

    /// The text from an index on begins a stream.
    func beginsStream(from start: Int = 0) -> Bool {
        let text = bytes[start...].drop { $0 == 0x20 || $0 == 0x09 }
        return text.starts(with: "<?xml ".utf8) || text.starts(with: "<stream:stream ".utf8)
    }
}

/// An item of which the end was not read, and the items of the same fragment before it.
struct LogOpenItem {
    var fragment: LogFragment
    /// The text in front: of the line on which the fragment begins, or of its heading.
    let front: [UInt8]
    /// The text in front on the line on which the fragment begins; empty if another fragment precedes it.
    let lineFront: [UInt8]
    /// The text that names the direction is on a line before.
    let isHeaded: Bool
    let escapes: LogEscapes
    /// Its names were written as `{namespace}:name`, and its texts without escapes.
    let hasClarkNames: Bool
    private(set) var scanner = LogXMLScanner()
    /// The line on which the item that is open begins.
    private(set) var itemLine: Int
    private(set) var lines = 0
    /// The columns of lines that were cut at a width, blanks in front of them included; nil if no line was.
    private var wrap: (width: Int, indentation: Int)?
    /// Words on the line of the item name the direction: what one read has brought stands behind them, and may be a part of an item.
    let namesDirection: Bool

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
        namesDirection = !isHeaded && LogWords.direction(fragment.lead.words) != nil
    }

    /// Reads items from a part of a line.
    ///
    /// - Returns: The index behind them.
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
            fragment.items.append(LogFragment.Item(bytes: item, line: itemLine))
            itemLine = number
        }
        return end
    }

    /// Reads on in a line that continues the item.
    ///
    /// - Parameter isBroken: A line break of the log, and not of a read, precedes the text.
    /// - Returns: The index behind its items.
    mutating func append(_ line: LogLine, from start: Int = 0, isBroken: Bool = true) -> Int {
        lines += 1
        if start == 0, let width = wrap, line.bytes.count <= width.width, isWrapped(line, width.indentation) {
            if line.bytes.count < width.width { wrap = nil }
            return read(line.bytes[width.indentation...], number: line.number)
        }
        wrap = nil
        // A line that was wrapped within a value lacks nothing; elsewhere the break is white space.
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

    /// Notes the width of the first line, which may be that of a window.
    mutating func noteWidth(_ line: LogLine) {
        let isBlank = lineFront.allSatisfy { $0 == 0x20 }
        guard isBlank, !lineFront.isEmpty, line.bytes.count >= Self.narrowest, scanner.isWithinItem else { return }
        wrap = (line.bytes.count, lineFront.count)
    }

    private static let narrowest = 40

    /// Whether a line continues the one above it, which a window's width has cut. One of XML that a printer has indented begins with a tag, or
    /// its text with more blanks.
    private func isWrapped(_ line: LogLine, _ indentation: Int) -> Bool {
        guard line.bytes.count > indentation, line.bytes[..<indentation].allSatisfy({ $0 == 0x20 }) else {
            return false
        }
        let next = line.bytes[indentation]
        if scanner.isWithinValue || next == 0x3C && scanner.item.last == 0x3E { return true }
        let last = scanner.item.last
        return !((last == 0x22 || last == 0x27) && LogLead.isAlphanumeric(next))
    }

    /// Whether an attribute follows a name or another attribute directly: a logger that prints its text in front of each line of an item has
    /// left out the line break.
    private func lacksBlank(before text: ArraySlice<UInt8>) -> Bool {
        guard scanner.isWithinTag, let last = scanner.item.last, text.first.map(LogLead.isAlphanumeric) == true else {
            return false
        }
        if last == 0x22 || last == 0x27 { return true }
        let tag = scanner.item.lastIndex(of: 0x3C).map { scanner.item[($0 + 1)...] } ?? []
        return !tag.isEmpty && !tag.contains(0x20) && !tag.contains(0x0A) && LogTag.continuesTag(text)
    }

    /// Whether the text behind a repeated front, which names no direction, is on a line of its own in the XML. If it is not, it is the
    /// rest of what one read has brought.
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
