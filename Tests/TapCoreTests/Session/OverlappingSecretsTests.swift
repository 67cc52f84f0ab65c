import TapRecord
import TapTestKit
import Testing
import XMPPCore

@Suite struct OverlappingSecretsTests {
    /// Generates texts with several secrets at random positions.
    private struct Texts {
        var random: SeededGenerator
        /// All values that must not appear in a record.
        var values: [String] = []

        mutating func value() -> String {
            let letters = Array("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ")
            values.append(String((0..<12).map { _ in letters[Int(random.next() % UInt64(letters.count))] }))
            return values[values.count - 1]
        }

        mutating func piece(known: [String]) -> String {
            switch Int.random(in: 0..<9, using: &random) {
            case 0: "aesgcm://up.example/\(value())#\(value())"
            case 1: "https://\(value()):\(value())@h.example/\(value())?token=\(value())"
            case 2: "xmpp:\(value())@b.example?;preauth=\(value())#\(value())"
            case 3: known[Int(random.next() % UInt64(known.count))]
            case 4: "https://invite.example/invite/\(value())?\(value())"
            case 5: "&#\(Int.random(in: 0x41...0x5A, using: &random));\(value())&amp;"
            case 6: "?\(value())=\(value())"
            case 7: "#\(value())"
            default: value()
            }
        }

        mutating func text(known: [String]) -> String {
            (0..<Int.random(in: 1...5, using: &random)).map { _ in
                piece(known: known) + (Bool.random(using: &random) ? "" : " ")
            }.joined()
        }
    }

    /// Returns items with an attribute or text that is a secret as a whole, and contains other secrets.
    private static func items(_ texts: inout Texts, count: Int) -> [String] {
        let known = (0..<4).map { _ in "https://l.example/\(texts.value())" }
        let form = known.map { "<field var='landing-url'><value>\($0)</value></field>" }.joined()
        var items = ["<message><x xmlns='jabber:x:data' type='result'>\(form)</x></message>"]
        for index in 0..<count {
            let text = texts.text(known: known)
            switch index % 7 {
            case 0:
                items.append(
                    "<message><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='\(text)'><item><notification "
                        + "xmlns='urn:xmpp:push:0'/></item></publish></pubsub></message>"
                )
            case 1: items.append("<iq type='set' id='1'><enable xmlns='urn:xmpp:push:0' node='\(text)'/></iq>")
            case 2: items.append("<message><x xmlns='jabber:x:conference' password='\(text)'/></message>")
            case 3:
                let middle = text.split(separator: " ").map { "<![CDATA[\($0.replacing("&", with: "+"))]]>" }
                items.append("<message><x xmlns='urn:example:x'><password>\(middle.joined())</password></x></message>")
            case 4:
                items.append("<message><x xmlns='urn:example:x'><ApiKey note='\(text)'>\(text)</ApiKey></x></message>")
            case 5: items.append("<message><x xmlns='jabber:x:oob' token='\(text)'/></message>")
            default: items.append("<message><x xmlns='urn:example:x' access-token='\(text)'/></message>")
            }
        }
        return items
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `Overlapping secrets are redacted completely in every format`(seed: UInt64) throws {
        var texts = Texts(random: SeededGenerator(seed: seed))
        let items = Self.items(&texts, count: 140)
        var harness = SessionHarness()
        harness.send(SessionSecretsTests.login)
        harness.recv(SessionSecretsTests.login)
        for item in items { harness.send(item) }
        #expect(harness.told.count > items.count)
        var told = try harness.written()
        var style = TextForm.Style()
        style.indentsXML = true
        style.showsBodies = true
        var pretty = TextForm(style: style)
        var compact = CompactForm()
        var lines = LineBuffer()
        for told in harness.told {
            pretty.append(told.record, content: told.content.span, [.summary, .xml], to: &lines)
            compact.append(told.record, content: told.content.span, [.summary, .xml], to: &lines)
        }
        told += lines.text
        #expect(SecretSearch(secrets: texts.values.map { Array($0.utf8) }).leaks(in: told).prefix(3) == [])
        #expect(told.contains("[redacted:push-node#"))

        // Lines of another program's log are hidden as a whole.
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        for item in items {
            let line = redactor.disclose(line: Array("SENT \(item)".utf8).span)
            #expect(line.hasPrefix("[redacted:text-"))
        }
    }
}
