import TapTestKit
import Testing
import XMPPCore

@testable import TapRecord

struct SecretTextTests {
    struct Case: CustomTestStringConvertible {
        var text: String
        var shown: String
        init(_ text: String, _ shown: String) {
            self.text = text
            self.shown = shown
        }
        var testDescription: String { text }
    }

    static let cases: [Case] = [
        Case("aesgcm://a/b#0011", "aesgcm://a/b#[redacted:file-key#1]"),
        Case("x AESGCM://a/b?token=q#0011 y", "x AESGCM://a/b?token=[redacted:url-query#1]#[redacted:file-key#2] y"),
        Case("aesgcm://a/b# y", "aesgcm://a/b# y"),
        Case("https://a/b#top", "https://a/b#top"),
        Case("xmpp:a@b?roster;preauth=T0K;x=1", "xmpp:a@b?roster;preauth=[redacted:preauth-token#1];x=1"),
        Case("preauth=T0K", "preauth=[redacted:preauth-token#1]"),
        Case("PreAuth=T=0=K", "PreAuth=[redacted:preauth-token#1]"),
        Case(
            "https://a/b?x=1&amp;Sig=abc&amp;y=2",
            "https://a/b?x=1&amp;Sig=[redacted:url-query#1]&amp;y=2"
        ),
        Case("https://a/cb#access_token=abc&#38;x=1", "https://a/cb#access_token=[redacted:url-query#1]&#38;x=1"),
        Case("https://a/invite/?t=abc#x", "https://a/invite/?[redacted:url-query#1]#x"),
        Case("token=abc", "token=abc"),
        Case("if key==value then x=1", "if key==value then x=1"),
        Case("a&#35;b=c", "a&#35;b=c"),
        Case("\u{e9}\u{1F600}aesgcm://\u{e9}#\u{1F600}k", "\u{e9}\u{1F600}aesgcm://\u{e9}#[redacted:file-key#1]"),
        Case("aesgcm://a#&#x1F600;k z", "aesgcm://a#[redacted:file-key#1] z"),
        Case("<![CDATA[aesgcm://a#k z]]> y", "<![CDATA[aesgcm://a#[redacted:file-key#1] z]]> y"),
        Case("aesgcm://a<![CDATA[#k]]> y", "aesgcm://a<![CDATA[#[redacted:file-key#1]]]> y"),
        Case("u aesgcm://a#k<![CDATA[l]]>m y", "[redacted:file-key#1]"),
        Case("aesgcm://a#<![CDATA[]]>k", "aesgcm://a#<![CDATA[]]>[redacted:file-key#1]"),
        Case("aesgcm://a#[redacted:file-key#7]", "aesgcm://a#[redacted:file-key#7]"),
        Case("aesgcm://a#[redacted:file-key#7]k", "aesgcm://a#[redacted:file-key#1]"),
        Case(
            "https://a/b?token=[redacted:url-query#7]&amp;sig=k",
            "https://a/b?token=[redacted:url-query#7]&amp;sig=[redacted:url-query#1]"
        ),
        Case("https://a/b?token=[redacted:url-query#7]k", "https://a/b?token=[redacted:url-query#1]"),

        // Passwords before a host.
        Case("https://user:pw@host/x", "https://user:[redacted:password#1]@host/x"),
        Case("(postgres://tap:p%40w:1@db:5432/audit)", "(postgres://tap:[redacted:password#1]@db:5432/audit)"),
        Case(
            "redis://:pw@h, https://a:b@c@d?x",
            "redis://:[redacted:password#1]@h, https://a:[redacted:password#2]@d?x"
        ),
        Case("jdbc:x://u:pw@h?password=pw2", "jdbc:x://u:[redacted:password#1]@h?password=[redacted:url-query#2]"),
        Case("postgres://u:12/ab@db/x", "postgres://u:[redacted:password#1]@db/x"),
        Case("mysql://u:p/w?#1@h/x", "mysql://u:[redacted:password#1]@h/x"),
        Case("https://u:[redacted:password#7]@h/x", "https://u:[redacted:password#7]@h/x"),
        Case("https://a/x?to=ftp://u:pw@h/", "https://a/x?to=ftp://u:[redacted:password#1]@h/"),
        Case("ssh://git@host:org/repo", "ssh://git@host:org/repo"),
        Case("https://host:8080/@user?v=1", "https://host:8080/@user?v=1"),
        Case("https://[2001:db8::1]/@user", "https://[2001:db8::1]/@user"),
        Case("https://user:@host/", "https://user:@host/"),
        Case("12:30 // a@b.example?", "12:30 // a@b.example?"),

        // Complete queries, which are recognised by path or host.
        Case("https://a/invite?TOKEN", "https://a/invite?[redacted:url-query#1]"),
        Case("https://a/p/Invit%61tion?TOKEN#x", "https://a/p/Invit%61tion?[redacted:url-query#1]#x"),
        Case("https://a/invite?[redacted:url-query#7]#x", "https://a/invite?[redacted:url-query#7]#x"),
        Case("https://a/invite?[redacted:url-query#7]k", "https://a/invite?[redacted:url-query#1]"),
        Case("https://a/invites/T0KEN/form?x", "https://a/invites/[redacted:invite-url#1]/form?[redacted:url-query#2]"),
        Case("https://upload.a:5443/x?TOKEN", "https://upload.a:5443/x?[redacted:url-query#1]"),
        Case("https://share.a/x?TOKEN", "https://share.a/x?TOKEN"),
        Case("https://a/uninvited/x?TOKEN", "https://a/uninvited/x?TOKEN"),
        Case("what? https://a/invite. where?", "what? https://a/invite. where?"),

        // Parameter names in other spellings, and URLs in URLs.
        Case(
            "https://a/b?%74oken=abc&amp;To%6bEn=d",
            "https://a/b?%74oken=[redacted:url-query#1]&amp;To%6bEn=[redacted:url-query#2]"
        ),
        Case(
            "https://a/b?api-key=k&amp;clientSecret=s",
            "https://a/b?api-key=[redacted:url-query#1]&amp;clientSecret=[redacted:url-query#2]"
        ),
        Case("xmpp:a@b?register;p%72eauth=T0K", "xmpp:a@b?register;p%72eauth=[redacted:preauth-token#1]"),
        Case("xmpp:room@b?join;password=pw", "xmpp:room@b?join;password=[redacted:url-query#1]"),
        Case("https://a/b?to=https%3A%2F%2Fc%3Ftoken%3Dabc", "https://a/b?to=[redacted:url-query#1]"),
        Case("https://a/b?to=https%253A%252F%252Fu%253Apw%2540c", "https://a/b?to=[redacted:url-query#1]"),
        Case(
            "https://a/b?to=https%3A%2F%2Fc%3Fv%3Dabc&amp;monkey=1",
            "https://a/b?to=https%3A%2F%2Fc%3Fv%3Dabc&amp;monkey=1"
        ),
        Case("https://a/b?v=100%&amp;w=%zz", "https://a/b?v=100%&amp;w=%zz"),
    ]

    @Test(arguments: cases) func `only keys are hidden in URLs`(_ example: Case) throws {
        let shown = try #require(Shown("<message><body>\(example.text)</body></message>"))
        #expect(shown.text == "<message><body>\(example.shown)</body></message>")
        guard !example.text.contains("<"), !example.text.contains("'") else { return }
        let attribute = try #require(Shown("<message><x href='\(example.text)'/></message>"))
        #expect(attribute.text == "<message><x href='\(example.shown)'/></message>")
    }

    @Test func `a link to an upload slot is recognized with any query`() throws {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        func show(_ text: String) throws -> String {
            let shown = try #require(Shown("<message><body>\(text)</body></message>", redactor)).text
            return String(shown.dropFirst("<message><body>".count).dropLast("</body></message>".count))
        }
        let links = [
            "https://Files.example/u/a.jpg?T0KEN", "https://files.example/u/%61.jpg?OTHER",
            "aesgcm://files.example/u/a.jpg?T0KEN#k",
        ]
        for link in links.prefix(2) { #expect(try show(link) == link) }
        let slot =
            "<iq><slot xmlns='urn:xmpp:http:upload:0'><put url='https://files.example:5443/u/a.jpg?T0KEN'/>"
            + "<get url='https://files.example/u/a.jpg'/></slot></iq>"
        #expect(
            try #require(Shown(slot, redactor)).text
                == slot.replacing("T0KEN", with: "[redacted:url-query#1]")
        )
        #expect(try show(links[0]) == "https://Files.example/u/a.jpg?[redacted:url-query#1]")
        #expect(try show("(\(links[0]).)") == "(https://Files.example/u/a.jpg?[redacted:url-query#2]")
        #expect(try show(links[1]) == "https://files.example/u/%61.jpg?[redacted:url-query#3]")
        #expect(
            try show(links[2]) == "aesgcm://files.example/u/a.jpg?[redacted:url-query#1]#[redacted:file-key#4]"
        )
        // A slot of this host had a query, so all queries of this host are treated as tokens.
        #expect(try show("https://files.example:5443/b?z=1") == "https://files.example:5443/b?[redacted:url-query#5]")
        for other in ["https://files.example/u/b.jpg?v=1", "https://other.example/u/a.jpg?v=1"] {
            #expect(try show(other) == other)
        }
    }

    @Test func `the oldest upload slots are forgotten first`() throws {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry(slotCapacity: 8))
        func slot(_ number: Int) throws {
            let slot = "<iq><slot xmlns='urn:xmpp:http:upload:0'><get url='https://a.example/\(number)'/></slot></iq>"
            #expect(try #require(Shown(slot, redactor)).text == slot)
        }
        func isKnown(_ number: Int) throws -> Bool {
            try #require(Shown("<message><body>https://a.example/\(number)?q\(number)</body></message>", redactor))
                .text.contains("?[redacted:url-query#")
        }
        for number in 1...8 { try slot(number) }
        #expect(try (1...8).map(isKnown).filter(\.self).count >= 4)
        for number in 9...40 {
            try slot(number)
            // Each link to a slot counts as a use of the slot, so the slot is not evicted.
            #expect(try isKnown(8))
        }
        #expect(try !isKnown(20) && isKnown(40))
    }

    @Test func `the link of an invitation is hidden in later messages`() throws {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        let message = "<message><body>See https://a.example/i/Hq7vZw2nDs.</body></message>"
        #expect(try #require(Shown(message, redactor)).text == message)
        let form =
            "<iq><x xmlns='jabber:x:data'><field var='landing-url'><value>https://a.example/i/Hq7vZw2nDs</value>"
            + "</field></x></iq>"
        #expect(try #require(Shown(form, redactor)).text.contains("<value>[redacted:invite-url#1]</value>"))
        #expect(
            try #require(Shown(message, redactor)).text
                == "<message><body>See [redacted:invite-url#1].</body></message>"
        )
    }

    @Test func `a word with many URLs is searched within the time limit`() throws {
        // If each URL were read to the end of the word, the test would exceed the time limit of the suite.
        for unit in ["a://", "a://b:c/", "a://u:p@h?", "?a=%25", "://", "x=%2f&amp;", "/invite/"] {
            let word = "aesgcm://" + String(repeating: unit, count: 1_000_000 / unit.utf8.count / 2)
            let item = Array("<message><body>\(word)</body></message>".utf8)
            let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
            if case .withheld = redactor.disclose(item: item.span) { Issue.record("\(unit)") }
        }
    }

    @Test func `the work for URLs grows linearly with the bytes`() {
        func visits(_ unit: String, _ behind: String, _ count: Int) -> Int {
            let urls = String(repeating: unit, count: count / 2 / unit.utf8.count)
            let word = Array((urls + behind + String(repeating: "x", count: count / 2)).utf8)
            return SecretText.search(word.span, SecretRegistry()).visits
        }
        for unit in ["x://u:p/", "x://", "a://b:c/", "x://u:1/", "a://u:p@h?"] {
            for behind in ["@", ""] {
                let (short, long) = (visits(unit, behind, 100_000), visits(unit, behind, 800_000))
                #expect(short > 0 && long <= 9 * short, "\(unit)\(behind): \(short), \(long)")
            }
        }
    }

    @Test func `many CDATA sections are searched within the time limit`() throws {
        let piece = "<![CDATA[?token=a]]> &#32;"
        let text = String(repeating: piece, count: 30_000)
        let shown = try #require(Shown("<message><body>\(text)</body></message>"))
        #expect(shown.text.contains("<![CDATA[?token=[redacted:url-query#1]]]> &#32;<![CDATA["))
    }

    @Test func `numbers are given once, and the oldest values are forgotten first`() {
        let registry = SecretRegistry(capacity: 8)
        func number(_ value: Int) -> UInt32 { registry.number(of: Array("value \(value)".utf8).span) }
        func knows(_ value: Int) -> Bool { registry.knows(Array("value \(value)".utf8).span) }
        #expect((1...4).map(number) == [1, 2, 3, 4])
        #expect((1...4).map(number) == [1, 2, 3, 4])
        #expect((5...8).map(number) == [5, 6, 7, 8])
        #expect(number(1) == 1, "met again before it was forgotten")
        #expect((9...40).map(number) == Array(9...40))
        #expect(registry.count <= 8)
        #expect(number(2) == 41, "forgotten, and no number is given twice")
        #expect(knows(40))
        #expect(!knows(3))
    }

    @Test func `sessions on different threads share numbers`() async {
        let registry = SecretRegistry()
        let numbers = await withTaskGroup(of: [UInt32].self) { group in
            for _ in 0..<8 {
                group.addTask { (0..<500).map { registry.number(of: Array("\($0 % 100)".utf8).span) } }
            }
            return await group.reduce(into: Set<UInt32>()) { $0.formUnion($1) }
        }
        #expect(numbers == Set(1...100))
    }
}
