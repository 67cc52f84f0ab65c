import TapRecord
import TapTestKit
import XMPPCore

/// A record and the content that its ranges refer to, in the form that sinks receive.
struct Sample {
    var record: Record
    var content: [UInt8] = []

    /// Creates a record with the time 2026-11-21T17:22:44.262 UTC.
    init(_ kind: Record.Kind, _ level: Level = .info, part: Part = .session) {
        record = Record(
            sequence: 42,
            time: Timestamp(nanoseconds: 1_795_281_764_262_000_000),
            monotonic: 1_500_000_000,
            kind: kind,
            level: level,
            part: part
        )
    }

    mutating func put(_ text: String) -> ByteRange {
        let start = content.count
        content += Array(text.utf8)
        return ByteRange(start, content.count)
    }

    /// Makes the record an item of the session.
    mutating func item(_ direction: Direction, _ xml: String, name: String) {
        record.direction = direction
        record.leg = direction.source
        record.epoch = 2
        record.xml = put(xml)
        record.length = UInt64(xml.utf8.count)
        record.name = put(name)
    }

    func text(_ spec: String = "verbose", style: TextForm.Style = .init()) throws -> String {
        var form = TextForm(style: style)
        var line = LineBuffer()
        form.append(record, content: content.span, LogFilter(try LogSpec(spec)).shown(of: record), to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    func json(_ parts: JSONForm.Parts = [.content, .chunks]) -> String {
        var form = JSONForm()
        var line = LineBuffer()
        form.append(record, content: content.span, parts, to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }
}

extension Sample {
    /// Returns a record of session 3 with a bound JID, with the names of the documentation's example.
    static func bound(_ kind: Record.Kind, _ level: Level = .info, part: Part = .session) -> Sample {
        var sample = Sample(kind, level, part: part)
        sample.record.session = 3
        sample.record.jid = "1024@192.168.1.1/iOS_V1.0"
        return sample
    }

    /// A roster result, as in the documentation's example.
    static var roster: Sample {
        var sample = bound(.stanza)
        sample.item(.recv, #"<iq type="result"/>"#, name: "iq")
        sample.record.length = 1234
        sample.record.type = sample.put("result")
        sample.record.id = sample.put("7")
        sample.record.from = sample.put("192.168.1.1")
        sample.record.to = sample.put("1024@192.168.1.1/iOS_V1.0")
        sample.record.payloadName = sample.put("query")
        sample.record.payloadNamespace = .roster
        sample.record.summary = "roster: 2 contacts: a@b, c@d"
        sample.record.answers = 17
        sample.record.roundTrip = 38_000_000
        return sample
    }

    /// Returns a random record, with any fields and hostile texts.
    static func random(_ random: inout SeededGenerator) -> Sample {
        func maybe<Value>(_ value: Value) -> Value? { Bool.random(using: &random) ? value : nil }
        func text() -> String { random.hostileText(count: Int.random(in: 0..<12, using: &random)) }
        func details() -> Attributes {
            var details = Attributes()
            for _ in 0..<Int.random(in: 0..<4, using: &random) {
                switch UInt8.random(in: 0..<4, using: &random) {
                case 0: details[text()] = .string(text())
                case 1: details[text()] = .integer(Int64.random(in: .min ... .max, using: &random))
                case 2: details[text()] = .boolean(Bool.random(using: &random))
                default: details[text()] = .strings((0..<Int.random(in: 0..<3, using: &random)).map { _ in text() })
                }
            }
            return details
        }
        var sample = Sample(
            Record.Kind.allCases.randomElement(using: &random) ?? .note,
            Level.allCases.randomElement(using: &random) ?? .info,
            part: Part.allCases.randomElement(using: &random) ?? .session
        )
        sample.record.sequence = UInt64.random(in: 0 ... .max, using: &random)
        sample.record.time = Timestamp(nanoseconds: Int64.random(in: .min ... .max, using: &random))
        sample.record.monotonic = Int64.random(in: 0..<1 << 61, using: &random)
        sample.record.session = maybe(UInt64.random(in: 1 ... .max, using: &random)) ?? 0
        sample.record.jid = maybe(text())
        sample.record.user = maybe(text())
        sample.record.domain = maybe(text())
        sample.record.remote = maybe(text())
        sample.record.direction = maybe(Bool.random(using: &random) ? .send : .recv)
        sample.record.leg = maybe(Bool.random(using: &random) ? .client : .server)
        sample.record.epoch = maybe(Int.random(in: 0 ... .max, using: &random)) ?? 0
        sample.record.offset = maybe(UInt64.random(in: 0 ... .max, using: &random)) ?? 0
        sample.record.length = maybe(UInt64.random(in: 0 ... .max, using: &random)) ?? 0
        sample.record.chunks = maybe((0..<3).map { _ in UInt64.random(in: 0...99, using: &random) }) ?? []
        if Bool.random(using: &random) {
            sample.record.xml = sample.put(text())
        } else {
            sample.record.bytes = maybe(random.bytes(count: 20))
        }
        sample.record.name = maybe(sample.put(text()))
        sample.record.from = maybe(sample.put(text()))
        sample.record.to = maybe(sample.put(text()))
        sample.record.type = maybe(sample.put(text()))
        sample.record.id = maybe(sample.put(text()))
        if Bool.random(using: &random) {
            sample.record.payloadName = sample.put(random.bytes(count: 3).map { "n\($0)" }.joined())
            sample.record.payloadNamespace = Namespace.allCases.randomElement(using: &random) ?? .none
            if sample.record.payloadNamespace == .other { sample.record.payloadURI = sample.put("u" + text()) }
        }
        sample.record.answers = maybe(UInt64.random(in: 0 ... .max, using: &random))
        sample.record.roundTrip = maybe(Int64.random(in: -1000..<1 << 61, using: &random))
        sample.record.action = maybe(text())
        sample.record.rule = maybe(text())
        sample.record.isTruncated = Bool.random(using: &random)
        sample.record.digest = maybe(text())
        sample.record.condition = maybe(text())
        sample.record.code = maybe(text())
        sample.record.message = maybe(Prose(text()))
        sample.record.summary = maybe(Prose(text()))
        sample.record.sasl = maybe(details())
        sample.record.tls = maybe(details())
        sample.record.sm = maybe(details())
        sample.record.details = maybe(details())
        sample.record.origin = Bool.random(using: &random) ? .tap : .peer
        return sample
    }
}
