internal import XMPPCore

/// The numbers that link a request and its answer.
struct PairNumbers: Sendable {
    private static let mostOpen = 4096
    /// By the sequence number of the request.
    private var open: [UInt64: Int] = [:]
    private var last = 0

    /// Restarts the numbers, since rows with the earlier ones are not shown.
    mutating func begin() { last = 0 }

    mutating func number(of record: borrowing Record, _ content: Span<UInt8>) -> Int? {
        if let request = record.answers { return open.removeValue(forKey: request) }
        guard record.kind == .stanza, content.slice(record.name ?? .empty).equals("iq") else { return nil }
        let type = content.slice(record.type ?? .empty)
        guard type.equals("get") || type.equals("set") else { return nil }
        // Drop requests without an answer.
        if open.count >= Self.mostOpen { open.removeAll() }
        // The column has space for three digits.
        last = last % 999 + 1
        open[record.sequence] = last
        return last
    }
}
