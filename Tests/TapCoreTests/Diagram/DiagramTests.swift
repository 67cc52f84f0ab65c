import Foundation
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

#if canImport(FoundationXML)
    import FoundationXML
#endif

/// Sessions drawn.
@Suite struct DiagramTests {
    private static func diagram(_ harness: borrowing SessionHarness) -> SequenceDiagram {
        var diagram = SequenceDiagram(session: 1)
        for told in harness.told { diagram.note(told.record, content: told.content.span) }
        return diagram
    }

    private static func failed() -> SessionHarness {
        var harness = FailedLogin.opened(FailedLogin.mechanisms("PLAIN"))
        harness.send(FailedLogin.plain)
        harness.recv(FailedLogin.failure("not-authorized", "No &amp; &lt;never> \"here\"."))
        harness.leave()
        return harness
    }

    /// The names of all elements of a document that is well-formed, with how often they occur.
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

    @Test func aLoginThatFailedIsDrawnWithItsVerdict() throws {
        let image = try Self.read(DiagramForm(.svg).draw([Self.diagram(Self.failed())]))
        #expect(image.counts["svg"] == 1)
        // Two headers, features, and what was said of the password.
        #expect(image.counts["path"] == 5)
        for words in [
            "session 1, juliet at example.org", "xmpptap is not the cause", "✗ sasl: not-authorized", "✓ features",
            "failed at sasl: the server refuses the name or the password", "No & <never> \"here\".",
        ] { #expect(image.text.contains(words), "\(words)") }
        #expect(!image.text.contains("R0m30myr0m30"))
    }

    @Test func whatXmpptapSaysItselfComesFromItsOwnLine() throws {
        var harness = SessionHarness(connected: false)
        harness.failServer("connection refused", .refused)
        harness.send(FailedLogin.header)
        harness.leave()
        let diagram = Self.diagram(harness)
        let items = diagram.rows.compactMap { row in if case .item(let item) = row.content { item } else { nil } }
        #expect(items.contains { $0.from == .tap && $0.to == .client && $0.mark == "xmpptap" && $0.isFailure })
        #expect(items.contains { $0.from == .client && $0.to == .server && $0.mark == nil })
        let image = try Self.read(DiagramForm(.svg).draw([diagram]))
        #expect(image.text.contains("[xmpptap]"))
    }

    @Test func whatARuleDroppedEndsAtXmpptap() throws {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin)
        var diagram = SequenceDiagram(session: 1)
        for told in harness.told {
            var record = told.record
            if told.xml?.contains("Wherefore") == true {
                record.verdict = "dropped"
                record.rule = "typing.pfw:4"
            }
            diagram.note(record, content: told.content.span)
        }
        let dropped = diagram.rows.compactMap { row in if case .item(let item) = row.content { item } else { nil } }
            .filter(\.isStopped)
        #expect(dropped.map(\.mark) == ["dropped typing.pfw:4"])
        #expect(dropped.first?.to == .tap)
        #expect(try Self.read(DiagramForm(.svg).draw([diagram])).text.contains("✕"))
    }

    @Test func aPageHoldsTheSameImageAndNothingFromElsewhere() {
        let diagram = Self.diagram(Self.failed())
        let page = DiagramForm(.html).draw([diagram, diagram])
        #expect(page.hasPrefix("<!DOCTYPE html>"))
        #expect(page.contains("<svg "))
        let links = page.matches(of: /(?:href|src)=|url\(|https?:\/\/(?!www\.w3\.org\/2000\/svg)/)
        #expect(links.isEmpty)
    }

    @Test func aLongSessionIsCutAndSaysSo() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        for number in 0..<2000 { harness.send("<message id='\(number)'/>") }
        let diagram = Self.diagram(harness)
        #expect(diagram.rows.count == SequenceDiagram.mostRows)
        #expect(diagram.omitted > 1000)
        #expect(try Self.read(DiagramForm(.svg).draw([diagram])).text.contains("more"))
    }

    @Test func noTextOfAPeerBreaksTheDrawing() throws {
        for words in ["\u{1}\u{7F}\u{9F}", "]]>", "<script>alert(1)</script>", "&amp;&#0;", "\u{FFFE}", "'\"\n\r\t"] {
            var record = Record(
                sequence: 1,
                time: Timestamp(nanoseconds: 0),
                monotonic: 0,
                kind: .error,
                level: .error,
                part: .session
            )
            record.session = 1
            record.message = words
            record.jid = words
            var diagram = SequenceDiagram(session: 1)
            let nothing: [UInt8] = []
            diagram.note(record, content: nothing.span)
            let image = try Self.read(DiagramForm(.svg).draw([diagram]))
            #expect(image.counts["script"] == nil)
        }
    }
}
