internal import XMPPCore

/// A record without annotations, in a form that is cheap to make and to keep until someone reads it.
///
/// It has a fixed size; its texts are in a buffer of the owner, which ``appendTexts(of:content:to:)`` fills. Of a chat message,
/// both together are about three fifths of the line of JSON, which ``appendLine(texts:_:to:)`` makes.
package struct PackedRecord: Sendable {
    /// A range of the content, which is smaller than 64 KiB. The start is after the end if there is none.
    private struct Place: Sendable {
        let start: UInt16
        let end: UInt16

        init(_ range: ByteRange?) {
            guard let range else {
                (start, end) = (1, 0)
                return
            }
            start = UInt16(clamping: range.range.lowerBound)
            end = UInt16(clamping: range.range.upperBound)
        }

        var range: ByteRange? { start > end ? nil : ByteRange(Int(start), Int(end)) }
    }

    /// The number of bytes of a text; the maximum if there is none.
    private struct Length: Sendable {
        static let maximum = Int(UInt16.max) - 1
        private let value: UInt16

        /// Is nil if the text is too long.
        init?(_ text: String?) {
            guard let count = text?.utf8.count else {
                value = .max
                return
            }
            guard count <= Self.maximum else { return nil }
            value = UInt16(count)
        }

        var isNone: Bool { value == .max }
        var count: Int { isNone ? 0 : Int(value) }
    }

    private let sequence: UInt64
    private let time: Timestamp
    private let monotonic: Int64
    private let session: UInt64
    private let offset: UInt64
    private let length: UInt64
    private let answers: UInt64?
    private let roundTrip: Int64?
    private let epoch: Int
    private let kind: Record.Kind
    private let level: Level
    private let part: Part
    private let direction: Direction?
    private let leg: Leg?
    private let origin: Origin
    private let isTruncated: Bool
    private let isInTLS: Bool
    private let payloadNamespace: Namespace
    private let (xml, name, from, to): (Place, Place, Place, Place)
    private let (type, id, payloadName, payloadURI): (Place, Place, Place, Place)
    private let contentCount: UInt16
    private let (jid, user, domain, remote, summary): (Length, Length, Length, Length, Length)

    /// Packs a record; nil if it has annotations, borders of reads or TLS records, or a text of 64 KiB.
    package init?(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        guard redacted.record.isPlain, redacted.record.chunks.isEmpty, redacted.record.tlsRecords.isEmpty,
            content.count <= Length.maximum,
            let jid = Length(redacted.record.jid), let user = Length(redacted.record.user),
            let domain = Length(redacted.record.domain), let remote = Length(redacted.record.remote),
            let summary = Length(redacted.record.summaryText)
        else { return nil }
        (self.jid, self.user, self.domain, self.remote, self.summary) = (jid, user, domain, remote, summary)
        contentCount = UInt16(content.count)
        sequence = redacted.record.sequence
        time = redacted.record.time
        monotonic = redacted.record.monotonic
        session = redacted.record.session
        offset = redacted.record.offset
        length = redacted.record.length
        answers = redacted.record.answers
        roundTrip = redacted.record.roundTrip
        epoch = redacted.record.epoch
        kind = redacted.record.kind
        level = redacted.record.level
        part = redacted.record.part
        direction = redacted.record.direction
        leg = redacted.record.leg
        origin = redacted.record.origin
        isTruncated = redacted.record.isTruncated
        isInTLS = redacted.record.isInTLS
        payloadNamespace = redacted.record.payloadNamespace
        xml = Place(redacted.record.xml)
        name = Place(redacted.record.name)
        from = Place(redacted.record.from)
        to = Place(redacted.record.to)
        type = Place(redacted.record.type)
        id = Place(redacted.record.id)
        payloadName = Place(redacted.record.payloadName)
        payloadURI = Place(redacted.record.payloadURI)
    }

    /// Number of bytes of the texts.
    package var textCount: Int {
        Int(contentCount) + jid.count + user.count + domain.count + remote.count + summary.count
    }

    /// Appends the texts of a record that was packed.
    package static func appendTexts(
        of redacted: borrowing RedactedRecord,
        content: Span<UInt8>,
        to buffer: inout LineBuffer
    ) {
        buffer.append(bytes: content.bytes)
        if let jid = redacted.record.jid { buffer.append(string: jid) }
        if let user = redacted.record.user { buffer.append(string: user) }
        if let domain = redacted.record.domain { buffer.append(string: domain) }
        if let remote = redacted.record.remote { buffer.append(string: remote) }
        if let summary = redacted.record.summaryText { buffer.append(string: summary) }
    }

    /// Appends the record as a line of JSON with its content; appends nothing if `texts` does not have ``textCount``
    /// bytes.
    package func appendLine(texts: Span<UInt8>, _ form: inout JSONForm, to line: inout LineBuffer) {
        guard texts.count == textCount else { return }
        form.append(record(texts), content: texts.extracting(..<Int(contentCount)), [.content, .chunks], to: &line)
    }

    private func record(_ texts: Span<UInt8>) -> Record {
        var record = Record(
            sequence: sequence,
            time: time,
            monotonic: monotonic,
            kind: kind,
            level: level,
            part: part,
            session: session
        )
        var next = Int(contentCount)
        func text(_ length: Length) -> String? {
            guard !length.isNone else { return nil }
            defer { next += length.count }
            return texts.extracting(next..<next + length.count).string()
        }
        record.jid = text(jid)
        record.user = text(user)
        record.domain = text(domain)
        record.remote = text(remote)
        record.summary = text(summary).map { Prose($0) }
        record.direction = direction
        record.leg = leg
        record.epoch = epoch
        record.offset = offset
        record.length = length
        record.xml = xml.range
        record.name = name.range
        record.from = from.range
        record.to = to.range
        record.type = type.range
        record.id = id.range
        record.payloadName = payloadName.range
        record.payloadNamespace = payloadNamespace
        record.payloadURI = payloadURI.range
        record.answers = answers
        record.roundTrip = roundTrip
        record.isTruncated = isTruncated
        record.isInTLS = isInTLS
        record.origin = origin
        return record
    }
}
