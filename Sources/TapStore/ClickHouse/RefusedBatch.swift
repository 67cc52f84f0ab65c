internal import TapCapture
internal import TapRecord
internal import TapSecurity

/// A batch with a row that a server does not accept: it is sent block by block, and a block is halved until that row is alone, so that all
/// others are stored.
struct RefusedBatch {
    /// A row that a server does not accept.
    struct Row {
        /// The row in RowBinary.
        let bytes: [UInt8]
        let fault: StoreFault

        /// The row as a JSON object, with the reason.
        func json(of table: SpoolBlock.Table) -> String {
            var reader = RowBinaryReader(bytes)
            var texts = ClickHouseSchema.RowTexts()
            if table == .stanza, let row = ClickHouseSchema.row(&reader, &texts) {
                return RowExport.json(row, reason: fault.reason)
            }
            return LineBuffer.object { line in
                line.field("reason", fault.reason)
                line.field("bytes", bytes.hexadecimal)
            }
        }
    }

    /// The number of rows that may be refused while none is accepted: then the fault is not in the rows.
    private static let tolerance = 10
    /// The maximum number of bytes of a block's rows: a writer makes far smaller ones.
    private static let limit = 1 << 30

    let table: SpoolBlock.Table
    private let token: String
    private(set) var refused: [Row] = []
    private(set) var accepted = 0
    private var blocks = 0

    init(_ table: SpoolBlock.Table, token: String) { (self.table, self.token) = (table, token) }

    /// Sends a block, and if it is refused, its halves, their halves and so on.
    ///
    /// - Parameter count: The number of its rows.
    /// - Throws: The fault if it is not that of a row: all are sent again later, and the store removes duplicates.
    mutating func send(_ payload: [UInt8], rows count: Int, to server: ClickHouseServer) throws(StoreFault) {
        blocks += 1
        do throws(StoreFault) {
            try server.insert(payload, into: table, token: "\(token)/\(blocks)")
            accepted += count
            return
        } catch {
            guard case .row = error.code else { throw error }
        }
        let bytes = Compression.gzip.contents(of: payload, limit: Self.limit)
        let rows = ClickHouseSchema.rows(of: table, in: bytes)
        guard rows.count == count else {
            throw StoreFault(code: .other("\(rows.count) of \(count) rows can be read"), path: server.path)
        }
        var rest = [0..<rows.count]
        while let range = rest.popLast() {
            guard let first = rows[range].first, let last = rows[range].last else { continue }
            let part = Array(bytes[first.lowerBound..<last.upperBound])
            do throws(StoreFault) {
                try insert(part, "\(blocks)/\(range.lowerBound)-\(range.upperBound)", to: server)
                accepted += range.count
            } catch {
                guard case .row = error.code else { throw error }
                guard range.count == 1 else {
                    let middle = range.lowerBound + range.count / 2
                    rest += [middle..<range.upperBound, range.lowerBound..<middle]
                    continue
                }
                refused.append(Row(bytes: part, fault: error))
                guard accepted > 0 || refused.count < Self.tolerance else { throw error }
            }
        }
    }

    private func insert(_ rows: [UInt8], _ part: String, to server: ClickHouseServer) throws(StoreFault) {
        let compressor = Compressor(.gzip, isFast: true)
        let member = (compressor?.compress(rows.span.bytes) ?? []) + (compressor?.finish() ?? [])
        try server.insert(member, into: table, token: "\(token)/\(part)")
    }
}
