internal import TapRecord

/// The conditions that rows of the table of stanzas must meet.
struct RowConditions {
    /// The condition on the account, by which the server leaves out rows before it reads their other columns.
    private var account: String?
    private var others: [String] = []

    /// Creates the conditions of a query. Rows that meet them may still lack some of its words.
    init(_ query: SearchQuery) {
        account = query.account.map { Self.equal("account", $0) }
        for peer in [query.peer, query.room].compactMap(\.self) { others.append(Self.equal("peer", peer)) }
        if let (one, other) = query.pair { others.append(Self.areEnds(one, other)) }
        if let times = query.times {
            let (start, end) = (times.lowerBound.nanoseconds, times.upperBound.nanoseconds)
            others.append("(seen >= \(start) AND seen < \(end) OR time >= \(start) AND time < \(end))")
        }
        if query.kinds.isEmpty {
            others.append("kind = 0 AND isNotNull(body)")
        } else {
            let kinds = query.kinds.map { "\($0.rawValue)" }.sorted()
            others.append("kind IN (\(kinds.joined(separator: ", ")))")
        }
        // The size of a statement is limited; all words are checked again.
        for term in query.terms.prefix(16) {
            guard let pattern = WordPattern.containing(term.word) else { continue }
            others.append("match(assumeNotNull(body), \(ClickHouseServer.literal(pattern)))")
        }
    }

    /// Returns the conditions with others.
    func and(_ more: String?...) -> RowConditions {
        var conditions = self
        conditions.others += more.compactMap(\.self)
        return conditions
    }

    /// Returns the conditions for the rows of a conversation among these.
    func of(_ conversation: Conversation) -> RowConditions {
        switch conversation {
        case .people(let one, let other): and(Self.areEnds(one, other))
        case .room(let room): and("(\(Self.equal("peer", room)) OR \(Self.equal("account", room)) AND peer = '')")
        }
    }

    /// The conditions as clauses of a statement.
    var clauses: String {
        (account.map { "PREWHERE \($0) " } ?? "") + "WHERE \(others.joined(separator: " AND "))"
    }

    private static func equal(_ column: String, _ value: String) -> String {
        "\(column) = \(ClickHouseServer.literal(value))"
    }

    /// Returns the condition for the stanzas between two addresses.
    private static func areEnds(_ one: String, _ other: String) -> String {
        let ends = [(one, other), (other, one)].map {
            "(\(equal("account", $0)) AND (\(equal("peer", $1))\($0 == $1 ? " OR peer = ''" : "")))"
        }
        return "(\(ends.joined(separator: " OR ")))"
    }
}
