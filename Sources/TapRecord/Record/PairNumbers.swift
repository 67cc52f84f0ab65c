internal import XMPPCore

/// The numbers that link a request and its answer.
struct PairNumbers: Sendable {
    private static let maximumOpen = 4096
    /// The numbers of unanswered requests, by the sequence number of the request.
    private var open: [UInt64: Int] = [:]
    private var last = 0

    /// Restarts the numbers at 1, because the rows with the earlier numbers are not shown.
    mutating func begin() { last = 0 }

    mutating func number(of record: borrowing Record, _ content: Span<UInt8>) -> Int? {
        if let request = record.answers { return open.removeValue(forKey: request) }
        guard record.kind == .stanza, content.slice(record.name ?? .empty).equals("iq") else { return nil }
        let type = content.slice(record.type ?? .empty)
        guard type.equals("get") || type.equals("set") else { return nil }
        // Limits the memory for requests that are never answered.
        if open.count >= Self.maximumOpen { open.removeAll() }
        // The column has space for three digits.
        last = last % 999 + 1
        open[record.sequence] = last
        return last
    }
}
