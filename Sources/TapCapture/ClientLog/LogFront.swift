/// Compares texts in front of items and lines. Words with digits count as equal, because numbers, times and identifiers
/// vary.
enum LogFront {
    /// Returns the lengths of the longest common beginning in `front` and in `line`, which consists of whole words and
    /// single punctuation marks.
    static func common(_ front: [UInt8], _ line: [UInt8]) -> (front: Int, line: Int) {
        var (left, right) = (0, 0)
        while left < front.count, right < line.count {
            guard LogLead.isAlphanumeric(front[left]) else {
                guard front[left] == line[right] else { break }
                (left, right) = (left + 1, right + 1)
                continue
            }
            let (one, two) = (end(of: front, left), end(of: line, right))
            guard isSame(front[left..<one], line[right..<two]) else { break }
            (left, right) = (one, two)
        }
        return (left, right)
    }

    /// Returns the index at which a text at the beginning of a line ends; nil if the line begins differently.
    static func end(of front: [UInt8], in line: [UInt8]) -> Int? {
        let common = common(front, line)
        return common.front == front.count ? common.line : nil
    }

    /// Returns the end of the text that the logger prints in front of each line of an item, by comparison with the text
    /// in front of its first line; nil if the line does not begin with this text.
    static func prefix(_ front: [UInt8], in line: [UInt8]) -> Int? {
        var end = common(front, line).line
        // Leave out `<` at the end: an arrow and a tag may both begin with it.
        while end > 0, end < line.count, line[end - 1] == 0x3C { end -= 1 }
        guard end >= 3, !LogLead.isAlphanumeric(line[end - 1]), line[..<end].contains(where: LogLead.isAlphanumeric)
        else { return nil }
        return end
    }

    /// Whether a text without XML is a heading that names the direction of the items on the lines below.
    static func isHeading(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.count <= 160, !showsTag(text) else { return false }
        let words = LogLead(front: text).words
        return words.count <= 8 && LogWords.direction(words) != nil
    }

    private static func showsTag(_ text: ArraySlice<UInt8>) -> Bool {
        zip(text, text.dropFirst()).contains { $0 == 0x3C && ($1 == 0x2F || LogLead.isAlphanumeric($1)) }
    }

    private static func end(of text: [UInt8], _ start: Int) -> Int {
        var end = start
        while end < text.count, LogLead.isAlphanumeric(text[end]) { end += 1 }
        return end
    }

    private static func isSame(_ one: ArraySlice<UInt8>, _ two: ArraySlice<UInt8>) -> Bool {
        one.elementsEqual(two)
            || [one, two].allSatisfy { word in word.contains { $0 >= 0x30 && $0 <= 0x39 } }
    }
}

/// The values of fields in front of items. They distinguish a field that names a session from a count.
///
/// The value of a session occurs again and again; a count of bytes or a line number of the source code rarely recurs.
struct LogFields {
    private struct Field: Hashable {
        var shape: [UInt8]
        var place: [UInt8]
    }

    private struct Values {
        var total = 0
        var counts: Set<[UInt8]> = []
    }

    private var fields: [Field: Values] = [:]
    private static let maximumFields = 256
    private static let maximumValues = 1024

    mutating func append(_ lead: LogLead) {
        for slot in lead.slots {
            let field = Field(shape: lead.shape, place: slot.place)
            if fields[field] == nil, fields.count >= Self.maximumFields { continue }
            // A field with more values is known to vary.
            guard fields[field]?.counts.count ?? 0 < Self.maximumValues else { continue }
            fields[field, default: Values()].total += 1
            fields[field]?.counts.insert(slot.value)
        }
    }

    /// Whether two texts may be in front of parts of one item: each field has the same value in both, or does not name
    /// a session. `length` is the number of bytes after the second text, because some programs print this number.
    func agree(_ one: LogLead, _ two: LogLead, length: Int) -> Bool {
        guard one.shape == two.shape, one.slots.count == two.slots.count else { return false }
        return zip(one.slots, two.slots).allSatisfy { left, right in
            if left == right { return true }
            guard left.place == right.place else { return false }
            if right.value.elementsEqual(String(length).utf8) { return true }
            guard let values = fields[Field(shape: one.shape, place: left.place)], values.total >= 4 else {
                return false
            }
            return values.counts.count * 2 >= values.total
        }
    }

    /// Whether the text `two` in front of a line names another session than the text `one` in front of an item: a field
    /// that names sessions has another value, or a value that was in front of another item before. `two` may be only
    /// the beginning of a text like `one`.
    func contradict(_ one: LogLead, _ two: LogLead) -> Bool {
        two.slots.contains { slot in
            guard let value = one.slots.first(where: { $0.place == slot.place })?.value, value != slot.value else {
                return false
            }
            if let values = fields[Field(shape: one.shape, place: slot.place)], values.total >= 4 {
                return values.counts.count * 2 < values.total
            }
            return fields.contains { $0.key.place == slot.place && $0.value.counts.contains(slot.value) }
        }
    }
}
