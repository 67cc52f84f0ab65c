internal import TapRecord

/// Splits a log into fragments of XML and lines of text.
///
/// The fragmenter looks for XML that is XMPP, whatever text surrounds it. An item may span several lines. A line that
/// does not begin like the log's own lines continues the item. A line that begins like them continues the item only if
/// the item's end follows, see ``LogTrial``. The rest of an item may also follow on a later line after the same text,
/// because some programs print the data of each read on one line.
struct LogFragmenter {
    /// A part of a log.
    enum Entry {
        case fragment(LogFragment)
        /// A line that shows no item.
        case text([UInt8], ClientLogStamp?)
    }

    private var found: [Entry] = []
    /// The fragment whose last item may continue on the next line.
    private var open: LogOpenItem?
    /// Lines after the open fragment that may belong to it.
    private var trial: LogTrial?
    /// Lines that are still to be read, in reverse order.
    private var waiting: [LogLine] = []
    /// A binary that continues on the next line.
    private var binary: ErlangBinary?
    /// The beginnings of lines that a container's log has split, by the name of the program's output.
    private var unfinished: [[UInt8]: Unfinished] = [:]
    /// The number of the last line.
    private var lastNumber = 0
    /// The last line of text, which may be the heading of an item.
    private var heading: LogLine?
    /// The text in front of the last fragment.
    private var last: Last?
    /// The shape of the times with which the log's own lines begin, see ``ClientLogStamp/shape(in:)``; nil if unknown.
    private var stampShape: [UInt8]?
    /// Whether the log's own lines have a time after that of the system's log, see ``ClientLogStamp/outer``.
    private var hasNestedTimes = false
    /// The places of the level in the log's own lines, for logs without times.
    private var levels: Set<LogLevelColumn> = []
    /// The texts in front of items, in logs without times.
    private var fronts: [[UInt8]] = []
    /// Texts in front of items which name the direction, one text for each shape.
    private var directed: [[UInt8]] = []
    private var directedShapes: Set<[UInt8]> = []
    /// The shapes of the texts in front of items.
    private var shapes: Set<[UInt8]> = []
    /// Items of which only a part was read, each with a different text in front; the oldest item comes first.
    private var partial: [LogOpenItem] = []
    /// The values of the fields in front of items.
    private var fields = LogFields()
    /// The leads of texts that were read recently, by the text without its time: most logs have few different texts.
    private var leads: [[UInt8]: LogLead] = [:]
    /// Whether an item, or the beginning of one, was found.
    private(set) var hasItems = false
    /// The number of bytes taken so far, and the number of bytes that were read twice.
    private var taken = 0
    private var reread = 0

    private static let maximumBytes = 64 << 20
    /// The largest number of lines of an item.
    private static let maximumLines = 20_000
    private static let maximumFronts = 64
    private static let maximumPartial = 64
    private static let maximumDirected = 16
    private static let maximumLeads = 128
    private static let maximumShapes = 128
    /// The number of bytes that may be read twice in addition to the number of bytes taken.
    private static let freeBytes = 4 << 20
    /// The greatest length of a text that can be recognised as a text in front of items.
    private static let maximumFrontLength = 2000

    private struct Last {
        var lead: LogLead
        var front: [UInt8]
        var lineFront: [UInt8]
        var stamp: ClientLogStamp?
        var isHeaded: Bool
    }

    /// The beginning of a line that a container's log has split.
    private struct Unfinished {
        var text: [UInt8] = []
        /// The number and the time of the last line that is a part of it.
        var number = 0
        var time: ClientLogStamp?
    }

    /// Returns the entries found so far, in the order of the log, and removes them.
    mutating func takeEntries() -> [Entry] {
        defer { found = [] }
        return found
    }

    /// Processes a line, without its newline; `number` counts from 1.
    mutating func process(_ raw: [UInt8], number: Int) {
        taken += raw.count
        lastNumber = number
        let line: LogLine
        if let entry = LogContainerEntry(raw) {
            // Removed first, so that the text grows in place.
            var part = unfinished.removeValue(forKey: entry.stream) ?? Unfinished()
            part.text += entry.text
            (part.number, part.time) = (number, entry.time)
            guard entry.endsLine || part.text.count > Self.maximumBytes || unfinished.count >= 2 else {
                unfinished[entry.stream] = part
                return
            }
            line = LogLine(part.text, number: number, outer: entry.time)
        } else {
            line = LogLine(raw, number: number)
        }
        process(line)
        readWaiting()
    }

    /// Processes a line, or holds it if it ends within a binary of Erlang.
    private mutating func process(_ line: LogLine) {
        if var current = binary {
            binary = nil
            let (isPart, whole) = current.append(line)
            if let whole { return waiting.append(whole) }
            guard !isPart else {
                binary = current
                return
            }
            waiting += current.lines.reversed()
            readWaiting()
        }
        if let begun = ErlangBinary(line) {
            binary = begun
        } else {
            waiting.append(ErlangBinary.decoded(line.bytes).map { LogLine(line, bytes: $0) } ?? line)
        }
    }

    /// Handles a pause of the input: emits the open fragment if its items are whole.
    mutating func pause() {
        guard trial == nil, open?.scanner.isWithinItem == false else { return }
        close(cut: false)
    }

    /// Handles the end of the log: emits everything that is left.
    mutating func finish() {
        for part in unfinished.values.sorted(by: { $0.number < $1.number }) {
            process(LogLine(part.text, number: part.number, outer: part.time))
            readWaiting()
        }
        unfinished = [:]
        waiting += (binary?.lines ?? []).reversed()
        binary = nil
        readWaiting()
        while trial != nil {
            refuteTrial()
            readWaiting()
        }
        close(cut: true)
        for part in partial { giveUp(part) }
        partial = []
        emitHeading()
    }

    // MARK: Lines

    private mutating func readWaiting() {
        while let line = waiting.popLast() { read(line) }
    }

    private mutating func read(_ line: LogLine) {
        if trial != nil { return extendTrial(line) }
        if let item = open {
            switch relation(of: line, to: item) {
            case .continues: return append(line, from: 0)
            case .continuesRead(let end): return append(line, from: end, isBroken: false)
            case .unknown:
                trial = LogTrial(item)
                open = nil
                return extendTrial(line)
            case .follows: close(cut: true)
            }
        }
        if !continuePartial(line) { scan(line) }
    }

    private enum Relation {
        /// The line is part of the item.
        case continues
        /// The text from an index on is the next part of the item.
        case continuesRead(Int)
        /// Later lines will show whether this line belongs to the item.
        case unknown
        /// The line comes after the item.
        case follows
    }

    private func relation(of line: LogLine, to item: LogOpenItem) -> Relation {
        guard item.lines < Self.maximumLines, item.scanner.item.count <= Self.maximumBytes, !line.beginsStream() else {
            return .follows
        }
        if let end = rest(of: item, in: line) { return .continuesRead(end) }
        if continuesPartial(line) { return .follows }
        let isOwn = isOwn(line)
        let prefix = LogFront.prefix(item.lineFront, in: line.bytes)
        guard isOwn || prefix != nil else { return .continues }
        let isPossible = LogTrial.isPossible(item, line, prefix)
        if isPossible, reread < Self.freeBytes + taken { return .unknown }
        return isOwn || !isPossible ? .follows : .continues
    }

    /// Returns the index after the text that a container tool or the system's log prints in front of each line, if a
    /// line that is not one of the program's own begins with the same text as the item; nil otherwise.
    private func textStart(in line: LogLine, _ item: LogOpenItem) -> Int? {
        guard hasOwnForm, !item.isHeaded else { return nil }
        let start = stampShape == nil ? LogLevelColumn.start(in: item.lineFront) : item.fragment.stamp?.range.lowerBound
        guard let start, start > 0, start <= item.lineFront.count else { return nil }
        return LogFront.end(of: Array(item.lineFront[..<start]), in: line.bytes)
    }

    private mutating func extendTrial(_ line: LogLine) {
        guard var current = trial else { return }
        trial = nil
        // If the line continues an incomplete item, the lines of the trial do not belong to the open item.
        if !current.lines.isEmpty, rest(of: current.base, in: line) != nil || continuesPartial(line) {
            trial = current
            waiting.append(line)
            return refuteTrial()
        }
        let isOwn = isOwn(line)
        switch current.append(line, isOwn: isOwn, textStart: isOwn ? nil : textStart(in: line, current.base), fields) {
        case .undecided: trial = current
        case .refuted:
            trial = current
            refuteTrial()
        case .accepted(let item, let end):
            open = item
            finishLine(line, end)
            for other in current.others { found.append(.text(other.bytes, other.stamp)) }
        }
    }

    /// Ends the trial: the open item is cut, and the lines after it are read separately.
    private mutating func refuteTrial() {
        guard let current = trial else { return }
        trial = nil
        reread += current.bytes + current.base.scanner.item.count
        open = current.base
        close(cut: true)
        // No item is open now, so that the first line does not begin another trial.
        waiting += current.lines.reversed()
    }

    private mutating func scan(_ line: LogLine) {
        let bytes = line.bytes
        var position = 0
        var hasFound = false
        while let start = firstStart(in: line, from: position) {
            if position == 0, quotesItem(line, start) { break }
            let (escapes, frontEnd) = LogEscapes.found(bytes, at: start)
            let wrapper = LogWrapper(bytes, around: start)
            let front = position..<max(position, min(frontEnd, wrapper?.start ?? frontEnd))
            begin(line, front, hasFound ? ClientLogStamp(Array(bytes[position...].prefix(64))) : line.stamp, escapes)
            hasFound = true
            if let wrapper {
                _ = open?.read(wrapper.content[...], number: line.number)
                position = wrapper.end
                close(cut: true)
                continue
            }
            let end = open?.read(bytes[start...], number: line.number) ?? bytes.count
            open?.recordWidth(line)
            position = max(end, start + 1)
            endFragment(line, end)
            guard open == nil else { return }
        }
        // An empty line may separate a heading from its items.
        guard !hasFound, !line.isBlank else { return }
        if processEnd(line) { return }
        if let heading, isRule(line, below: heading) { return found.append(.text(bytes, nil)) }
        emitHeading()
        heading = line
    }

    /// Processes a line that shows the end of an item after a known text in front of items: the log does not show the
    /// item's beginning. Returns false for any other line.
    private mutating func processEnd(_ line: LogLine) -> Bool {
        guard line.bytes.last(where: { $0 != 0x20 }) == 0x3E,
            let front = directed.first(where: { LogFront.end(of: $0, in: line.bytes) != nil }),
            let end = LogFront.end(of: front, in: line.bytes)
        else { return false }
        let text = line.bytes[end...].drop { $0 == 0x20 || $0 == 0x09 }
        guard text.first != 0x3C || text.starts(with: Self.endTag), text.firstRange(of: Self.endTag) != nil else {
            return false
        }
        emitHeading()
        var fragment = LogFragment(
            lead: lead(of: Array(line.bytes[..<end]), times: line.stamp?.ranges ?? []),
            stamp: line.stamp,
            line: line.number
        )
        fragment.items = [LogFragment.Item(bytes: Array(line.bytes[end...]), line: line.number, state: .endOnly)]
        found.append(.fragment(fragment))
        return true
    }

    private static let endTag = Array("</".utf8)

    private func firstStart(in line: LogLine, from position: Int) -> Int? {
        guard LogStart.isPossible(in: line.bytes[position...]) else { return nil }
        return LogStart.first(in: line.bytes[position...]) { self.isTrusted(line, position..<$0, isKnown: $1) }
    }

    /// Whether a line between a heading and its XML is a rule or an XML declaration, which carries no information.
    private func isRule(_ line: LogLine, below heading: LogLine) -> Bool {
        if line.bytes.allSatisfy({ [0x20, 0x2D, 0x3D, 0x5F, 0x2A, 0x7E, 0x23].contains($0) }) { return true }
        guard line.bytes.contains(0x3C) else { return false }
        let text = line.bytes[LogFront.common(heading.bytes, line.bytes).line...]
        return text.starts(with: "<?xml ".utf8)
    }

    /// Whether a text is known to precede items: then an element after it is an item, whatever the element's name.
    private func isTrusted(_ line: LogLine, _ front: Range<Int>, isKnown: Bool) -> Bool {
        if front.lowerBound == 0, line.bytes[front].allSatisfy({ $0 == 0x20 || $0 == 0x09 }) {
            return isKnown && isBelowHeading(line)
        }
        guard front.count <= Self.maximumFrontLength else { return false }
        let end = LogEscapes.found(line.bytes, at: front.upperBound).frontEnd
        let lead = LogLead(
            front: line.bytes[front.lowerBound..<max(front.lowerBound, end)],
            times: line.stamp?.ranges ?? []
        )
        if last?.lead.shape == lead.shape || directedShapes.contains(lead.shape) { return true }
        return LogWords.direction(lead.words) != nil && line.bytes[front].last { $0 != 0x20 } == 0x3A
    }

    /// Whether the line before this one is a heading that names a direction, or the last items were below a heading.
    private func isBelowHeading(_ line: LogLine) -> Bool {
        guard let heading else { return last?.isHeaded ?? false }
        guard heading.number == line.number - 1, !heading.hasClarkNames else { return false }
        return LogFront.isHeading(heading.bytes[...])
    }

    private mutating func begin(
        _ line: LogLine,
        _ front: Range<Int>,
        _ stamp: ClientLogStamp?,
        _ escapes: LogEscapes
    ) {
        let lineFront = Array(line.bytes[front])
        let ranges = front.lowerBound == 0 ? stamp?.ranges ?? [] : []
        var (text, time) = (lineFront, stamp)
        var isHeaded = false
        var lead = lead(of: text, times: ranges)
        let isBlank = lineFront.allSatisfy { $0 == 0x20 || $0 == 0x09 }
        if isBlank || LogWords.direction(lead.words) == nil, let head = head(of: lineFront, isBlank: isBlank) {
            (text, isHeaded) = (head.front, head.isHeaded)
            time = stamp ?? head.stamp
            lead = self.lead(of: text, times: head.stamp?.ranges ?? [])
        }
        heading = isHeaded && heading?.bytes == text ? nil : heading
        emitHeading()
        if stampShape == nil, let time, time.isInLine {
            stampShape = time.shape(in: stamp == nil ? text : line.bytes)
            hasNestedTimes = time.outer != nil
        }
        if let level = LogLevelColumn(text) { levels.insert(level) }
        if stampShape == nil, !text.isEmpty, fronts.count < Self.maximumFronts,
            !fronts.contains(where: { LogFront.end(of: $0, in: text) == text.count })
        {
            fronts.append(text)
        }
        hasItems = true
        if shapes.count < Self.maximumShapes { shapes.insert(lead.shape) }
        fields.append(lead)
        if !isHeaded, directed.count < Self.maximumDirected, LogWords.direction(lead.words) != nil,
            directedShapes.insert(lead.shape).inserted
        {
            directed.append(lineFront)
        }
        last = Last(lead: lead, front: text, lineFront: lineFront, stamp: time, isHeaded: isHeaded)
        open = LogOpenItem(
            LogFragment(lead: lead, stamp: time, line: line.number),
            front: text,
            lineFront: front.lowerBound == 0 ? lineFront : [],
            isHeaded: isHeaded,
            escapes: escapes,
            hasClarkNames: line.hasClarkNames
        )
    }

    private mutating func lead(of text: [UInt8], times: [Range<Int>]) -> LogLead {
        var key: [UInt8] = []
        var start = 0
        for time in times.lazy.map({ $0.clamped(to: start..<max(start, text.count)) }) {
            key += text[start..<time.lowerBound] + [0]
            start = time.upperBound
        }
        key += text[start...]
        if let known = leads[key] { return known }
        if leads.count >= Self.maximumLeads { leads = [:] }
        let lead = LogLead(front: text[...], times: times)
        leads[key] = lead
        return lead
    }

    /// Returns the text that belongs to an item but is on an earlier line: a heading, or the text in front of the last
    /// fragment. Nil if the item has only the text on its own line.
    private func head(
        of front: [UInt8],
        isBlank: Bool
    ) -> (front: [UInt8], stamp: ClientLogStamp?, isHeaded: Bool)? {
        if let heading {
            if isBlank { return (heading.bytes, heading.stamp, true) }
            guard let end = LogFront.end(of: front, in: heading.bytes), LogFront.isHeading(heading.bytes[end...]) else {
                return nil
            }
            return (heading.bytes, heading.stamp, true)
        }
        guard let last, isBlank || last.isHeaded && LogFront.end(of: last.lineFront, in: front) == front.count else {
            return nil
        }
        return (last.front, last.stamp, last.isHeaded)
    }

    /// Ends the open fragment unless one of its items continues after the index `end` of a line.
    private mutating func endFragment(_ line: LogLine, _ end: Int) {
        guard var current = open, !current.scanner.isWithinItem else { return }
        if end < line.bytes.count, LogStart.first(in: line.bytes[end...]) == nil {
            current.fragment.lead = LogLead(
                front: current.front[...],
                back: line.bytes[end...],
                times: current.fragment.stamp?.ranges ?? []
            )
            open = current
        }
        close(cut: false)
    }

    private mutating func append(_ line: LogLine, from start: Int, isBroken: Bool = true) {
        guard var current = open else { return }
        open = nil
        let end = current.append(line, from: start, isBroken: isBroken)
        open = current
        finishLine(line, end)
    }

    /// Ends the open fragment if its items are whole, and reads the items that follow it on the line.
    private mutating func finishLine(_ line: LogLine, _ end: Int) {
        endFragment(line, end)
        guard open == nil, end < line.bytes.count, LogStart.first(in: line.bytes[end...]) != nil else { return }
        scan(LogLine(line, from: end))
    }

    /// Whether a line begins like the log's own lines.
    private func isOwn(_ line: LogLine) -> Bool {
        if let stampShape { return line.stamp?.has(stampShape, in: line.bytes) ?? false }
        if !levels.isEmpty, let level = LogLevelColumn(line.bytes), levels.contains(level) { return true }
        return fronts.contains { LogFront.end(of: $0, in: line.bytes) != nil }
    }

    /// Whether the log's own lines are recognised by their times or levels, and not only by known texts.
    private var hasOwnForm: Bool { stampShape != nil || !levels.isEmpty }

    /// Whether a line has a time, and not only that of the system's log in front of a line of the program.
    private func hasTime(_ line: LogLine) -> Bool {
        guard let stamp = line.stamp else { return false }
        return stamp.outer != nil || !hasNestedTimes
    }

    /// Whether a line that is not one of the log's own quotes the item that begins at `start`, such as the last line of
    /// a Python traceback: `slixmpp.exceptions.PresenceError: <presence …`.
    private func quotesItem(_ line: LogLine, _ start: Int) -> Bool {
        let front = line.bytes[..<start]
        guard hasOwnForm, !hasTime(line), front.contains(where: LogLead.isAlphanumeric), !isOwn(line),
            LogTag(line.bytes[start...]).isStanza
        else { return false }
        let lead = LogLead(front: front, times: line.stamp?.ranges ?? [])
        guard !shapes.contains(lead.shape) else { return false }
        // An arrow names the direction only if it is next to the XML.
        let words = lead.words.filter { $0.contains(where: LogLead.isAlphanumeric) }
        let isArrow = front.last { $0 != 0x20 }.map { $0 == 0x3E || $0 == 0x3C || $0 >= 0x80 } ?? false
        return !isArrow && LogWords.direction(words) == nil
    }

    // MARK: Ends

    /// Emits the open fragment. If its last item is `cut`, the rest may follow on a later line after the same text.
    private mutating func close(cut: Bool) {
        guard var current = open else { return }
        open = nil
        if !current.fragment.items.isEmpty { found.append(.fragment(current.fragment)) }
        guard current.scanner.isWithinItem else { return }
        current.fragment.items = []
        guard cut, current.namesDirection, !current.lineFront.isEmpty, !current.scanner.hasOnlyStartTag else {
            return giveUp(current)
        }
        // An earlier incomplete item after the same text belongs to another read. The log does not show its end.
        if let place = partial.firstIndex(where: { $0.fragment.lead.isLike(current.fragment.lead) }) {
            giveUp(partial.remove(at: place))
        }
        if partial.count >= Self.maximumPartial { giveUp(partial.removeFirst()) }
        partial.append(current)
    }

    /// Emits an item whose end the log does not show.
    private mutating func giveUp(_ current: LogOpenItem) {
        var current = current
        let state: LogFragment.Item.State = current.scanner.hasOnlyStartTag ? .startTagOnly : .cut
        current.fragment.items = [
            LogFragment.Item(bytes: current.takeRest(), line: current.itemLine, state: state)
        ]
        found.append(.fragment(current.fragment))
    }

    /// Returns the index in a line at which the rest of an item begins, after the text in front of the item; nil if the
    /// line does not show the rest of the item.
    private func rest(of item: LogOpenItem, in line: LogLine) -> Int? {
        guard item.namesDirection, let end = frontEnd(of: item, in: line) else { return nil }
        return LogStart.first(in: line.bytes[end...]) == end ? nil : end
    }

    /// Returns the index at which the text in front of an item ends on another line of the same session; nil if the
    /// line begins differently or belongs to another session.
    private func frontEnd(of item: LogOpenItem, in line: LogLine) -> Int? {
        guard !item.lineFront.isEmpty, let end = LogFront.end(of: item.lineFront, in: line.bytes),
            end < line.bytes.count
        else { return nil }
        if line.bytes[..<end].elementsEqual(item.lineFront) { return end }
        let (one, two) = (
            LogLead(front: item.lineFront[...], times: ClientLogStamp(item.lineFront)?.ranges ?? []),
            LogLead(front: line.bytes[..<end], times: line.stamp?.ranges ?? [])
        )
        return fields.agree(one, two, length: line.bytes.count - end) ? end : nil
    }

    private func continuesPartial(_ line: LogLine) -> Bool {
        partial.contains { rest(of: $0, in: line) != nil }
    }

    /// Processes a line that continues an item of an earlier line; returns false for any other line.
    private mutating func continuePartial(_ line: LogLine) -> Bool {
        for (place, part) in partial.enumerated() {
            guard let end = frontEnd(of: part, in: line) else { continue }
            // A whole item begins here: the log does not show the end of the earlier item.
            guard LogStart.first(in: line.bytes[end...]) != end else {
                giveUp(partial.remove(at: place))
                return false
            }
            emitHeading()
            var current = partial.remove(at: place)
            current.fragment.stamp = line.stamp ?? current.fragment.stamp
            open = current
            append(line, from: end, isBroken: false)
            return true
        }
        return false
    }

    private mutating func emitHeading() {
        guard let text = heading else { return }
        heading = nil
        found.append(.text(text.bytes, text.stamp))
    }
}
