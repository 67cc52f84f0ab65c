internal import TapCapture
internal import TapRecord
internal import TapSecurity

/// A batch with a row that a server does not accept: it is halved until that row is alone, so that all others are stored.
struct RefusedBatch {
    /// The number of rows that may be refused while none is accepted: then the fault is not in the rows.
    private static let tolerance = 10
    /// The maximum number of bytes of a batch's rows.
    private static let limit = 1 << 30

    let table: SpoolBlock.Table
    private let token: String
    private let bytes: [UInt8]
    /// The places of the rows.
    private let rows: [Range<Int>]
    /// The rows that are refused, each with the fault.
    private(set) var refused: [(row: Range<Int>, fault: StoreFault)] = []
    private var accepted = 0

    /// - Parameter payload: The rows as gzip members.
    init(_ payload: [UInt8], _ table: SpoolBlock.Table, token: String) {
        self.table = table
        self.token = token
        bytes = Compression.gzip.contents(of: payload, limit: Self.limit)
        rows = ClickHouseSchema.rows(of: table, in: bytes)
    }

    /// Sends the halves, their halves and so on.
    ///
    /// - Throws: The fault if it is not that of a row: all are sent again later, and the store removes duplicates.
    mutating func send(to server: ClickHouseServer) throws(StoreFault) {
        refused = []
        accepted = 0
        var rest = rows.count > 1 ? [0..<rows.count / 2, rows.count / 2..<rows.count].reversed() : [0..<rows.count]
        while let range = rest.popLast() {
            do throws(StoreFault) {
                try send(range, to: server)
                accepted += range.count
            } catch {
                guard case .row = error.code else { throw error }
                guard range.count == 1 else {
                    let middle = range.lowerBound + range.count / 2
                    rest += [middle..<range.upperBound, range.lowerBound..<middle]
                    continue
                }
                refused.append((rows[range.lowerBound], error))
                guard accepted > 0 || refused.count < Self.tolerance || rows.count < Self.tolerance else { throw error }
            }
        }
    }

    private func send(_ range: Range<Int>, to server: ClickHouseServer) throws(StoreFault) {
        guard let first = rows[range].first, let last = rows[range].last else { return }
        let part = bytes[first.lowerBound..<last.upperBound]
        let compressor = Compressor(.gzip, isFast: true)
        let member = (compressor?.compress(part.span.bytes) ?? []) + (compressor?.finish() ?? [])
        try server.insert(member, into: table, token: "\(token)/\(range.lowerBound)-\(range.upperBound)")
    }

    /// Returns a row as a JSON object.
    func json(_ range: Range<Int>, reason: String) -> String {
        var reader = RowBinaryReader(Array(bytes[range]))
        switch table {
        case .stanza:
            if let row = ClickHouseSchema.row(&reader) { return RowExport.json(row, reason: reason) }
        case .session, .gap: break
        }
        return LineBuffer.object { line in
            line.field("reason", reason)
            line.field("bytes", bytes[range].hexadecimal)
        }
    }
}
