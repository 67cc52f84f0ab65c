package import TapStore

extension AuditStore {
    /// Returns the rows that match a query, in order.
    package func rows(for query: SearchQuery) throws -> [AuditRow] {
        var rows: [AuditRow] = []
        try self.rows(for: query) { row in
            rows.append(row)
            return true
        }
        return rows
    }
}
