internal import TapRecord
internal import XMPPCore

/// Errors, warnings and actions on items in a table, grouped by their cause.
struct Findings {
    /// Maximum number of bytes of a code or subject.
    private static let maximumWord = RecordSurvey.maximumText
    /// Maximum number of sessions that are counted for a group.
    private static let maximumSessions = 1000
    /// Maximum number of sessions that are listed for a group.
    private static let maximumListed = 5

    /// Maximum number of groups. Of the others, only the records are counted.
    private let maximumCount: Int

    /// - Parameter maximumCount: Maximum number of groups; the latest ones are kept.
    init(maximumCount: Int = 500) { self.maximumCount = max(1, maximumCount) }

    private struct Key: Hashable {
        let level: Level
        let code: String
        let subject: String
        /// The cause of a failed login; empty for other records.
        let cause: String
    }

    private struct Group {
        let filter: String
        let example: String
        var count: UInt64 = 0
        var sessions: Set<UInt64> = []
        /// The first sessions, in the order of their records.
        var listed: [UInt64] = []
        let first: Int
        var last: Int

        mutating func add(_ session: UInt64, at position: Int) {
            count += 1
            last = position
            guard session > 0, sessions.count < maximumSessions, sessions.insert(session).inserted else { return }
            if listed.count < maximumListed { listed.append(session) }
        }
    }

    private var groups: [Key: Group] = [:]
    /// Number of records in groups that are no longer kept.
    private(set) var others: UInt64 = 0
    /// Number of records that are errors: of level error, or with the condition of an error.
    private(set) var errors: UInt64 = 0

    mutating func add(_ record: borrowing Record, _ content: Span<UInt8>, at position: Int) {
        let isItem = record.kind == .stanza || record.kind == .element
        let hasCondition = isItem && record.condition != nil
        // An action on an item is what a rule or xmpptap did to it.
        let action = isItem && !Self.isTranslation(record, content) ? record.action : nil
        guard record.level <= .warn && record.level != .off || hasCondition || action != nil else { return }
        let level: Level = hasCondition ? .error : record.level
        if level == .error { errors += 1 }
        let code = (isItem ? record.condition ?? record.code : record.code ?? record.condition) ?? action ?? "error"
        let subject = isItem ? record.payloadText(content) : ""
        let cause = record.code == Record.Code.loginFailed ? record.details?[Record.Detail.cause]?.text ?? "" : ""
        let key = Key(
            level: level,
            code: code.cut(to: Self.maximumWord),
            subject: subject.cut(to: Self.maximumWord),
            cause: cause.cut(to: Self.maximumWord)
        )
        if groups[key] == nil {
            makeSpace()
            groups[key] = Group(
                filter: Self.filter(of: record, hasCondition, code, subject, action, cause),
                example: Self.example(record, content, showsBody: action != nil && !hasCondition),
                first: position,
                last: position
            )
        }
        groups[key]?.add(record.session, at: position)
    }

    /// Names of elements of stream management that have a count of stanzas.
    private static let countNames: [String] = ["a", "resume", "resumed", "failed"]

    /// Returns whether an edited item is an element of stream management with a count: xmpptap translates counts after it has
    /// dropped or injected stanzas. Such edits are not listed.
    private static func isTranslation(_ record: borrowing Record, _ content: Span<UInt8>) -> Bool {
        guard record.kind == .element, record.action == "edited", let name = record.name else { return false }
        return countNames.contains(content.slice(name).string())
    }

    /// Returns the record's own text; if `showsBody`, that of the message, if there is one.
    private static func example(_ record: borrowing Record, _ content: Span<UInt8>, showsBody: Bool) -> String {
        var body: [UInt8] = []
        if showsBody, record.readBody(content, into: &body) { return body.span.string().cut(to: maximumWord) }
        return (record.summary ?? record.message).map { "\($0.cut(to: maximumWord))" } ?? ""
    }

    /// Returns the filter that finds the records of a group.
    private static func filter(
        of record: borrowing Record,
        _ hasCondition: Bool,
        _ code: String,
        _ subject: String,
        _ action: String?,
        _ cause: String
    ) -> String {
        // A part of a word is sufficient for a search in the XML.
        let word = code.utf8Span.span.cut(to: maximumWord).string()
        if hasCondition {
            guard isPlain(code, "-_.") else {
                return subject.isEmpty ? "level:warn and xml:\"<\(word)\"" : "type:error and xml:\"<\(word)\""
            }
            // Other records, such as that of the failed login, may have the condition, too.
            let items = "kind:stanza,nonza and condition:\(code)"
            guard subject.hasPrefix("{"), isPlain(subject, "{}:/.#-_+?=&%~") else { return items }
            return "\(items) and payload:\(subject)"
        }
        if let action, record.code == nil {
            let items = "kind:stanza,nonza and action:\(action.cut(to: maximumWord))"
            guard action == "edited" else { return items }
            return "\(items) and not (\(countNames.map { "element:\($0)" }.joined(separator: " or ")))"
        }
        if !cause.isEmpty, isPlain(cause, "-") { return "code:\(word) and code:\(cause)" }
        return record.code == nil ? "level:warn" : "code:\(word)"
    }

    /// Returns whether a value can be written in a filter as it is: it is short, and has only letters, digits and
    /// `others`.
    private static func isPlain(_ value: String, _ others: String) -> Bool {
        value.utf8.count <= maximumWord
            && value.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || others.contains($0) }
    }

    /// Removes the groups that did not occur for the longest time if there are too many.
    private mutating func makeSpace() {
        guard groups.count >= maximumCount else { return }
        let oldest = groups.sorted { $0.value.last < $1.value.last }.prefix(max(1, maximumCount / 8))
        for (key, group) in oldest {
            others += group.count
            groups[key] = nil
        }
    }

    /// Writes the groups as an array, the most severe ones and then the largest ones first.
    func append(to output: inout LineBuffer) {
        output.openArray()
        for (key, group) in groups.sorted(by: {
            ($0.key.level, $1.value.count, $0.value.first) < ($1.key.level, $0.value.count, $1.value.first)
        }) {
            output.openObject()
            output.field("level", Int(key.level.rawValue))
            output.field("code", key.code)
            output.field("subject", key.subject)
            if !key.cause.isEmpty { output.field("cause", key.cause) }
            output.field("filter", group.filter)
            output.field("example", group.example)
            output.field("count", group.count)
            output.field("sessions", group.sessions.count)
            output.field("listed")
            output.openArray()
            for session in group.listed {
                output.separate()
                output.append(decimal: session)
            }
            output.closeArray()
            output.field("first", group.first)
            output.field("last", group.last)
            output.closeObject()
        }
        output.closeArray()
    }
}
