internal import XMPPCore

/// A record read back from a line of a JSON log or capture.
///
/// If ``JSONForm`` writes the record again, the result is the original line, byte for byte.
public struct RecordLine: Sendable {
    /// The record; its ranges lie in ``content``.
    public private(set) var record: Record
    /// The texts of the record; the item comes first if the line contains it.
    public private(set) var content: [UInt8] = []
    /// Unknown fields, verbatim, joined by commas.
    package private(set) var unknown: [UInt8] = []

    /// Creates a line of a new record, with a copy of its texts.
    package init(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        record = redacted.record
        self.content.append(content)
    }

    /// Returns the record with a new number and without ``Record/answers``, because re-created records are numbered
    /// separately.
    package func numbered(_ sequence: UInt64) -> RecordLine {
        var line = self
        line.record.sequence = sequence
        line.record.answers = nil
        return line
    }

    /// Returns the record with another number of its session, because each run counts its sessions separately.
    package func inSession(_ number: UInt64) -> RecordLine {
        var line = self
        line.record.session = number
        return line
    }

    /// Returns a record that the current session has made of the same item, completed by the fields that only the
    /// recording has.
    package func remade(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) -> RecordLine {
        var line = RecordLine(redacted, content: content)
        line.unknown = unknown
        line.record.leg = record.leg
        line.record.epoch = record.epoch
        line.record.offset = record.offset
        line.record.length = record.length
        line.record.chunks = record.chunks
        line.record.tlsRecords = record.tlsRecords
        line.record.isInTLS = record.isInTLS
        line.record.sm = record.sm ?? line.record.sm
        line.record.action = record.action
        line.record.rule = record.rule
        guard let edited = record.edited else { return line }
        line.record.message = record.message
        line.record.edited = ByteRange(line.content.count, line.content.count + edited.count)
        line.content += self.content[edited.range]
        return line
    }

    /// Returns an inferred stream header: `why` is the reason, a clause that follows "inferred:".
    package func inferred(_ why: String) -> RecordLine {
        var line = self
        line.record.origin = .tap
        line.record.code = "inferred"
        line.record.message = "inferred: \(why)"
        return line
    }

    /// Reads a line, with or without its newline.
    ///
    /// The fields `sequence`, `time`, `monotonic`, `level` and `kind` are required. A known field with an invalid value
    /// is an error; an unknown field is kept.
    package init(json line: RawSpan) throws(RecordLineError) {
        record = Record(
            sequence: 0,
            time: Timestamp(nanoseconds: 0),
            monotonic: 0,
            kind: .note,
            level: .info,
            part: .session
        )
        var missing: [Field] = [.sequence, .time, .monotonic, .level, .kind]
        do {
            var reader = JSONReader(line)
            guard try reader.next() == .objectStart else { throw RecordLineError(.noRecord) }
            while case .name(let slice) = try reader.next() {
                guard let field = Field.named(slice, reader) else {
                    // Skips `chain`, the hash that links the lines of a file, because it is not valid in another file.
                    if reader.matches(slice, "chain") { _ = try reader.skipValue() } else { try keep(slice, &reader) }
                    continue
                }
                guard try read(field, &reader) else { throw RecordLineError(.badField(field.rawValue)) }
                if let place = missing.firstIndex(of: field) { missing.remove(at: place) }
            }
            _ = try reader.next()
        } catch let error as JSONError {
            throw RecordLineError(.notJSON(error))
        } catch let error as RecordLineError {
            throw error
        } catch {
            throw RecordLineError(.noRecord)
        }
        if let field = missing.first { throw RecordLineError(.missingField(field.rawValue)) }
    }

    private enum Field: String, CaseIterable {
        case sequence, time, monotonic, level, part, kind, session, jid, user, domain, remote, direction, leg, epoch,
            offset
        case length, chunks, name, from, to, type, id, payload, summary, account, peer, answers, action, rule,
            truncated, digest
        case condition, code, message, sasl, tls, sm, details, origin, xml, base64, edited
        case roundTrip = "round_trip"
        case tlsRecords = "tls_records"

        /// The fields by the length of their names, which are compared with the line without making a string.
        private static let byLength: [[(name: [UInt8], field: Field)]] = {
            let names = allCases.map { (name: Array($0.rawValue.utf8), field: $0) }
            let longest = names.map(\.name.count).max() ?? 0
            return (0...longest).map { length in names.filter { $0.name.count == length } }
        }()

        /// Returns the field with a name; nil if it is unknown.
        static func named(_ slice: JSONReader.Slice, _ reader: borrowing JSONReader) -> Field? {
            guard slice.range.count < byLength.count else { return nil }
            for entry in byLength[slice.range.count] where reader.matches(slice, entry.name) { return entry.field }
            return nil
        }
    }

    private mutating func keep(_ name: JSONReader.Slice, _ reader: inout JSONReader) throws(JSONError) {
        let value = try reader.skipValue()
        if !unknown.isEmpty { unknown.append(0x2C) }
        unknown += reader.raw(name.range.lowerBound - 1..<name.range.upperBound + 1)
        unknown.append(0x3A)
        unknown += reader.raw(value)
    }

    /// Reads a duration in nanoseconds; nil from 2^61 ns (73 years) on, so that sums and differences of a few durations
    /// do not overflow.
    private func duration(_ slice: JSONReader.Slice, _ reader: JSONReader) -> Int64? {
        reader.nanoseconds(slice).flatMap { $0.magnitude < 1 << 61 ? $0 : nil }
    }

    /// - Returns: Whether the value is valid for the field.
    private mutating func read(_ field: Field, _ reader: inout JSONReader) throws(JSONError) -> Bool {
        switch try reader.next() {
        case .text(let slice): return readText(field, slice, reader)
        case .number(let slice):
            switch field {
            case .monotonic: return assign(duration(slice, reader)) { $0.monotonic = $1 }
            case .roundTrip: return assign(duration(slice, reader)) { $0.roundTrip = $1 }
            case .epoch: return assign(reader.integer(slice).flatMap { Int(exactly: $0) }) { $0.epoch = $1 }
            case .sequence: return assign(reader.unsigned(slice)) { $0.sequence = $1 }
            case .session: return assign(reader.unsigned(slice)) { $0.session = $1 }
            case .offset: return assign(reader.unsigned(slice)) { $0.offset = $1 }
            case .length: return assign(reader.unsigned(slice)) { $0.length = $1 }
            case .answers: return assign(reader.unsigned(slice)) { $0.answers = $1 }
            default: return false
            }
        case .bool(let flag):
            guard field == .truncated else { return false }
            record.isTruncated = flag
            return true
        case .arrayStart where field == .chunks: return try readOffsets(&reader, into: \.chunks)
        case .arrayStart where field == .tlsRecords:
            record.isInTLS = true
            return try readOffsets(&reader, into: \.tlsRecords)
        case .objectStart:
            guard let details = try Attributes(&reader) else { return false }
            switch field {
            case .sasl: record.sasl = details
            case .tls: record.tls = details
            case .sm: record.sm = details
            case .details: record.details = details
            default: return false
            }
            return true
        default: return false
        }
    }

    private mutating func readText(_ field: Field, _ slice: JSONReader.Slice, _ reader: borrowing JSONReader) -> Bool {
        func first<Value>(_ values: [Value], _ name: (Value) -> StaticString) -> Value? {
            values.first { reader.matches(slice, name($0)) }
        }
        switch field {
        case .time: return assign(reader.timestamp(slice)) { $0.time = $1 }
        case .level: return assign(first(Level.allCases, \.literal)) { $0.level = $1 }
        case .part: return assign(first(Part.allCases, \.literal)) { $0.part = $1 }
        case .kind: return assign(first(Record.Kind.allCases, \.literal)) { $0.kind = $1 }
        case .direction: return assign(first(Direction.allCases, \.name)) { $0.direction = $1 }
        case .leg: return assign(first(Leg.allCases, \.name)) { $0.leg = $1 }
        case .origin:
            guard reader.matches(slice, "tap") || reader.matches(slice, "peer") else { return false }
            record.origin = reader.matches(slice, "tap") ? .tap : .peer
        case .jid: record.jid = reader.string(slice)
        case .user: record.user = reader.string(slice)
        case .domain: record.domain = reader.string(slice)
        case .remote: record.remote = reader.string(slice)
        case .action: record.action = reader.string(slice)
        case .rule: record.rule = reader.string(slice)
        case .digest: record.digest = reader.string(slice)
        case .condition: record.condition = reader.string(slice)
        case .code: record.code = reader.string(slice)
        case .message: record.message = Prose(reader.string(slice))
        case .summary: record.summary = Prose(reader.string(slice))
        case .xml: record.xml = store(slice, reader)
        case .edited: record.edited = store(slice, reader)
        case .name: record.name = store(slice, reader)
        case .from: record.from = store(slice, reader)
        case .to: record.to = store(slice, reader)
        case .type: record.type = store(slice, reader)
        case .id: record.id = store(slice, reader)
        case .payload: storePayload(slice, reader)
        case .base64: return assign(Base64.decode(reader.string(slice))) { $0.bytes = $1 }
        // Derived fields: they are computed from the rest of the record, not stored.
        case .account, .peer: break
        default: return false
        }
        return true
    }

    private mutating func assign<Value>(_ value: Value?, _ body: (inout Record, Value) -> Void) -> Bool {
        guard let value else { return false }
        body(&record, value)
        return true
    }

    private mutating func store(_ slice: JSONReader.Slice, _ reader: borrowing JSONReader) -> ByteRange {
        let start = content.count
        reader.append(slice, to: &content)
        return ByteRange(start, content.count)
    }

    private mutating func storePayload(_ slice: JSONReader.Slice, _ reader: borrowing JSONReader) {
        let payload = store(slice, reader)
        guard !payload.isEmpty, content[payload.range.lowerBound] == 0x7B,
            let end = content[payload.range].lastIndex(of: 0x7D)
        else {
            record.payloadName = payload
            return
        }
        let uri = ByteRange(payload.range.lowerBound + 1, end)
        record.payloadName = ByteRange(end + 1, payload.range.upperBound)
        record.payloadNamespace = Namespace(uri: content.span.slice(uri))
        if record.payloadNamespace == .other { record.payloadURI = uri }
    }

    private mutating func readOffsets(
        _ reader: inout JSONReader,
        into field: WritableKeyPath<Record, [UInt64]>
    ) throws(JSONError) -> Bool {
        while case .number(let slice) = try reader.next() {
            guard let offset = reader.unsigned(slice) else { return false }
            record[keyPath: field].append(offset)
        }
        // The loop ends at the array's end, or at a value that is not a number.
        return reader.depth == 1
    }
}

extension Attributes {
    /// Reads attributes after their opening brace; `nil` if a value has an unsupported type.
    fileprivate init?(_ reader: inout JSONReader) throws(JSONError) {
        self.init()
        while case .name(let slice) = try reader.next() {
            // Looking up a name takes linear time, so the number is limited; thousands of attributes occur only in
            // malicious files.
            guard entries.count < 1000 else { return nil }
            let name = reader.string(slice)
            switch try reader.next() {
            case .text(let text): self[name] = .string(reader.string(text))
            case .bool(let flag): self[name] = .boolean(flag)
            case .number(let number):
                guard let integer = reader.integer(number) else { return nil }
                self[name] = .integer(integer)
            case .arrayStart:
                var list: [String] = []
                let inside = reader.depth
                while case .text(let text) = try reader.next() { list.append(reader.string(text)) }
                guard reader.depth < inside else { return nil }
                self[name] = .strings(list)
            default: return nil
            }
        }
    }
}

/// The reason why a line is not a record or a header.
package struct RecordLineError: Error, Sendable, Hashable {
    /// The kind of problem.
    package enum Code: Sendable, Hashable {
        case notJSON(JSONError)
        /// JSON, but not an object.
        case noRecord
        /// A required field is missing.
        case missingField(String)
        /// A field has an invalid value.
        case badField(String)
    }

    /// The kind of problem.
    package let code: Code

    init(_ code: Code) {
        self.code = code
    }
}

extension RecordLineError: CustomStringConvertible {
    /// The error, in one human-readable line.
    package var description: String {
        switch code {
        case .notJSON(let error): error.description
        case .noRecord: "not a record"
        case .missingField(let name): "a record without \"\(name)\""
        case .badField(let name): "a record with an invalid \"\(name)\""
        }
    }
}
