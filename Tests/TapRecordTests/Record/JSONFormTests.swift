import TapRecord
import TapTestKit
import Testing
import XMPPCore

@Suite struct JSONFormTests {
    @Test func `a stanza has the fields of the JSON schema`() {
        var sample = Sample.roster
        sample.record.remote = "127.0.0.1:5000"
        sample.record.offset = 100
        sample.record.chunks = [600, 1234]
        #expect(
            sample.json()
                == #"{"sequence":42,"time":"2026-11-21T17:22:44.262000000Z","monotonic":1.5,"level":"info","#
                + #""part":"session","kind":"stanza","session":3,"jid":"1024@192.168.1.1/iOS_V1.0","#
                + #""remote":"127.0.0.1:5000","direction":"recv","leg":"server","epoch":2,"offset":100,"length":1234,"#
                + #""chunks":[600,1234],"name":"iq","from":"192.168.1.1","to":"1024@192.168.1.1/iOS_V1.0","#
                + #""type":"result","id":"7","payload":"{jabber:iq:roster}query","#
                + #""summary":"roster: 2 contacts: a@b, c@d","account":"1024@192.168.1.1","#
                + #""peer":"192.168.1.1","answers":17,"round_trip":0.038,"xml":"<iq type=\"result\"/>"}"# + "\n"
        )
    }

    @Test func `a record without content has neither XML nor chunks`() {
        var sample = Sample.roster
        sample.record.chunks = [600]
        let text = sample.json([])
        #expect(!text.contains("xml"))
        #expect(!text.contains("chunks"))
        #expect(text.contains(#""round_trip":0.038}"#))
    }

    @Test func `a note has its code, message and details`() {
        var sample = Sample(.note, .warn, part: .capture)
        sample.record.code = "records-dropped"
        sample.record.message = "12 records dropped"
        sample.record.details = ["records": 12, "full": true, "where": "x.log", "list": .strings(["a", "b"])]
        #expect(
            sample.json()
                == #"{"sequence":42,"time":"2026-11-21T17:22:44.262000000Z","monotonic":1.5,"level":"warn","#
                + #""part":"capture","kind":"note","code":"records-dropped","message":"12 records dropped","#
                + #""details":{"records":12,"full":true,"where":"x.log","list":["a","b"]}}"# + "\n"
        )
    }

    @Test func `account and peer are the effective addresses`() {
        func accounts(_ direction: Direction, from: String?, to: String?) -> String {
            var sample = Sample.bound(.stanza)
            sample.item(direction, "<message/>", name: "message")
            sample.record.from = from.map { sample.put($0) }
            sample.record.to = to.map { sample.put($0) }
            let text = sample.json([])
            guard let start = text.firstRange(of: "\"account\"") else { return "" }
            return String(text[start.lowerBound...].dropLast(2))
        }
        #expect(accounts(.send, from: nil, to: nil) == #""account":"1024@192.168.1.1","peer":"1024@192.168.1.1""#)
        #expect(accounts(.send, from: "x@y/z", to: "a@b/c") == #""account":"1024@192.168.1.1","peer":"a@b""#)
        #expect(accounts(.recv, from: "a@b/c/d", to: nil) == #""account":"1024@192.168.1.1","peer":"a@b""#)
        #expect(accounts(.recv, from: nil, to: "x@y") == #""account":"1024@192.168.1.1","peer":"1024@192.168.1.1""#)
    }

    @Test func `payload names have their namespace URI`() {
        func payload(_ namespace: Namespace, uri: String = "") -> Bool {
            var sample = Sample(.element)
            sample.record.payloadName = sample.put("p")
            sample.record.payloadNamespace = namespace
            sample.record.payloadURI = sample.put(uri)
            let expected = namespace == .none ? "p" : "{\(namespace == .other ? uri : namespace.uri.description)}p"
            return sample.json().contains("\"payload\":\"\(expected)\"}")
        }
        #expect(payload(.ping))
        #expect(payload(.none))
        #expect(payload(.other, uri: "urn:x{}y"))
    }

    @Test func `bytes that are not UTF-8 are written as Base64`() {
        var sample = Sample(.bytes)
        sample.record.bytes = [0, 1, 0xFF]
        #expect(sample.json().hasSuffix(#","base64":"AAH/"}"# + "\n"))
        #expect(!sample.json([]).contains("base64"))
        sample.record.bytes = nil
        sample.content = [0x3C, 0xFF]
        sample.record.xml = ByteRange(0, 2)
        sample.record.name = ByteRange(0, 2)
        #expect(sample.json().hasSuffix(#""name":"<�","base64":"PP8="}"# + "\n"))
    }
}

@Suite struct RecordLineTests {
    private func read(_ text: String) throws(RecordLineError) -> RecordLine {
        try RecordLine(json: text.utf8Span.span.bytes)
    }

    private func json(_ stored: RecordLine) -> String {
        var form = JSONForm()
        var line = LineBuffer()
        form.append(stored, [.content, .chunks], to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    private let minimal = #""sequence":1,"time":"2026-11-21T17:22:44Z","monotonic":0,"level":"info","kind":"note""#

    @Test func `each record is read back byte for byte`() throws {
        var random = SeededGenerator(seed: 10)
        for _ in 0..<5000 {
            let sample = Sample.random(&random)
            let text = sample.json()
            let stored = try read(text)
            #expect(json(stored) == text)
            #expect(!text.dropLast().utf8.contains { $0 < 0x20 || $0 == 0x7F })
        }
    }

    @Test func `the text form of a stored record is the same`() throws {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<2000 {
            let sample = Sample.random(&random)
            let stored = try read(sample.json())
            var again = Sample(.note)
            again.record = stored.record
            again.content = stored.content
            #expect(try again.text("trace") == sample.text("trace"))
        }
    }

    @Test func `values are read as they were written`() throws {
        let stored = try read(Sample.roster.json())
        let record = stored.record
        func text(_ range: ByteRange?) -> String? { range.map { stored.content.span.slice($0).string() } }
        #expect(record.sequence == 42)
        #expect(record.time.nanoseconds == 1_795_281_764_262_000_000)
        #expect(record.monotonic == 1_500_000_000)
        #expect(record.direction == .recv && record.leg == .server && record.epoch == 2 && record.length == 1234)
        #expect(text(record.xml) == #"<iq type="result"/>"#)
        #expect(text(record.id) == "7" && text(record.payloadName) == "query")
        #expect(record.payloadNamespace == .roster && record.payloadURI == nil)
        #expect(record.answers == 17 && record.roundTrip == 38_000_000)
    }

    @Test func `unknown fields are kept`() throws {
        let text = "{\(minimal),\"later\":{\"a\":[1,{}]},\"l\\u0061ter2\" : -1.50e3}"
        let stored = try read(text)
        #expect(String(decoding: stored.unknown, as: UTF8.self) == #""later":{"a":[1,{}]},"l\u0061ter2":-1.50e3"#)
        #expect(json(stored).hasSuffix(#","kind":"note","later":{"a":[1,{}]},"l\u0061ter2":-1.50e3}"# + "\n"))
        #expect(try json(read(json(stored))) == json(stored))
    }

    @Test func `spaces and newlines around a record do not matter`() throws {
        #expect(try read(" { \(minimal) } \r\n").record.sequence == 1)
    }

    @Test(arguments: [
        ("", "not JSON at byte 0: it ends too early"),
        ("[]", "not a record"), ("1", "not a record"),
        ("{}", #"a record without "sequence""#),
        (#"{"sequence":1}"#, #"a record without "time""#),
        (#"{"sequence":"1"}"#, #"a record with an invalid "sequence""#),
        (#"{"sequence":-1}"#, #"a record with an invalid "sequence""#),
        (#"{"sequence":1.5}"#, #"a record with an invalid "sequence""#),
        (#"{"sequence":99999999999999999999}"#, #"a record with an invalid "sequence""#),
        (#"{"time":"yesterday"}"#, #"a record with an invalid "time""#),
        (#"{"monotonic":1e30}"#, #"a record with an invalid "monotonic""#),
        (#"{"level":"loud"}"#, #"a record with an invalid "level""#),
        (#"{"kind":"dream"}"#, #"a record with an invalid "kind""#),
        (#"{"direction":"up"}"#, #"a record with an invalid "direction""#),
        (#"{"leg":"left"}"#, #"a record with an invalid "leg""#),
        (#"{"origin":"moon"}"#, #"a record with an invalid "origin""#),
        (#"{"xml":1}"#, #"a record with an invalid "xml""#),
        (#"{"xml":null}"#, #"a record with an invalid "xml""#),
        (#"{"base64":"x"}"#, #"a record with an invalid "base64""#),
        (#"{"chunks":[1,"2"]}"#, #"a record with an invalid "chunks""#),
        (#"{"chunks":[1,[2]]}"#, #"a record with an invalid "chunks""#),
        (#"{"chunks":[-1]}"#, #"a record with an invalid "chunks""#),
        (#"{"sasl":[]}"#, #"a record with an invalid "sasl""#),
        (#"{"sasl":{"a":1.5}}"#, #"a record with an invalid "sasl""#),
        (#"{"sasl":{"a":{}}}"#, #"a record with an invalid "sasl""#),
        (#"{"sasl":{"a":["b",1]}}"#, #"a record with an invalid "sasl""#),
        (#"{"name":{}}"#, #"a record with an invalid "name""#),
        (#"{"truncated":"yes"}"#, #"a record with an invalid "truncated""#),
        (#"{"sequence":1"#, "not JSON at byte 13: it ends too early"),
    ])
    func `a line that is not a record is refused with the reason`(text: String, message: String) {
        let error = #expect(throws: RecordLineError.self) { try self.read(text) }
        #expect(error?.description == message)
    }

    @Test func `a record with too many details is refused`() {
        let details = (0..<2000).map { "\"f\($0)\":1" }.joined(separator: ",")
        #expect(throws: RecordLineError.self) { try self.read("{\(self.minimal),\"details\":{\(details)}}") }
    }

    @Test func `a damaged line is refused, or read as a valid record`() {
        var random = SeededGenerator(seed: 12)
        for _ in 0..<20_000 {
            var bytes = Array(Sample.roster.json().utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            // The line is either refused or read; a record that is read can be written and read again without a change.
            guard let stored = try? RecordLine(json: bytes.span.bytes) else { continue }
            let text = json(stored)
            #expect((try? read(text)).map(json) == text)
        }
    }
}

@Suite struct RecordHeaderTests {
    private let header = RecordHeader(
        tool: "xmpptap 0.1",
        time: Timestamp(nanoseconds: 1_795_281_764_262_000_000),
        level: "info,send",
        filter: nil,
        isComplete: false,
        redaction: .secrets,
        run: "0123abcd"
    )

    private func text(_ header: RecordHeader) -> String {
        line { header.append(to: &$0) }
    }

    @Test func `a header has the tool, the level, the filter and the run`() {
        #expect(
            text(header)
                == #"{"xtap":1,"tool":"xmpptap 0.1","time":"2026-11-21T17:22:44.262000000Z","level":"info,send","#
                + #""filter":null,"complete":false,"redaction":"secrets","run":"0123abcd"}"# + "\n"
        )
    }

    @Test func `a header is read back`() throws {
        var other = header
        other.filter = "message and \"x\""
        other.isComplete = true
        other.redaction = .none
        other.recordsBefore = 12
        #expect(text(other).hasSuffix(#","run":"0123abcd","records_before":12}"# + "\n"))
        for header in [header, other] {
            #expect(try RecordHeader(json: text(header).utf8Span.span.bytes) == header)
        }
    }

    @Test(arguments: ["-1", "1.5", "99999999999999999999", "\"3\"", "null"])
    func `an invalid count of earlier records is ignored`(count: String) throws {
        let text = #"{"xtap":1,"run":"r","records_before":"# + count + "}"
        let header = try RecordHeader(json: text.utf8Span.span.bytes)
        #expect(header.run == "r" && header.recordsBefore == nil)
    }

    @Test func `headers are distinguished from records`() {
        func isHeader(_ text: String) -> Bool { RecordHeader.isHeader(text.utf8Span.span.bytes) }
        #expect(isHeader(text(header)))
        #expect(isHeader(#" { "xtap" : 9 }"#))
        #expect(!isHeader(Sample.roster.json()))
        #expect(!isHeader(#"{"a":1,"xtap":1}"#))
        #expect(!isHeader(""))
        #expect(!isHeader("xtap"))
    }

    @Test func `of a newer version only the number is read`() throws {
        let text = #"{"xtap":7,"tool":{"name":"x"},"time":[1],"complete":"perhaps"}"#
        #expect(try RecordHeader(json: text.utf8Span.span.bytes).version == 7)
    }

    @Test(arguments: [#"{"xtap":"1"}"#, #"{"xtap":0}"#, #"{"xtap":-1}"#, #"{"xtap":1"#, "[]"])
    func `an invalid header is refused`(text: String) {
        #expect(throws: RecordLineError.self) { try RecordHeader(json: text.utf8Span.span.bytes) }
    }
}
