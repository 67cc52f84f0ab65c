internal import TapRecord

/// Errors and warnings of a table, grouped by their cause.
struct Findings {
    /// Maximum number of groups; further ones are counted together.
    private static let maximumCount = 500

    private struct Key: Hashable {
        let level: Level
        let code: String
        let subject: String
    }

    private struct Group {
        let level: Level
        let code: String
        let subject: String
        let filter: String
        let example: String
        var count: UInt64 = 0
        var sessions: Set<UInt64> = []
        var first: Int
        var last: Int
    }

    private var places: [Key: Int] = [:]
    private var groups: [Group] = []
    /// Number of records in groups that are not kept.
    private(set) var others: UInt64 = 0
    /// Number of records in all groups.
    private(set) var count: UInt64 = 0

    mutating func add(_ record: borrowing Record, _ content: Span<UInt8>, at position: Int) {
        let isItem = record.kind == .stanza || record.kind == .element
        let hasCondition = isItem && record.condition != nil
        // An action on an item is what a rule or xmpptap did to it.
        let action = isItem ? record.action : nil
        guard record.level <= .warn && record.level != .off || hasCondition || action != nil else { return }
        count += 1
        let code = (isItem ? record.condition ?? record.code : record.code ?? record.condition) ?? action ?? "error"
        let subject = isItem ? record.payloadText(content) : ""
        let level = hasCondition ? min(record.level, .warn) : record.level
        let key = Key(level: level, code: code, subject: subject)
        var place = places[key] ?? groups.count
        if place == groups.count {
            guard place < Self.maximumCount else {
                others += 1
                return
            }
            places[key] = place
            let filter: String
            if hasCondition {
                filter = subject.isEmpty ? "level:warn and xml:\"<\(code)\"" : "type:error and xml:\"<\(code)\""
            } else if let action, record.code == nil {
                filter = "action:\(action)"
            } else {
                filter = record.code.map { "code:\($0)" } ?? "level:warn"
            }
            groups.append(
                Group(
                    level: level,
                    code: code,
                    subject: subject,
                    filter: filter,
                    example: record.summary.map { "\($0)" } ?? record.message.map { "\($0)" } ?? "",
                    first: position,
                    last: position
                )
            )
            place = groups.count - 1
        }
        groups[place].count += 1
        groups[place].last = position
        if groups[place].sessions.count < 1000 { groups[place].sessions.insert(record.session) }
    }

    /// Writes the groups as an array, the most severe ones and then the largest ones first.
    func append(to output: inout LineBuffer) {
        output.openArray()
        for group in groups.sorted(by: { ($0.level, $1.count) < ($1.level, $0.count) }) {
            output.openObject()
            output.field("level", Int(group.level.rawValue))
            output.field("code", group.code)
            output.field("subject", group.subject)
            output.field("filter", group.filter)
            output.field("example", group.example)
            output.field("count", group.count)
            output.field("sessions", group.sessions.count)
            output.field("first", group.first)
            output.field("last", group.last)
            output.closeObject()
        }
        output.closeArray()
    }
}
