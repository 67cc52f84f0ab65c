import PlainXML
import StanzaMix
import TapCore
import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// A measured operation: prepared once, then run any number of times.
struct Case {
    /// The key in the file of counts; a new name is a new case.
    let name: String
    /// Number of stanzas, or of logins, in one run.
    let units: Int
    /// Runs the operation; returns the number of handled units, to check that none is missing.
    let run: () -> Int
    /// Bytes of memory in use at the end, if measured.
    var bytes: (() -> Int)?
}

extension Case {
    /// All cases, in the order in which a stanza passes the measured parts.
    static func all() -> [Case] {
        let mix = StanzaMix(count: 400)
        let secrets = StanzaMix(count: 400, ofSecrets: true)
        return [
            Case(name: "scanner, 16 KiB a read", units: 400) { decode(mix, chunk: 16 << 10) },
            Case(name: "scanner and head, one stanza a read", units: 400) { decodeEach(mix) },
            parser(mix),
            reader(mix),
            redaction(secrets),
            summaries(mix),
            session("session, off", .off, mix),
            session("session, info: records and summaries", .info, mix),
            session("session, verbose", .verbose, mix),
            session("session, 100 rules that do not match", .off, mix, rules: SampleRules.unmatched),
            session("session, 100 rules for other addresses", .off, mix, rules: SampleRules.unmatchedAddresses),
            session("session, each stanza rewritten", .off, mix, rules: "%PATTERN e: example\nSET=@to ~e=EXAMPLE\n"),
            text("text, info", .info, mix),
            text("text, verbose", .verbose, mix),
            json("JSON, info", .info, mix),
            json("JSON, verbose", .verbose, mix),
            answersOfOthers(pending: 1),
            answersOfOthers(pending: 1024),
            answersOfOthers(pending: 65_536),
            answeredRequests(pending: 1),
            answeredRequests(pending: 1024),
            answeredRequests(pending: 65_536),
            prefixedAttributes(),
            ledger("ledger, all passed", dropsEach: .max, bytes: 1 << 10),
            ledger("ledger, each 7th dropped, each 10th acknowledged", dropsEach: 7, bytes: 1 << 10),
            ledger("ledger, each 7th dropped, none acknowledged", dropsEach: 7, acknowledges: false, bytes: 4 << 10),
            login("login, off", .off),
            login("login, info", .info),
            login("login, verbose", .verbose),
            Case(name: "yardstick: libxml2 from C, doing nothing", units: 400) {
                mix.stream.withUnsafeBytes {
                    plain_xml_parse($0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count, 16 << 10)
                }
            },
        ]
    }

    private static func decode(_ mix: StanzaMix, chunk: Int) -> Int {
        var decoder = StreamDecoder(limits: .authenticated)
        var seen = 0
        var start = 0
        while start < mix.stream.count {
            let end = min(mix.stream.count, start + chunk)
            decoder.append(mix.stream.span.extracting(start..<end))
            start = end
            while let event = decoder.next() {
                if case .item(.element) = event.kind { seen += 1 }
            }
        }
        return seen
    }

    private static func decodeEach(_ mix: StanzaMix) -> Int {
        var seen = 0
        forEachStanza(mix) { event, _ in
            if event.head.kind != .nonza { seen += 1 }
        }
        return seen
    }

    /// Decodes the mix, with one stanza in each read.
    private static func forEachStanza(
        _ mix: StanzaMix,
        outline: ItemOutline? = nil,
        _ body: (StreamEvent, borrowing StreamDecoder) -> Void
    ) {
        var decoder = StreamDecoder(limits: .authenticated, outline: outline)
        decoder.append(mix.stream.span.extracting(0..<mix.headerCount))
        while decoder.next() != nil {}
        for stanza in mix.stanzas {
            decoder.append(mix.stream.span.extracting(stanza))
            while let event = decoder.next() { body(event, decoder) }
        }
    }

    private static func parser(_ mix: StanzaMix) -> Case {
        let parser = StanzaParser()
        let root = Array(" xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'".utf8)
        return Case(name: "parser: libxml2 to a tree", units: 400) {
            var seen = 0
            for stanza in mix.stanzas {
                guard let element = try? parser.parse(mix.stream.span.extracting(stanza), root: root) else { continue }
                if element.namespace == .client { seen += 1 }
            }
            return seen
        }
    }

    /// The cost of reading the items for their summaries, in addition to decoding.
    private static func reader(_ mix: StanzaMix) -> Case {
        let reader = Box(ElementReader())
        let outline = ItemOutline()
        return Case(name: "scanner, head and reader: a tree", units: 400) {
            var seen = 0
            forEachStanza(mix, outline: outline) { _, decoder in
                if reader.value.read(decoder) != nil { seen += 1 }
            }
            return seen
        }
    }

    private static func redaction(_ mix: StanzaMix) -> Case {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        return Case(name: "scanner, head and redaction, of secrets only", units: 400) {
            var seen = 0
            forEachStanza(mix) { event, decoder in
                if case .redacted = redactor.disclose(event, of: decoder) { seen += 1 }
            }
            return seen
        }
    }

    /// The cost of summaries from trees that exist already.
    private static func summaries(_ mix: StanzaMix) -> Case {
        var elements: [Element] = []
        for stanza in mix.stanzas {
            var reader = ElementReader()
            let item = Array("<x xmlns='jabber:client'>".utf8) + mix.stream[stanza] + Array("</x>".utf8)
            if let stanza = reader.read(item.span)?.firstChild { elements.append(stanza) }
        }
        let all = elements
        return Case(name: "summary of a tree", units: 400) { all.count { Summary.text(of: $0) != nil } }
    }

    /// The cost of a session, from bytes to records, which are not written.
    private static func session(_ name: String, _ level: Level, _ mix: StanzaMix, rules: String? = nil) -> Case {
        let session = openSession(level, Run(), rules: rules)
        return Case(name: name, units: 400) {
            let before = session.value.recordCount
            for stanza in mix.stanzas { session.value.receive(.recv, mix.stream.span.extracting(stanza)) }
            return level == .off ? 400 : session.value.recordCount - before
        }
    }

    /// Answers that match no request, with the id of `pending` requests to other addresses.
    ///
    /// `pending` requests were sent and not answered. The session stores the newest 1,024 of them, and 32 with the same id.
    private static func answersOfOthers(pending: Int) -> Case {
        let box = openSession(.off, Run())
        // One at a time: freeing thousands of arrays together would change the allocator's cost for later cases.
        for number in 0..<pending {
            box.value.receive(.send, [Array("<iq type='get' id='x' to='user\(number)@garden.example'/>".utf8)])
        }
        let answers = (0..<400).map { Array("<iq type='result' id='x' from='peer\($0)@garden.example'/>".utf8) }
        return Case(name: "iq, answers from others to one id, \(pending) pending", units: 400) {
            box.value.receive(.recv, answers)
        }
    }

    /// Requests with unique ids and their answers, while `pending` other requests have no answer.
    private static func answeredRequests(pending: Int) -> Case {
        let box = openSession(.off, Run())
        // One at a time: freeing thousands of arrays together would change the allocator's cost for later cases.
        for number in 0..<pending {
            box.value.receive(.send, [Array("<iq type='get' id='\(number)' to='garden.example'/>".utf8)])
        }
        let requests = (0..<200).map { Array("<iq type='get' id='y\($0)' to='garden.example'/>".utf8) }
        let answers = (0..<200).map { Array("<iq type='result' id='y\($0)' from='garden.example'/>".utf8) }
        return Case(name: "iq, requests and answers, \(pending) others pending", units: 400) {
            box.value.receive(.send, requests) + box.value.receive(.recv, answers)
        }
    }

    /// 250 attributes with the same local name in different namespaces, near the limits of both.
    private static func prefixedAttributes() -> Case {
        let prefixes = (0..<250).map { "p\($0)" }
        let declarations = prefixes.map { " xmlns:\($0)='urn:\($0)'" }.joined()
        let attributes = prefixes.map { " \($0):a=''" }.joined()
        let header = Array(
            "<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams'\(declarations)>".utf8
        )
        let stanza = Array("<message\(attributes)/>".utf8)
        let decoder = DecoderBox()
        decoder.value.append(header.span)
        while decoder.value.next() != nil {}
        return Case(name: "scanner, 250 attributes of one name", units: 10) {
            var seen = 0
            for _ in 0..<10 {
                decoder.value.append(stanza.span)
                while let event = decoder.value.next() {
                    if event.head.kind == .message { seen += 1 }
                }
            }
            return seen
        }
    }

    /// The cost of stream management's counts, with one stanza injected for each 10 if any are dropped.
    ///
    /// - Parameter bytes: Memory of a session's two ledgers after a million stanzas at most; more is a failure.
    private static func ledger(_ name: String, dropsEach: Int, acknowledges: Bool = true, bytes: Int) -> Case {
        let taken = Box(0)
        var measured = Case(name: name, units: 1_000_000) {
            var ledgers = StreamManagementLedgers()
            ledgers.send = StreamManagementLedger(startingAt: 0)
            ledgers.recv = StreamManagementLedger(startingAt: 0)
            var direction = Direction.send
            var untilDrop = dropsEach
            for ten: UInt32 in 0..<100_000 {
                for _ in 0..<10 {
                    direction = direction.opposite
                    untilDrop -= 1
                    if untilDrop == 0 {
                        untilDrop = dropsEach
                        ledgers[direction].drop(
                            StreamManagementLedger.Mark(fingerprint: UInt16(truncatingIfNeeded: ten))
                        )
                    } else {
                        ledgers[direction].pass()
                    }
                }
                if dropsEach < .max { ledgers[direction].inject() }
                guard acknowledges else { continue }
                for direction in Direction.allCases {
                    _ = ledgers[direction].acknowledge(UInt32(truncatingIfNeeded: ledgers[direction].delivered))
                }
            }
            taken.value = ledgers.byteCount
            return taken.value <= bytes ? 1_000_000 : 0
        }
        measured.bytes = { taken.value }
        return measured
    }

    private static func openSession(_ level: Level, _ run: Run, rules: String? = nil) -> SessionBox {
        let tools = SessionTools(run: run, redaction: .secrets)
        let box = SessionBox(DrivenSession(level, run, tools, rules: rules))
        box.value.logIn()
        return box
    }

    private static func text(_ name: String, _ level: Level, _ mix: StanzaMix) -> Case {
        let records = records(level, mix)
        let form = Box(TextForm())
        let line = Box(LineBuffer())
        let shown: LogFilter.Shown = level >= .verbose ? [.summary, .xml] : .summary
        return Case(name: name, units: 400) {
            var seen = 0
            for record in records {
                line.value.removeAll()
                form.value.append(record.record, content: record.content.span, shown, to: &line.value)
                if !line.value.isEmpty { seen += 1 }
            }
            return seen
        }
    }

    private static func json(_ name: String, _ level: Level, _ mix: StanzaMix) -> Case {
        let records = records(level, mix)
        let form = Box(JSONForm())
        let line = Box(LineBuffer())
        return Case(name: name, units: 400) {
            var seen = 0
            for record in records {
                line.value.removeAll()
                form.value.append(
                    record.record,
                    content: record.content.span,
                    level >= .verbose ? .content : [],
                    to: &line.value
                )
                if !line.value.isEmpty { seen += 1 }
            }
            return seen
        }
    }

    private static func records(_ level: Level, _ mix: StanzaMix) -> [(record: Record, content: [UInt8])] {
        let session = openSession(level, Run())
        var records: [(record: Record, content: [UInt8])] = []
        for stanza in mix.stanzas {
            session.value.receive(.recv, mix.stream.span.extracting(stanza)) { record, content in
                var bytes: [UInt8] = []
                content.withUnsafeBufferPointer { bytes += $0 }
                records.append((copy record, bytes))
            }
        }
        return records
    }

    private static func login(_ name: String, _ level: Level) -> Case {
        let run = Run()
        let tools = SessionTools(run: run, redaction: .secrets)
        return Case(name: name, units: 50) {
            for _ in 0..<50 {
                var session = DrivenSession(level, run, tools)
                session.logIn()
                session.close()
            }
            return 50
        }
    }
}

/// A mutable value for closures.
private final class Box<Value: ~Copyable> {
    var value: Value
    init(_ value: consuming Value) { self.value = value }
}

private final class DecoderBox {
    var value = StreamDecoder(limits: .authenticated)
}

private final class SessionBox {
    var value: DrivenSession
    init(_ value: consuming DrivenSession) { self.value = value }
}
