/// Compares the texts in front of items and lines. Words with digits are numbers, times or identifiers, and vary.
enum LogFront {
    /// Returns the lengths of the longest common beginning of whole words and single marks.
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

    /// Returns the end of a text at the beginning of a line; nil if the line begins otherwise.
    static func end(of front: [UInt8], in line: [UInt8]) -> Int? {
        let common = common(front, line)
        return common.front == front.count ? common.line : nil
    }

    /// Returns the end of what the logger prints in front of each line of an item, by the text in front of its first line; nil if a line
    /// lacks it.
    static func prefix(_ front: [UInt8], in line: [UInt8]) -> Int? {
        var end = common(front, line).line
        // An arrow may begin as a tag does.
        while end > 0, end < line.count, line[end - 1] == 0x3C { end -= 1 }
        guard end >= 3, !LogLead.isAlphanumeric(line[end - 1]), line[..<end].contains(where: LogLead.isAlphanumeric)
        else { return nil }
        return end
    }

    /// Whether a text without XML is the heading of items on the lines below it.
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

/// The values of fields in front of items, to tell a field that names a session from a count.
///
/// A session's value occurs again and again, a count of bytes or a line of the source code seldom.
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
    private static let mostFields = 256
    private static let mostValues = 1024

    mutating func append(_ lead: LogLead) {
        for slot in lead.slots {
            let field = Field(shape: lead.shape, place: slot.place)
            if fields[field] == nil, fields.count >= Self.mostFields { continue }
            // Beyond the limit the field varies.
            guard fields[field]?.counts.count ?? 0 < Self.mostValues else { continue }
            fields[field, default: Values()].total += 1
            fields[field]?.counts.insert(slot.value)
        }
    }

    /// Whether two texts may be in front of parts of one item: each field is equal, or no session's. `length` is the number of bytes
    /// behind the second text, which some programs print.
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

    /// Whether a text in front of a line names another session than the text in front of an item, of which it may be the beginning: a field
    /// that names sessions has another value, or one that was in front of another item before.
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
