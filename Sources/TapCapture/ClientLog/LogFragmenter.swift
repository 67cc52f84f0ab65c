internal import TapRecord

/// XML that a log shows in one place: items of one direction, with the text around them.
struct LogFragment {
    /// An item, whole or in part.
    struct Item {
        var bytes: [UInt8]
        /// The number of the line on which it begins, from 1.
        var line: Int
        var state = State.whole

        enum State {
            case whole
            /// The log does not show its end.
            case cut
            /// The log shows its start tag and nothing else, as Prosody's log does at its usual levels.
            case startTagOnly
        }
    }

    var lead: LogLead
    /// The time of the line with the text in front.
    var stamp: ClientLogStamp?
    var items: [Item] = []
    /// The number of its first line, from 1.
    var line: Int
}

/// Cuts a log into fragments and lines of text.
///
/// It looks for XML that is XMPP, whatever surrounds it. An item may span lines; a line that begins as the log's own
/// lines do ends it. The rest of an item may follow on a later line with the same text in front: that is how programs print
/// what one read has brought.
struct LogFragmenter {
    /// A part of a log.
    enum Entry {
        case fragment(LogFragment)
        /// A line that shows no item.
        case text([UInt8], ClientLogStamp?)
    }

    private var found: [Entry] = []
    /// The open fragment.
    private var open: Open?
    /// The last line of text, which may be the heading of an item.
    private var heading: Heading?
    /// The text in front of the last fragment.
    private var last: (lead: LogLead, front: [UInt8], stamp: ClientLogStamp?)?
    /// How the log's own lines begin: the shape of their times.
    private var stampShape: [UInt8]?
    private var hasLevels = false
    /// The texts in front of items, of logs without times.
    private var fronts: [[UInt8]] = []
    /// Items of which only a part was read, by the text in front of them.
    private var partial: [(front: [UInt8], open: Open)] = []

    private static let mostBytes = 64 << 20
    /// The largest number of lines of an item.
    private static let mostLines = 20_000
    private static let mostFronts = 64
    private static let mostPartial = 64

    private struct Open {
        var fragment: LogFragment
        var front: [UInt8]
        var escapes: LogEscapes
        var scanner = LogXMLScanner()
        /// The line on which the item that is open begins.
        var itemLine: Int
        var lines = 0
    }

    private struct Heading {
        var line: [UInt8]
        var stamp: ClientLogStamp?
    }

    /// The next entry, in the order of the log.
    mutating func takeEntries() -> [Entry] {
        defer { found = [] }
        return found
    }

    /// Takes a line, without its newline; `number` counts from 1.
    mutating func take(_ raw: [UInt8], number: Int) {
        let line = LogEscapes.plain(raw)
        if open != nil {
            if continues(line) { return append(line, number) }
            close(cut: true)
        }
        if continuePartial(line, number) { return }
        scan(line, number)
    }

    /// There are no more lines for now: items that are whole are given out.
    mutating func pause() {
        guard open?.scanner.isWithinItem == false else { return }
        close(cut: false)
    }

    /// There are no more lines.
    mutating func finish() {
        close(cut: true)
        for part in partial { giveUp(part.open) }
        partial = []
        tellHeading()
    }

    // MARK: Lines

    private mutating func scan(_ line: [UInt8], _ number: Int) {
        let stamp = ClientLogStamp(line)
        var position = 0
        var hasFound = false
        while let start = LogStart.first(in: line, from: position, isTrusted: { self.isTrusted(line, upTo: $0) }) {
            let (escapes, frontEnd) = LogEscapes.found(line, at: start)
            begin(
                line,
                position..<max(position, frontEnd),
                hasFound ? ClientLogStamp(Array(line[position...])) : stamp,
                escapes,
                number
            )
            position = read(line, from: start, number)
            hasFound = true
            guard open == nil else { return }
        }
        // A heading may have an empty line behind it.
        guard !hasFound, line.contains(where: { $0 != 0x20 && $0 != 0x09 }) else { return }
        // A rule or an XML declaration between a heading and its XML says nothing.
        let isRule = line.allSatisfy { [0x20, 0x2D, 0x3D, 0x5F, 0x2A, 0x7E, 0x23].contains($0) }
        if heading != nil, isRule || line.starts(with: "<?xml ".utf8) {
            return found.append(.text(line, nil))
        }
        tellHeading()
        heading = Heading(line: line, stamp: stamp)
    }

    /// Whether a text is known to precede items: then an element behind it is an item, whatever its name.
    private func isTrusted(_ line: [UInt8], upTo end: Int) -> Bool {
        guard end > 0 else { return false }
        let lead = LogLead(front: line[..<end], time: ClientLogStamp(line)?.range)
        if let last, last.lead.shape == lead.shape { return true }
        return LogWords.direction(lead.words) != nil && line[..<end].last { $0 != 0x20 } == 0x3A
    }

    private mutating func begin(
        _ line: [UInt8],
        _ front: Range<Int>,
        _ stamp: ClientLogStamp?,
        _ escapes: LogEscapes,
        _ number: Int
    ) {
        var text = Array(line[front])
        var stamp = stamp
        if !text.contains(where: { $0 != 0x20 && $0 != 0x09 }) {
            if let heading {
                // The text in front is a separate line.
                text = heading.line
                stamp = heading.stamp
                self.heading = nil
            } else if let last {
                (text, stamp) = (last.front, stamp ?? last.stamp)
            }
        }
        tellHeading()
        let lead = LogLead(front: text[...], time: stamp?.range)
        if stampShape == nil, let shape = stamp?.shape { stampShape = shape }
        hasLevels = hasLevels || Self.hasLevel(text)
        if stampShape == nil, !text.isEmpty, fronts.count < Self.mostFronts,
            !fronts.contains(where: { Self.end(of: $0, in: text) == text.count })
        {
            fronts.append(text)
        }
        last = (lead, text, stamp)
        open = Open(
            fragment: LogFragment(lead: lead, stamp: stamp, line: number),
            front: text,
            escapes: escapes,
            itemLine: number
        )
    }

    /// Reads items of the open fragment from a line.
    ///
    /// - Returns: The index behind them.
    private mutating func read(_ line: [UInt8], from start: Int, _ number: Int) -> Int {
        guard var current = open else { return line.count }
        open = nil
        let (xml, stringEnd) = current.escapes.decoded(line[start...])
        if !current.scanner.isWithinItem { current.itemLine = number }
        let scanned = current.scanner.read(xml[...]) { item in
            current.fragment.items.append(LogFragment.Item(bytes: item, line: current.itemLine))
            current.itemLine = number
        }
        let end = current.escapes == .none ? start + scanned : stringEnd
        let isOver = !current.scanner.isWithinItem
        if isOver, end < line.count {
            let back = line[end...]
            if LogStart.first(in: line, from: end, isTrusted: { _ in false }) == nil {
                current.fragment.lead = LogLead(
                    front: current.front[...],
                    back: back,
                    time: current.fragment.stamp?.range
                )
            }
        }
        open = current
        if isOver { close(cut: false) }
        return max(end, start + 1)
    }

    private mutating func append(_ line: [UInt8], _ number: Int) {
        guard open != nil else { return }
        open?.lines += 1
        // A line that was wrapped within a value lacks nothing; elsewhere the break is white space.
        if open?.scanner.isWithinValue == false { _ = open?.scanner.read([0x0A]) { _ in } }
        let end = read(line, from: 0, number)
        guard open == nil, end < line.count, LogStart.first(in: line, from: end, isTrusted: { _ in false }) != nil
        else {
            if let count = open?.scanner.item.count, count > Self.mostBytes { close(cut: true) }
            return
        }
        scan(Array(line[end...]), number)
    }

    /// Whether a line belongs to the item that is open.
    private func continues(_ line: [UInt8]) -> Bool {
        guard let open, open.scanner.isWithinItem, open.lines < Self.mostLines else { return false }
        let text = line.drop { $0 == 0x20 || $0 == 0x09 }
        // A stream never begins within an item.
        if text.starts(with: "<?xml ".utf8) || text.starts(with: "<stream:stream ".utf8) { return false }
        return !isOwn(line)
    }

    /// Whether a line begins as those of the log do.
    private func isOwn(_ line: [UInt8]) -> Bool {
        if let stampShape { return ClientLogStamp(line)?.shape == stampShape }
        if hasLevels, Self.hasLevel(line) { return true }
        return fronts.contains { Self.end(of: $0, in: line) != nil }
    }

    private static let levels: [[UInt8]] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"].map { Array($0.utf8) }

    /// Whether the first word of a line is one of Python's levels.
    private static func hasLevel(_ line: [UInt8]) -> Bool {
        levels.contains { level in
            line.starts(with: level) && [0x20, 0x3A].contains(line.dropFirst(level.count).first)
        }
    }

    // MARK: Ends

    /// Gives out the open fragment. The rest of an item that was `cut` may follow behind the same text.
    private mutating func close(cut: Bool) {
        guard var current = open else { return }
        open = nil
        if !current.fragment.items.isEmpty { found.append(.fragment(current.fragment)) }
        guard current.scanner.isWithinItem else { return }
        current.fragment.items = []
        guard cut, !current.scanner.hasOnlyStartTag else { return giveUp(current) }
        if let place = partial.firstIndex(where: { $0.front == current.front }) {
            giveUp(partial.remove(at: place).open)
        }
        if partial.count >= Self.mostPartial { giveUp(partial.removeFirst().open) }
        partial.append((current.front, current))
    }

    /// Gives out an item whose end the log does not show.
    private mutating func giveUp(_ current: Open) {
        var current = current
        let state: LogFragment.Item.State = current.scanner.hasOnlyStartTag ? .startTagOnly : .cut
        current.fragment.items = [
            LogFragment.Item(bytes: current.scanner.takeRest(), line: current.itemLine, state: state)
        ]
        found.append(.fragment(current.fragment))
    }

    /// Takes a line that continues an item of an earlier line.
    private mutating func continuePartial(_ line: [UInt8], _ number: Int) -> Bool {
        for (place, part) in partial.enumerated() {
            guard let end = Self.end(of: part.front, in: line), end < line.count else { continue }
            // A whole item begins here: that one has no end in this log.
            guard LogStart.first(in: line, from: end, isTrusted: { _ in false }) != end else {
                giveUp(partial.remove(at: place).open)
                return false
            }
            tellHeading()
            var current = partial.remove(at: place).open
            current.fragment.stamp = ClientLogStamp(line) ?? current.fragment.stamp
            open = current
            let rest = read(line, from: end, number)
            if open == nil, rest < line.count, LogStart.first(in: line, from: rest, isTrusted: { _ in false }) != nil {
                scan(Array(line[rest...]), number)
            }
            return true
        }
        return false
    }

    private mutating func tellHeading() {
        guard let text = heading else { return }
        heading = nil
        found.append(.text(text.line, text.stamp))
    }

    /// Returns the end of a text at the beginning of a line, ignoring differences between words with digits; nil if the line begins otherwise.
    private static func end(of front: [UInt8], in line: [UInt8]) -> Int? {
        var (left, right) = (front[...], line[...])
        while let byte = left.first {
            guard let other = right.first else { return nil }
            guard LogLead.isAlphanumeric(byte) else {
                guard byte == other else { return nil }
                (left, right) = (left.dropFirst(), right.dropFirst())
                continue
            }
            let (one, two) = (left.prefix(while: LogLead.isAlphanumeric), right.prefix(while: LogLead.isAlphanumeric))
            let areNumbers = [one, two].allSatisfy { $0.contains { $0 >= 0x30 && $0 <= 0x39 } }
            guard areNumbers || one.elementsEqual(two) else { return nil }
            (left, right) = (left[one.endIndex...], right[two.endIndex...])
        }
        return right.startIndex
    }
}

/// Finds where XMPP begins in a line.
enum LogStart {
    /// Names that occur in XMPP alone, at the top of a stream.
    private static let names: Set<String> = [
        "stream:stream", "/stream:stream", "stream:features", "stream:error", "iq", "message", "presence",
        "db:result", "db:verify", "starttls",
    ]
    /// Names that are XMPP with one of its namespaces.
    private static let named: Set<String> = [
        "stream", "features", "error", "auth", "challenge", "response", "success", "failure", "abort", "proceed",
        "compress", "compressed", "enable", "enabled", "resume", "resumed", "failed", "r", "a", "body", "open", "close",
        "handshake", "authenticate", "continue", "next",
    ]
    private static let namespaces: [[UInt8]] = [
        "urn:ietf:params:xml:ns:xmpp-", "urn:xmpp:", "http://etherx.jabber.org/streams", "http://jabber.org/protocol/",
        "jabber:",
    ].map { Array($0.utf8) }
    private static let opening = Array("&lt;".utf8)
    private static let coded = [Array("\\u003c".utf8), Array("\\u003C".utf8), Array("\\x3c".utf8), Array("\\x3C".utf8)]

    /// Returns the index of the first `<`, escaped or not, that opens an item; `isTrusted` says whether the text up to an index is known to be
    /// in front of items.
    static func first(in line: [UInt8], from start: Int, isTrusted: (Int) -> Bool) -> Int? {
        guard start < line.count else { return nil }
        for index in start..<line.count {
            switch line[index] {
            case 0x3C:
                let bytes = line[index...]
                let xml =
                    LogEscapes.escapesQuotes(bytes)
                    ? LogEscapes.string(quote: nil).decoded(bytes.prefix(2000)).bytes[...] : bytes
                if opensItem(xml, isTrusted: { isTrusted(index) }) { return index }
            case 0x26 where line[index...].starts(with: opening):
                let (xml, _) = LogEscapes.entities.decoded(line[index...].prefix(2000))
                if opensItem(xml[...], isTrusted: { false }) { return index }
            case 0x5C where coded.contains { line[index...].starts(with: $0) }:
                let (xml, _) = LogEscapes.string(quote: nil).decoded(line[index...].prefix(2000))
                if opensItem(xml[...], isTrusted: { false }) { return index }
            default: break
            }
        }
        return nil
    }

    private static func opensItem(_ bytes: ArraySlice<UInt8>, isTrusted: () -> Bool) -> Bool {
        guard let next = bytes.dropFirst().first,
            next == 0x2F || next == 0x3F || next | 0x20 >= 0x61 && next | 0x20 <= 0x7A
        else { return false }
        let tag = LogTag(bytes.prefix(4000))
        guard tag.name.count <= 64 else { return false }
        let name = String(decoding: tag.name, as: UTF8.self)
        if tag.isDeclaration {
            // Any XML file may begin so.
            let behind = tag.content.drop { $0 == 0x20 }
            return isTrusted() || behind.first == 0x3C && opensItem(behind, isTrusted: { false })
        }
        if names.contains(name) {
            // In a sentence, `<iq>` and `<message>` speak of stanzas.
            let isBare = tag.attributes.isEmpty && !tag.isEmpty && next != 0x2F
            return !isBare || tag.content.isEmpty || tag.content.first { $0 != 0x20 } == 0x3C || isTrusted()
        }
        if tag.isStreamEnd { return tag.name.count > tag.local.count + 1 }
        guard next != 0x2F, next != 0x3F else { return false }
        let isNamespaced = tag.attributes.contains { attribute in
            attribute.name.starts(with: "xmlns".utf8) && namespaces.contains { attribute.value.starts(with: $0) }
        }
        if isNamespaced, tag.name.count > tag.local.count || named.contains(String(decoding: tag.local, as: UTF8.self))
        {
            return true
        }
        return isTrusted()
    }

}
