internal import XMPPCore

/// The last row, and the number of its repetitions.
struct RepeatedRow: Sendable {
    private var kind: [UInt8] = []
    private var text: [UInt8] = []
    private var mark = RowMark.neutral
    private var session: UInt64 = 0
    private var count = 0

    /// Returns whether a row repeats the last one, and counts the repetition.
    mutating func counts(
        _ kind: borrowing LineBuffer,
        _ text: borrowing LineBuffer,
        _ mark: RowMark,
        _ record: borrowing Record
    ) -> Bool {
        guard mark == self.mark, record.session == session, kind.utf8.equals(self.kind.span),
            text.utf8.equals(self.text.span)
        else { return false }
        count += 1
        return true
    }

    /// Returns whether repetitions of a record are counted instead of shown: keepalives, available presence, and
    /// acknowledgements.
    static func isChatter(_ record: borrowing Record, _ content: Span<UInt8>) -> Bool {
        guard record.kind == .stanza || record.kind == .element else { return record.kind == .whitespace }
        let name = content.slice(record.name ?? .empty)
        if record.kind == .stanza { return name.equals("presence") && record.type == nil }
        return (name.equals("r") || name.equals("a")) && record.type == nil
    }

    mutating func begin(
        _ kind: borrowing LineBuffer,
        _ text: borrowing LineBuffer,
        _ mark: RowMark,
        _ record: borrowing Record
    ) {
        self.mark = mark
        session = record.session
        self.kind.removeAll(keepingCapacity: true)
        self.text.removeAll(keepingCapacity: true)
        self.kind.append(kind.utf8)
        self.text.append(text.utf8)
    }

    /// Clears the row; returns its number of repetitions.
    mutating func end() -> Int {
        defer {
            count = 0
            if !kind.isEmpty {
                kind.removeAll(keepingCapacity: true)
                text.removeAll(keepingCapacity: true)
            }
        }
        return count
    }
}
