import Foundation
import TapTestKit
import Testing
import XMPPCore

import TapCore
@testable import TapDiagnosis
import TapRecord

#if canImport(FoundationXML)
    import FoundationXML
#endif

/// Drawings of sessions.
@Suite struct DiagramTests {
    private static func diagram(_ harness: borrowing SessionHarness) -> SequenceDiagram {
        var diagram = SequenceDiagram(session: 1)
        for told in harness.told { diagram.add(told.record, content: told.content.span) }
        return diagram
    }

    private static func failed() -> SessionHarness {
        var harness = FailedLogin.opened(FailedLogin.mechanisms("PLAIN"))
        harness.send(FailedLogin.plain)
        harness.recv(FailedLogin.failure("not-authorized", "No &amp; &lt;never> \"here\"."))
        harness.leave()
        return harness
    }

    /// Collects the element names of a well-formed document with their counts, and its text.
    private final class Reader: NSObject, XMLParserDelegate {
        var counts: [String: Int] = [:]
        var text = ""
        func parser(
            _ parser: XMLParser,
            didStartElement name: String,
            namespaceURI: String?,
            qualifiedName: String?,
            attributes: [String: String]
        ) { counts[name, default: 0] += 1 }
        func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
    }

    private static func read(_ document: String) throws -> Reader {
        let reader = Reader()
        let parser = XMLParser(data: Data(document.utf8))
        parser.delegate = reader
        try #require(parser.parse(), "\(String(describing: parser.parserError)): \(document)")
        return reader
    }

    @Test func `A drawing shows the date with its time zone whenever it changes`() throws {
        var diagram = SequenceDiagram(session: 1)
        for (second, told) in Self.failed().told.enumerated() {
            var record = told.record
            // The last second of the 21st, in Berlin.
            record.time = Timestamp(nanoseconds: 1_795_301_999_000_000_000 + Int64(min(second, 1)) * 1_000_000_000)
            diagram.add(record, content: told.content.span)
        }
        let text = try Self.read(DiagramForm(zone: .berlin).draw([diagram])).text
        let first = try #require(text.firstRange(of: "2026-11-21 +01:00"))
        let next = try #require(text.firstRange(of: "2026-11-22 +01:00"))
        #expect(first.lowerBound < next.lowerBound)
        #expect(text.firstRange(of: "00:00:00.000").map { $0.lowerBound > next.lowerBound } == true)
        #expect(text.ranges(of: "2026-11-2").count == 2)
    }

    @Test func `a failed login is drawn with its diagnosis`() throws {
        let image = try Self.read(DiagramForm().draw([Self.diagram(Self.failed())]))
        #expect(image.counts["svg"] == 1)
        // Two headers, features, and the SASL exchange.
        #expect(image.counts["path"] == 5)
        for words in [
            "session 1, juliet at example.org", "xmpptap is not the cause", "✗ sasl: not-authorized", "✓ features",
            "failed at sasl: the server refused the user name or the password", "No & <never> \"here\".",
        ] { #expect(image.text.contains(words), "\(words)") }
        #expect(!image.text.contains("R0m30myr0m30"))
    }

    @Test func `items that xmpptap sends start at its own line in the diagram`() throws {
        var harness = SessionHarness(connected: false)
        harness.failServer("connection refused", .refused)
        harness.send(FailedLogin.header)
        harness.leave()
        let diagram = Self.diagram(harness)
        let items = diagram.rows.compactMap { row in if case .item(let item) = row.content { item } else { nil } }
        #expect(items.contains { $0.from == .tap && $0.to == .client && $0.mark == "xmpptap" && $0.isFailure })
        #expect(items.contains { $0.from == .client && $0.to == .server && $0.mark == nil })
        let image = try Self.read(DiagramForm().draw([diagram]))
        #expect(image.text.contains("[xmpptap]"))
    }

    @Test func `A diagram has no xmpptap lane for a client's log or for xmpptap's own client`() {
        for (beginning, hasTap) in [(Record.Beginning.ownLog, false), (.ownClient, false)]
            as [(Record.Beginning?, Bool)]
            + [(nil, true)]
        {
            let session = Session(
                run: Run(),
                options: SessionOptions(level: .info),
                tools: SessionTools(run: Run(), redaction: .secrets),
                remote: nil,
                upstream: "",
                beginning: beginning,
                at: Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
            )
            let runner = SessionRunner(session)
            var diagram = SequenceDiagram(session: 1)
            runner.drain { diagram.add($0.record, content: $1) }
            #expect(diagram.hasTap == hasTap)
        }
    }

    @Test func `an item that a rule dropped ends at xmpptap`() throws {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin)
        var diagram = SequenceDiagram(session: 1)
        for told in harness.told {
            var record = told.record
            if told.xml?.contains("Wherefore") == true {
                record.action = "dropped"
                record.rule = "typing.pfw:4"
            }
            diagram.add(record, content: told.content.span)
        }
        let dropped = diagram.rows.compactMap { row in if case .item(let item) = row.content { item } else { nil } }
            .filter(\.isStopped)
        #expect(dropped.map(\.mark) == ["dropped typing.pfw:4"])
        #expect(dropped.first?.to == .tap)
        #expect(try Self.read(DiagramForm().draw([diagram])).text.contains("✕"))
    }

    @Test func `consecutive pings and their answers are folded into one row`() throws {
        func pings(_ harness: inout SessionHarness, _ numbers: Range<Int>) {
            for number in numbers {
                harness.recv("<iq type='get' id='p\(number)' from='example.org'><ping xmlns='urn:xmpp:ping'/></iq>")
                harness.send("<iq type='result' id='p\(number)' to='example.org'/>")
            }
        }
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.dropLast(2)))
        let before = Self.diagram(harness).parts
        pings(&harness, 0..<4)
        harness.recv("<message id='between'/>")
        pings(&harness, 10..<11)
        // The id of an answer to another request is not that of a ping.
        harness.send("<iq type='get' id='v1' to='example.org'><query xmlns='jabber:iq:version'/></iq>")
        harness.recv("<iq type='result' id='v1' from='example.org'/>")
        let diagram = Self.diagram(harness)
        #expect(diagram.parts.filter(\.isFolded).map(\.rows.count) == [8])
        #expect(diagram.parts.map(\.rows.count).reduce(0, +) == diagram.rows.count)
        #expect(before.allSatisfy { !$0.isFolded })
        let text = try Self.read(DiagramForm().draw([diagram])).text
        #expect(text.contains("8 acknowledgements and pings") && text.contains("id=between"))
        #expect(!text.contains("id=p3") && text.contains("id=p10") && text.contains("id=v1"))
    }

    @Test func `a long session is cut, and the diagram shows it`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        for number in 0..<2000 { harness.send("<message id='\(number)'/>") }
        let diagram = Self.diagram(harness)
        #expect(diagram.rows.count == SequenceDiagram.maximumRows)
        #expect(diagram.omitted > 1000)
        #expect(try Self.read(DiagramForm().draw([diagram])).text.contains("more"))
    }

    @Test func `hostile text does not break the drawing`() throws {
        for words in [
            "\u{1}\u{7F}\u{9F}", "]]>", "<script>alert(1)</script>", "&amp;&#0;", "\u{FFFE}", "'\"\n\r\t",
        ] {
            let image = try Self.read(DiagramForm().draw([Self.diagram(saying: words)], note: words))
            #expect(image.counts["script"] == nil)
        }
    }

    /// Returns a session in which every text is the same.
    private static func diagram(saying words: String) -> SequenceDiagram {
        func record(_ code: String?, _ kind: Record.Kind = .error) -> Record {
            var record = Record(
                sequence: 1,
                time: Timestamp(nanoseconds: 0),
                monotonic: 0,
                kind: kind,
                level: .error,
                part: .session
            )
            record.session = 1
            record.code = code
            record.message = Prose(words)
            record.jid = words
            record.condition = words
            record.action = words
            record.rule = words
            return record
        }
        var loginStep = record(LoginStep.code)
        loginStep.details = [LoginStep.code: .string(words), LoginStep.outcomeDetail: .string("failed")]
        var item = record(nil, .stanza)
        let content = Array(words.utf8)
        item.direction = .send
        item.name = ByteRange(0, content.count)
        item.type = item.name
        item.id = item.name
        var diagram = SequenceDiagram(session: 1)
        for record in [record(nil), loginStep, item, record(Record.Code.sessionEnded)] {
            diagram.add(record, content: content.span)
        }
        return diagram
    }

    @Test(
        "Invisible characters and bidirectional controls are named in drawings as in logs",
        arguments: [
            "\u{202A}", "\u{202B}", "\u{202C}", "\u{202D}", "\u{202E}", "\u{2066}", "\u{2067}", "\u{2068}", "\u{2069}",
            "\u{200E}", "\u{200F}", "\u{61C}", "\u{200B}", "\u{2060}", "\u{FEFF}", "\u{2028}", "\u{2029}", "\u{E0041}",
            "\u{1B}", "\u{9B}",
        ] as [Unicode.Scalar]
    )
    func invisible(scalar: Unicode.Scalar) throws {
        let drawing = DiagramForm().draw([Self.diagram(saying: "ab\(scalar)cd")], note: "ab\(scalar)cd")
        #expect(!drawing.unicodeScalars.contains(scalar))
        let name = "ab\\u{\(String(scalar.value, radix: 16))}cd"
        // The notes above and below, the owner, the remark, the step's name and condition, the item's name, type, id,
        // condition and mark, and the ending.
        #expect(drawing.components(separatedBy: name).count > 12, "\(drawing)")
        #expect(try Self.read(DiagramForm().draw([Self.diagram(saying: "ab\(scalar)cd")])).counts["svg"] == 1)
    }

    @Test func `joiners and variation selectors are kept`() {
        // Joiners and variation selectors: an emoji of a family, and Persian text.
        let words = "👩\u{200D}👧 می\u{200C}خواهم ❤\u{FE0F}"
        #expect(DiagramForm().draw([Self.diagram(saying: words)]).contains(words))
    }

    @Test func `a note is drawn above and below the diagram`() throws {
        let image = try Self.read(DiagramForm().draw([Self.diagram(saying: "x")], note: "50 of 51 & more"))
        #expect(image.text.components(separatedBy: "50 of 51 & more").count == 3)
    }
}
