internal import TapCapture
internal import TapRecord

/// Rows of one table in a segment of a spool: a header, then the rows in RowBinary as one gzip member.
///
/// Members can be joined without decompressing them (RFC 1952 §2.2), so that a server is sent the bytes of the file.
struct SpoolBlock {
    /// The table of the rows. The raw value is stored.
    enum Table: UInt8, CaseIterable {
        case stanza = 1, session, gap
    }

    /// The properties of the rows, from the header.
    struct Facts: Equatable {
        var table: Table
        /// The number of rows.
        var rows: Int
        /// The lowest and the highest number of their records in the run.
        var first: UInt64
        var last: UInt64
        /// The time at which the first one was seen.
        var time: Timestamp
    }

    /// The number of bytes of a header.
    static let headerSize = 48
    private static let signature = Array("xtb1".utf8)

    let facts: Facts
    /// The place of the gzip member in the bytes that were read.
    let payload: Range<Int>

    /// Returns the bytes of a block.
    static func encode(_ facts: Facts, _ payload: [UInt8]) -> [UInt8] {
        var header = RowBinaryWriter()
        header.append(facts.table.rawValue)
        header.append(UInt8(0))
        header.append(UInt16(0))
        header.append(UInt32(clamping: facts.rows))
        header.append(UInt32(clamping: payload.count))
        header.append(facts.first)
        header.append(facts.last)
        header.append(facts.time.nanoseconds)
        header.append(CRC32.checksum(payload.span.bytes))
        header.append(CRC32.checksum(header.bytes.span.bytes))
        return signature + header.bytes + payload
    }

    /// The number of bytes of the rows without compression, modulo 2^32 (RFC 1952 §2.3.1).
    static func rowBytes(_ member: some RandomAccessCollection<UInt8>) -> Int {
        member.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// Returns the blocks in the bytes of a segment from `start` on, and the known properties of damaged ones.
    ///
    /// An incomplete block at the end is not damage: the program or the machine was stopped while it was being written. Some file
    /// systems then have zeros there.
    static func blocks(in bytes: [UInt8], from start: Int) -> (blocks: [SpoolBlock], isDamaged: Bool, lost: [Facts]) {
        var blocks: [SpoolBlock] = []
        var isDamaged = false
        var lost: [Facts] = []
        var position = start
        while position < bytes.count {
            switch read(bytes, at: position) {
            case .block(let block):
                blocks.append(block)
                position = block.payload.upperBound
            case .incomplete: return (blocks, isDamaged, lost)
            case .damaged(let facts):
                if bytes[position...].allSatisfy({ $0 == 0 }) { return (blocks, isDamaged, lost) }
                isDamaged = true
                if let facts { lost.append(facts) }
                position = next(after: position, in: bytes)
            }
        }
        return (blocks, isDamaged, lost)
    }

    private static func next(after position: Int, in bytes: [UInt8]) -> Int {
        var place = position + 1
        while place < bytes.count {
            guard let found = bytes[place...].firstIndex(of: signature[0]) else { return bytes.count }
            if bytes[found...].starts(with: signature) { return found }
            place = found + 1
        }
        return bytes.count
    }

    private enum Reading {
        case block(SpoolBlock)
        /// The bytes end within the block.
        case incomplete
        /// With what the header says of the rows, if it is not damaged itself.
        case damaged(Facts?)
    }

    private static func read(_ bytes: [UInt8], at place: Int) -> Reading {
        let end = place + headerSize
        guard bytes[place...].starts(with: signature) else {
            return signature.starts(with: bytes[place...]) ? .incomplete : .damaged(nil)
        }
        guard end <= bytes.count else { return .incomplete }
        let header = Array(bytes[(place + signature.count)..<end])
        var reader = RowBinaryReader(header)
        let table = Table(rawValue: reader.integer())
        _ = reader.integer(UInt8.self)
        _ = reader.integer(UInt16.self)
        let rows = reader.integer(UInt32.self)
        let count = Int(reader.integer(UInt32.self))
        let (first, last) = (reader.integer(UInt64.self), reader.integer(UInt64.self))
        let time = Timestamp(nanoseconds: reader.integer())
        let payloadSum = reader.integer(UInt32.self)
        let headerSum = reader.integer(UInt32.self)
        guard let table, headerSum == CRC32.checksum(header.span.extracting(0..<(header.count - 4)).bytes) else {
            return .damaged(nil)
        }
        guard count <= bytes.count - end else { return .incomplete }
        let facts = Facts(table: table, rows: Int(rows), first: first, last: last, time: time)
        guard payloadSum == CRC32.checksum(bytes.span.extracting(end..<(end + count)).bytes) else {
            return .damaged(facts)
        }
        return .block(SpoolBlock(facts: facts, payload: end..<(end + count)))
    }
}
