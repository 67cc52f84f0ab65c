/// Lines of which it is not yet known whether they belong to the open item or come after it.
///
/// The lines begin like the log's own lines. Either the logger prints the same text in front of each line of an item,
/// or the item's text quotes lines of a log, or the log cuts the item and continues with other lines. In the first two
/// cases the item's end must follow, with end tags that match the open elements.
struct LogTrial {
    enum Outcome {
        case undecided
        /// The item is cut: the lines are to be read separately.
        case refuted
        /// The item is whole, and ends at an index of the last line.
        case accepted(LogOpenItem, end: Int)
    }

    /// The open item before the trial.
    let base: LogOpenItem
    /// All lines of the trial so far.
    private(set) var lines: [LogLine] = []
    /// Lines of other programs between those of the item.
    private(set) var others: [LogLine] = []
    private(set) var bytes = 0
    /// The item, on the assumption that the logger's text precedes each of its lines; nil if that is ruled out.
    private var prefixed: LogOpenItem?
    /// The item, on the assumption that the whole lines are its text; nil if that is ruled out.
    private var whole: LogOpenItem?

    private static let maximumLines = 20_000
    private static let maximumBytes = 4 << 20
    /// Lower limits for a text that quotes lines of a log, because no later item is given out until the trial ends.
    private static let maximumTextLines = 200
    private static let maximumTextBytes = 64 << 10

    init(_ item: LogOpenItem) {
        base = item
        prefixed = item
        whole = Self.mayShowLog(item) ? item : nil
    }

    /// Whether the open text of an item may quote lines of a log. Directly after the first tag, only elements follow.
    private static func mayShowLog(_ item: LogOpenItem) -> Bool {
        item.scanner.isWithinText && !item.scanner.hasOnlyStartTag
    }

    /// Whether a line may be part of an item; `prefix` is the index at which the logger's text ends in the line.
    static func isPossible(_ item: LogOpenItem, _ line: LogLine, _ prefix: Int?) -> Bool {
        if mayShowLog(item), !line.beginsStream() { return true }
        guard let prefix else { return false }
        return !beginsAnother(line.bytes[prefix...], within: item) && !line.beginsStream(from: prefix)
    }

    /// Processes the next line.
    ///
    /// - Parameters:
    ///   - isOwn: Whether the line begins like the log's own lines.
    ///   - textStart: The index after the text that is in front of every line of the log; nil if the program has
    ///     written a new line. The rest of the line belongs to the item, whatever it looks like.
    ///   - fields: Shows which values name sessions.
    mutating func append(_ line: LogLine, isOwn: Bool, textStart: Int?, _ fields: LogFields) -> Outcome {
        lines.append(line)
        bytes += line.bytes.count + 1
        let textStart = prefixed?.scanner.isWithinText == true ? textStart : nil
        let prefix = textStart ?? LogFront.prefix(base.lineFront, in: line.bytes)
        let ownPrefix = prefix.flatMap { isOfSession(line, $0, fields) ? $0 : nil }
        if let outcome = appendPrefixed(
            line,
            ownPrefix,
            isText: textStart != nil && base.scanner.hasOnlyStartTag == false
        ) ?? appendWhole(line, isOwn: isOwn || prefix != nil) {
            return outcome
        }
        if lines.count >= Self.maximumTextLines || bytes >= Self.maximumTextBytes { whole = nil }
        if lines.count >= Self.maximumLines || bytes >= Self.maximumBytes { prefixed = nil }
        return prefixed == nil && whole == nil ? .refuted : .undecided
    }

    /// Whether the logger's text in front of a line may belong to the session of the item.
    private func isOfSession(_ line: LogLine, _ prefix: Int, _ fields: LogFields) -> Bool {
        let text = line.bytes[..<prefix]
        guard !base.lineFront.starts(with: text) else { return true }
        let lead = LogLead(front: text, times: line.stamp?.ranges ?? [])
        // If the whole text is repeated, the line may hold the rest of a read of another session.
        if base.namesDirection, prefix == LogFront.end(of: base.lineFront, in: line.bytes) {
            return fields.agree(base.fragment.lead, lead, length: line.bytes.count - prefix)
        }
        return !fields.contradict(base.fragment.lead, lead)
    }

    private mutating func appendPrefixed(_ line: LogLine, _ prefix: Int?, isText: Bool) -> Outcome? {
        guard var item = prefixed else { return nil }
        guard let prefix else {
            if LogStart.first(in: line.bytes[...]) == nil { others.append(line) } else { prefixed = nil }
            return nil
        }
        let text = line.bytes[prefix...]
        if !isText, Self.beginsAnother(text, within: item) || line.beginsStream(from: prefix) {
            prefixed = nil
            return nil
        }
        let isRepeated = prefix == LogFront.end(of: base.lineFront, in: line.bytes)
        prefixed = nil
        let end = item.append(line, from: prefix, isBroken: !isRepeated || item.isBroken(before: text))
        if let outcome = outcome(of: item, end) { return outcome }
        prefixed = item
        return nil
    }

    /// Whether the text after the logger's text shows another item or is a heading. A `>` may be an arrow or the end of
    /// a tag.
    private static func beginsAnother(_ text: ArraySlice<UInt8>, within item: LogOpenItem) -> Bool {
        if item.scanner.isWithinTag, LogTag.continuesTag(text) { return false }
        if LogFront.isHeading(text) { return true }
        guard let start = LogStart.first(in: text) else { return false }
        let front = text[..<start]
        // A stanza within another one is indented.
        return start == text.startIndex || front.contains { $0 != 0x20 && $0 != 0x09 }
    }

    private mutating func appendWhole(_ line: LogLine, isOwn: Bool) -> Outcome? {
        guard var item = whole else { return nil }
        whole = nil
        guard !line.beginsStream() else { return nil }
        let end = item.append(line)
        if item.fragment.items.count > base.fragment.items.count {
            // A quoted line of a log cannot end an item that began outside of the line.
            return isOwn ? nil : outcome(of: item, end)
        }
        whole = item
        return nil
    }

    /// Returns `accepted` for an item that has just ended if its tags match; nil if they do not or no item has ended.
    private func outcome(of item: LogOpenItem, _ end: Int) -> Outcome? {
        guard item.fragment.items.count > base.fragment.items.count else { return nil }
        let ended = item.fragment.items[base.fragment.items.count]
        return LogXMLScanner.isBalanced(ended.bytes) ? .accepted(item, end: end) : nil
    }
}
