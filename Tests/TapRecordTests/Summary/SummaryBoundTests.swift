import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests that every summary is short, complete and without secrets.
@Suite struct SummaryBoundTests {
    private func check(_ words: String?, _ name: String) {
        guard let words else { return }
        #expect(!words.isEmpty && words.utf8.count <= Summary.maximumLength, "\(name): \(words)")
        #expect(!words.contains("\u{FFFD}"), "\(name): \(words)")
        #expect(!words.hasPrefix(",") && !words.hasSuffix(", ") && !words.contains(", , "), "\(name): \(words)")
    }

    @Test(.enabled(if: Corpus.isAvailable)) func `each XEP example has a summary`() throws {
        var count = 0
        var silent = 0
        for example in try Told.examples() {
            let name = "XEP-\(example.xep) #\(example.n)"
            for direction in Direction.allCases {
                Told.each(example.text) { element in
                    let words = Summary.text(of: element, .init(direction: direction, request: "ping"))
                    check(words, name)
                    count += 1
                    guard words == nil else { return }
                    // Only IQs and stanzas without child elements have no summary.
                    #expect(element.children.isEmpty || element.isNamed("iq"), "\(name)")
                    silent += 1
                }
            }
        }
        #expect(count > 10_000)
        #expect(silent < 200, "\(silent) of \(count)")
    }

    /// Examples of each family of XEPs, with the expected summaries.
    @Test(
        .enabled(if: Corpus.isAvailable),
        arguments: [
            ("0012", 8, "last active 123 s ago"), ("0030", 7, "asks for identity and features"),
            ("0030", 17, "has 3 items: catalog.shakespeare.lit, catalog.shakespeare.lit, catalog.shakespeare.lit"),
            ("0045", 10, "is conference/text, 7 features"), ("0045", 19, "joins the room"),
            ("0045", 38, "joins the room, history of 180 s"), ("0045", 42, "the room has no subject"),
            ("0045", 57, "invitation to hecate@shakespeare.lit"),
            ("0045", 65, "invitation from crone1@shakespeare.lit"),
            ("0045", 112, "bans earlofcambridge@shakespeare.lit"),
            ("0045", 160, "sets the room's settings, 17 fields"), ("0045", 172, "the room is logged (170)"),
            ("0045", 203, "the room is destroyed, moved to coven@chat.shakespeare.lit"),
            ("0054", 2, "vCard, 19 fields"),
            ("0060", 28, "subscribes to princely_musings as francisco@denmark.lit"),
            ("0060", 117, "1 item retracted from princely_musings"), ("0060", 157, "deletes princely_musings"),
            ("0077", 18, "registers, or changes the password: bill"),
            ("0084", 13, "publishes avatar image/png 12 kB 64×64, 4 images (urn:xmpp:avatar:metadata)"),
            ("0085", 6, "is typing"), ("0085", 10, "body 35 B"),
        ]
    ) func `XEP examples have the expected summaries`(xep: String, number: Int, words: String) throws {
        let example = try #require(Told.examples().first { $0.xep == xep && $0.n == number })
        #expect(Told.words(example.text).first == words)
    }

    @Test func `summaries of huge and hostile values are bounded`() {
        let long = String(repeating: "\u{202E}é🌹\u{7F}", count: 20_000)
        let many = String(repeating: "<item jid='a@b'/>", count: 20_000)
        for stanza in [
            "<iq type='result'><query xmlns='jabber:iq:roster'>\(many)</query></iq>",
            "<iq type='set'><query xmlns='jabber:iq:roster'><item jid='\(long)' subscription='\(long)'/></query></iq>",
            "<iq type='get'><query xmlns='\(long)'/></iq>", "<presence type='\(long)'/>",
            "<presence><show>\(long)</show><x xmlns='\(long)'/><y xmlns='urn:y'/></presence>",
            "<message>" + String(repeating: "<x xmlns='urn:x'/>", count: 20_000) + "</message>",
            "<message>" + String(repeating: "<active xmlns='http://jabber.org/protocol/chatstates'/>", count: 20_000)
                + "</message>",
            "<iq type='error'><error type='\(long)' by='\(long)'><x xmlns='urn:x'/></error></iq>",
            "<a xmlns='urn:xmpp:sm:3' h='\(long)'/>",
        ] {
            for words in Told.words(stanza) {
                check(words, String(stanza.prefix(60)))
                #expect(words != nil)
            }
        }
        var line = SampleLine()
        line.tell(Told.words("<presence><show>a\n\u{202E}b\u{1B}[2J</show></presence>").first ?? nil)
        #expect(!line.text.contains("\u{202E}") && line.text.split(separator: "\n").count == 1)
    }

    @Test func `nested forwarded stanzas are summarized in bounded length`() {
        var stanza = "<message xmlns='jabber:client'><body>x</body></message>"
        for _ in 0..<20 {
            stanza =
                "<message xmlns='jabber:client'><received xmlns='urn:xmpp:carbons:2'><forwarded xmlns='urn:xmpp:forward:0'>"
                + stanza + "</forwarded></received></message>"
        }
        for words in Told.words(stanza) { check(words, "nested") }
        #expect(Told.words(stanza).count == 1)
    }

    @Test func `no summary of a session contains a secret`() {
        let search = SecretSearch(SecretCatalogue.items)
        let session = SecretCatalogue.session()
        var harness = SessionHarness(options: SessionOptions(level: .info))
        harness.receive(.send, session.send)
        harness.receive(.recv, session.recv)
        let told = harness.told.compactMap(\.record.summary?.description)
        #expect(told.count > 100)
        #expect(search.leaks(in: Array(told.joined(separator: "\n").utf8)).prefix(5) == [])
        for words in told { check(words, words) }
    }
}

/// A record with a summary, in the text form.
private struct SampleLine {
    var text = ""

    mutating func tell(_ summary: String?) {
        var sample = Sample.bound(.stanza)
        sample.item(.recv, "<presence/>", name: "presence")
        sample.record.summary = summary.map { Prose($0) }
        text = (try? sample.text("info")) ?? ""
    }
}
