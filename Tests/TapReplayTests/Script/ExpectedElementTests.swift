import Testing
import XMPPCore

@testable import TapReplay

@Suite struct ExpectedElementTests {
    private static let root = Array(" xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'".utf8)

    private func element(_ xml: String) throws -> Element {
        try StanzaParser().parse(Array(xml.utf8).span, root: Self.root)
    }

    /// Returns the difference between an expected and a received stanza; nil if there is none.
    private func difference(_ expected: String, _ received: String) throws -> String? {
        var values = ScriptValues(accounts: ["romeo@localhost", "juliet@localhost"])
        values.resources = ["romeo@localhost/r1", ""]
        return try difference(expected, received, &values)
    }

    private func difference(_ expected: String, _ received: String, _ values: inout ScriptValues) throws -> String? {
        let script = try script("Romeo connects\nRomeo receives:\n\t\(expected)\n")
        guard case .receives(let wanted) = script.steps[1].action else { return "no stanza" }
        return wanted.difference(try element(received), &values)?.description
    }

    static let cases: [(expected: String, received: String, difference: String?)] = [
        ("<presence/>", "<presence from='a@b' id='1'><c xmlns='x'/></presence>", nil),
        ("<presence/>", "<message/>", "presence: expected <presence/>, received <message/>"),
        (
            "<presence/>", "<presence xmlns='other'/>",
            "presence: expected <presence/>, received <presence xmlns='other'/>"
        ),
        (
            "<iq type='result' id='1'/>", "<iq id='1' type='error'/>",
            "iq/@type: expected \"result\", received \"error\""
        ),
        ("<iq id='1'/>", "<iq/>", "iq/@id: expected \"1\", which is missing"),
        ("<iq id='{scansion:any}'/>", "<iq id=''/>", nil),
        ("<iq id='{scansion:any}'/>", "<iq/>", "iq/@id: expected any value, which is missing"),
        (
            "<iq to=\"${Romeo's full JID}\" from=\"${Juliet's phone's JID}\"/>",
            "<iq to='romeo@localhost/r1' from='juliet@localhost'/>", nil
        ),
        (
            "<iq to=\"${Romeo's JID}\"/>", "<iq to='romeo@localhost/r1'/>",
            "iq/@to: expected \"romeo@localhost\", received \"romeo@localhost/r1\""
        ),
        // Children in the stream's namespace: in any order, others are ignored.
        (
            "<message><body>a</body><thread/></message>",
            "<message><thread>t</thread><x xmlns='y'/><body> a\n</body></message>", nil
        ),
        (
            "<message><body>a</body></message>", "<message><body>b</body></message>",
            "message/body/text(): expected \"a\", received \"b\""
        ),
        ("<message><body>a</body></message>", "<message/>", "message: expected <body/>, which is missing"),
        ("<m><a/><a/></m>", "<m><a/></m>", "m: expected <a/>, which is missing"),
        // An element of another namespace: equal attributes, and equal children in order.
        ("<iq><q xmlns='x' a='1'/></iq>", "<iq><q xmlns='x' a='1' b='2'/></iq>", "iq/q/@b: unexpected \"2\""),
        (
            "<iq><q xmlns='x'><a/><b/></q></iq>", "<iq><q xmlns='x'><b/><a/></q></iq>",
            "iq/q/a: expected <a xmlns='x'/>, received <b xmlns='x'/>"
        ),
        ("<iq><q xmlns='x'><a/></q></iq>", "<iq><q xmlns='x'><a/><b/></q></iq>", "iq/q: unexpected <b xmlns='x'/>"),
        (
            "<iq><q xmlns='x'><a/><b/></q></iq>", "<iq><q xmlns='x'><a/></q></iq>",
            "iq/q: expected <b xmlns='x'/>, which is missing"
        ),
        (
            "<iq><q xmlns='x'><a><c/></a></q></iq>", "<iq><q xmlns='x'><a><c d='1'/></a></q></iq>",
            "iq/q/a/c/@d: unexpected \"1\""
        ),
        ("<iq><q xmlns='x'><h n='A'></h></q></iq>", "<iq><q xmlns='x'><h n='A'>secret</h></q></iq>", nil),
        // Explicit strictness.
        (
            "<iq><q xmlns='x' scansion:strict='false'><b/></q></iq>", "<iq><q xmlns='x' v='1'><a/><b c='1'/></q></iq>",
            nil
        ),
        ("<iq scansion:strict='true' id='1'/>", "<iq id='1' type='get'/>", "iq/@type: unexpected \"get\""),
        ("<iq><q xmlns='x'><a scansion:strict='no'/></q></iq>", "<iq><q xmlns='x'><a b='1'/></q></iq>", nil),
        ("<m xml:lang='en'/>", "<m xml:lang='de'/>", "m/@lang: expected \"en\", received \"de\""),
    ]

    @Test(arguments: cases) func `received stanzas are compared with the expected ones`(
        _ sample: (expected: String, received: String, difference: String?)
    )
        throws
    {
        #expect(try difference(sample.expected, sample.received) == sample.difference)
    }

    @Test func `a capture gets a new value each time`() throws {
        var values = ScriptValues(accounts: ["romeo@localhost", "juliet@localhost"])
        #expect(try difference("<a id='{scansion:capture:x}'/>", "<a id='7'/>", &values) == nil)
        #expect(try difference("<b><c d='{scansion:capture:x}'/></b>", "<b><c d='7'/></b>", &values) == nil)
        #expect(try difference("<a id='{scansion:capture:x}'/>", "<a id='8'/>", &values) == nil)
        #expect(values.captures == ["x": "8"])
        #expect(
            try difference("<a id='{scansion:capture:x}'/>", "<a/>", &values)
                == "a/@id: expected any value, which is missing"
        )
    }

    @Test func `a stanza that differs captures no values`() throws {
        var values = ScriptValues(accounts: ["romeo@localhost", "juliet@localhost"])
        #expect(try difference("<a id='{scansion:capture:x}' to='1'/>", "<a id='7' to='2'/>", &values) != nil)
        #expect(try difference("<a id='{scansion:capture:x}'/>", "<a id='8'/>", &values) == nil)
    }
}
