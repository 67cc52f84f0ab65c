internal import TapRecord
internal import XMPPCore

/// A record as bytes in the queue of a ``StoreSink``: only what rows are made of. The bytes do not leave the process.
enum QueuedRecord {
    private static let absent = UInt32.max
    private static let absentRange = ByteRange(-1, -1)

    /// Returns the bytes of a record.
    static func encode(_ record: borrowing Record, _ content: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256 + content.count)
        append(record.sequence, to: &bytes)
        append(record.session, to: &bytes)
        append(record.time.nanoseconds, to: &bytes)
        append(record.length, to: &bytes)
        append(record.roundTrip ?? .min, to: &bytes)
        bytes.append(record.kind == .stanza ? 1 : 0)
        bytes.append(record.direction?.rawValue ?? .max)
        bytes.append(record.payloadNamespace.rawValue)
        append(record.name, to: &bytes)
        append(record.from, to: &bytes)
        append(record.to, to: &bytes)
        append(record.type, to: &bytes)
        append(record.id, to: &bytes)
        append(record.payloadName, to: &bytes)
        append(record.payloadURI, to: &bytes)
        append(record.xml, to: &bytes)
        append(record.jid, to: &bytes)
        append(record.user, to: &bytes)
        append(record.domain, to: &bytes)
        append(record.remote, to: &bytes)
        append(record.action, to: &bytes)
        append(record.rule, to: &bytes)
        append(record.condition, to: &bytes)
        append(record.code, to: &bytes)
        for name in details { append(record.details?[name]?.text, to: &bytes) }
        bytes.append(content)
        // The queue ends each record with a line feed.
        bytes.append(0x0A)
        return bytes
    }

    /// The details that rows contain.
    private static let details = [Record.Detail.cause, Record.Detail.finding, Record.Detail.closeReason]

    /// Calls `body` with the record in `bytes` and its content; does nothing if they are not complete.
    static func decode<Failure>(
        _ bytes: Span<UInt8>,
        _ body: (borrowing Record, Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        guard bytes.count > 0 else { return }
        var reader = Reader(position: 0)
        let record = reader.record(bytes)
        guard reader.isComplete else { return }
        try body(record, bytes.extracting(reader.position..<max(reader.position, bytes.count - 1)))
    }

    private struct Reader {
        var position: Int
        var isComplete = true

        mutating func record(_ bytes: Span<UInt8>) -> Record {
            let sequence = UInt64(truncatingIfNeeded: integer(bytes))
            let session = UInt64(truncatingIfNeeded: integer(bytes))
            let time = Timestamp(nanoseconds: integer(bytes))
            let length = UInt64(truncatingIfNeeded: integer(bytes))
            let roundTrip = integer(bytes)
            let isStanza = byte(bytes) == 1
            let direction = Direction(rawValue: byte(bytes))
            let namespace = Namespace(rawValue: byte(bytes)) ?? .other
            var record = Record(
                sequence: sequence,
                time: time,
                monotonic: 0,
                kind: isStanza ? .stanza : .session,
                level: .info,
                part: .session,
                session: session
            )
            record.length = length
            record.roundTrip = roundTrip == .min ? nil : roundTrip
            record.direction = direction
            record.payloadNamespace = namespace
            record.name = range(bytes)
            record.from = range(bytes)
            record.to = range(bytes)
            record.type = range(bytes)
            record.id = range(bytes)
            record.payloadName = range(bytes)
            record.payloadURI = range(bytes)
            record.xml = range(bytes)
            record.jid = text(bytes)
            record.user = text(bytes)
            record.domain = text(bytes)
            record.remote = text(bytes)
            record.action = text(bytes)
            record.rule = text(bytes)
            record.condition = text(bytes)
            record.code = text(bytes)
            for name in QueuedRecord.details {
                guard let text = text(bytes) else { continue }
                var details = record.details ?? [:]
                details.append(name, .string(text))
                record.details = details
            }
            return record
        }

        private mutating func take(_ count: Int, _ bytes: Span<UInt8>) -> Range<Int>? {
            guard count <= bytes.count - position else {
                isComplete = false
                return nil
            }
            defer { position += count }
            return position..<(position + count)
        }

        private mutating func byte(_ bytes: Span<UInt8>) -> UInt8 { take(1, bytes).map { bytes[$0.lowerBound] } ?? 0 }

        private mutating func value<Value: FixedWidthInteger & BitwiseCopyable>(_ bytes: Span<UInt8>) -> Value? {
            take(MemoryLayout<Value>.size, bytes).map {
                bytes.extracting($0).bytes.unsafeLoadUnaligned(as: Value.self)
            }
        }

        private mutating func integer(_ bytes: Span<UInt8>) -> Int64 { value(bytes) ?? 0 }

        private mutating func range(_ bytes: Span<UInt8>) -> ByteRange? {
            guard let start: Int32 = value(bytes), let end: Int32 = value(bytes), start >= 0 else { return nil }
            return ByteRange(Int(start), Int(end))
        }

        private mutating func text(_ bytes: Span<UInt8>) -> String? {
            guard let count: UInt32 = value(bytes), count != QueuedRecord.absent else { return nil }
            return take(Int(count), bytes).map { bytes.extracting($0).string() }
        }
    }

    private static func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) }
    }

    private static func append(_ range: ByteRange?, to bytes: inout [UInt8]) {
        let range = range ?? absentRange
        append(range.start, to: &bytes)
        append(range.end, to: &bytes)
    }

    private static func append(_ text: String?, to bytes: inout [UInt8]) {
        guard let text else { return append(absent, to: &bytes) }
        append(UInt32(clamping: text.utf8.count), to: &bytes)
        bytes.append(contentsOf: text.utf8)
    }
}
