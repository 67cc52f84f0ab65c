import Testing

/// An item that is invalid, or not allowed at its place in the stream, and the expected report.
struct HostileItem: Sendable, CustomTestStringConvertible {
    /// The expected treatment of the item.
    enum Fate: Sendable {
        /// The parser stops at the item. `code` and `condition` are those of the reported error, and `at` is the offset
        /// of the error in the item.
        case unparsable(_ code: String, _ condition: String, at: Int)
        /// The item is larger than the limit before login, so the session is closed under both policies. `later` is
        /// true if it also closes an open session when all data is checked before it is forwarded.
        case tooLarge(later: Bool)
        /// An item after the end of the stream. Before login, the login fails with an error with `code` and `condition`
        /// at offset `at` in the item; after login, the item belongs to the logout.
        case late(_ code: String, _ condition: String, at: Int)
        /// The item may be wrong but is well-formed XML, so it is forwarded under both policies. `code` is the code of
        /// the record about it, if any.
        case passes(code: String?)
    }

    let name: String
    let bytes: [UInt8]
    let fate: Fate

    var testDescription: String { name }

    private init(_ name: String, _ bytes: [UInt8], _ fate: Fate) {
        self.name = name
        self.bytes = bytes
        self.fate = fate
    }

    private init(_ name: String, _ text: String, _ fate: Fate) { self.init(name, Array(text.utf8), fate) }

    /// All items that a stream must not contain after its header.
    static let all = notWellFormed + restricted + namespaces + limits + misplaced

    private static let notWellFormed = [
        HostileItem(
            "a control character for a name",
            "<\u{1}",
            .unparsable("malformed-name", "not-well-formed", at: 1)
        ),
        HostileItem("a digit for a name", "<1a/>", .unparsable("malformed-name", "not-well-formed", at: 1)),
        HostileItem("a blank before a name", "< a/>", .unparsable("malformed-name", "not-well-formed", at: 1)),
        HostileItem(
            "tags that overlap",
            "<a xmlns='u'><b></a>",
            .unparsable("mismatched-tag", "not-well-formed", at: 16)
        ),
        HostileItem("another end", "</stream:steam>", .unparsable("mismatched-tag", "not-well-formed", at: 0)),
        HostileItem(
            "the same attribute twice",
            "<a b='1' b='2'/>",
            .unparsable("duplicate-attribute", "not-well-formed", at: 9)
        ),
        HostileItem("an attribute without quotes", "<a b=u/>", .unparsable("malformed-tag", "not-well-formed", at: 5)),
        HostileItem("< in an attribute", "<a b='<'/>", .unparsable("malformed-tag", "not-well-formed", at: 6)),
        HostileItem("a lone ampersand", "<a>&</a>", .unparsable("invalid-reference", "not-well-formed", at: 3)),
        HostileItem("]]> in text", "<a>]]></a>", .unparsable("cdata-end-in-text", "not-well-formed", at: 3)),
        HostileItem("a reference to NUL", "<a>&#0;</a>", .unparsable("invalid-character", "not-well-formed", at: 3)),
        HostileItem(
            "a reference beyond Unicode",
            "<a>&#x110000;</a>",
            .unparsable("invalid-character", "not-well-formed", at: 3)
        ),
        HostileItem("U+FFFE", "<a>\u{FFFE}</a>", .unparsable("invalid-character", "not-well-formed", at: 3)),
        HostileItem("NUL", "<a>\0</a>", .unparsable("invalid-character", "not-well-formed", at: 3)),
        HostileItem(
            "a byte that is no UTF-8",
            Array("<a>".utf8) + [0xC3, 0x28] + Array("</a>".utf8),
            .unparsable("invalid-utf-8", "not-well-formed", at: 3)
        ),
        HostileItem(
            "a < of two bytes, as smugglers write it",
            Array("<a>".utf8) + [0xC0, 0xBC] + Array("b/></a>".utf8),
            .unparsable("invalid-utf-8", "not-well-formed", at: 3)
        ),
        HostileItem(
            "half of a surrogate pair",
            Array("<a>".utf8) + [0xED, 0xA0, 0xBD] + Array("</a>".utf8),
            .unparsable("invalid-utf-8", "not-well-formed", at: 3)
        ),
        HostileItem("text between stanzas", "hello", .unparsable("text-outside-stanza", "bad-format", at: 0)),
        HostileItem("a byte order mark", "\u{FEFF}", .unparsable("text-outside-stanza", "bad-format", at: 0)),
        HostileItem(
            "a TLS record",
            [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3],
            .unparsable("text-outside-stanza", "bad-format", at: 0)
        ),
        HostileItem(
            "a stanza behind the end",
            "</stream:stream><presence/>",
            .late("after-stream-end", "bad-format", at: 16)
        ),
    ]

    private static let restricted = [
        HostileItem("a document type", "<!DOCTYPE a>", .unparsable("doctype", "restricted-xml", at: 0)),
        HostileItem("a comment", "<!-- x -->", .unparsable("comment", "restricted-xml", at: 0)),
        HostileItem(
            "a comment in a stanza",
            "<message><!-- x --></message>",
            .unparsable("comment", "restricted-xml", at: 9)
        ),
        HostileItem(
            "a processing instruction",
            "<?php x?>",
            .unparsable("processing-instruction", "restricted-xml", at: 0)
        ),
        HostileItem("an entity", "<a>&nbsp;</a>", .unparsable("entity-reference", "restricted-xml", at: 3)),
    ]

    private static let namespaces = [
        HostileItem(
            "a name of two colons",
            "<a:b:c xmlns:a='u'/>",
            .unparsable("malformed-name", "not-well-formed", at: 4)
        ),
        HostileItem(
            "a prefix that nobody declared",
            "<x:a/>",
            .unparsable("unbound-prefix", "bad-namespace-prefix", at: 1)
        ),
        HostileItem(
            "a prefix declared for nothing",
            "<a xmlns:b=''/>",
            .unparsable("unbound-prefix", "bad-namespace-prefix", at: 0)
        ),
        HostileItem(
            "the prefix xml for another namespace",
            "<a xmlns:xml='u'/>",
            .unparsable("reserved-prefix", "bad-namespace-prefix", at: 0)
        ),
    ]

    private static let limits = [
        HostileItem(
            "a tag of 70,000 bytes",
            "<a b='" + String(repeating: "x", count: 70_000) + "'/>",
            .unparsable("limit-tag", "policy-violation", at: 0)
        ),
        HostileItem(
            "300 levels",
            String(repeating: "<b>", count: 300) + String(repeating: "</b>", count: 300),
            .unparsable("limit-depth", "policy-violation", at: 3 * 255)
        ),
        HostileItem(
            "300 attributes",
            "<a " + (1000..<1300).map { "a\($0)='1'" }.joined(separator: " ") + "/>",
            .unparsable("limit-attributes", "policy-violation", at: 3 + 10 * 256)
        ),
        HostileItem(
            "a name of 2,000 bytes",
            "<" + String(repeating: "n", count: 2000) + "/>",
            .unparsable("limit-name", "policy-violation", at: 1)
        ),
        HostileItem(
            "a stanza of 70,000 bytes",
            "<message><body>" + String(repeating: "x", count: 70_000) + "</body></message>",
            .tooLarge(later: false)
        ),
        HostileItem(
            "a stanza of 1.2 MB",
            "<message><body>" + String(repeating: "x", count: 1_200_000) + "</body></message>",
            .tooLarge(later: true)
        ),
    ]

    private static let misplaced = [
        HostileItem("a section of text", "<a xmlns='u'><![CDATA[<]]></a>", .passes(code: nil)),
        HostileItem(
            "a hundred prefixes",
            "<a xmlns='u'" + (0..<100).map { " xmlns:p\($0)='u'" }.joined() + "/>",
            .passes(code: nil)
        ),
        HostileItem("a namespace that is no URI", "<a xmlns='urn:a&#10;b'/>", .passes(code: "doubtful-namespace")),
        HostileItem("white space without end", String(repeating: " \n", count: 50_000), .passes(code: nil)),
        HostileItem("an element of no protocol", "<html xmlns='http://www.w3.org/1999/xhtml'/>", .passes(code: nil)),
        HostileItem("an iq without an id", "<iq type='get'><ping xmlns='urn:xmpp:ping'/></iq>", .passes(code: nil)),
        HostileItem("an iq of no known type", "<iq type='x' id='1'/>", .passes(code: nil)),
        HostileItem("half a stanza", "<message><bo", .passes(code: "torn")),
        HostileItem(
            "a stream error",
            "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>",
            .passes(code: "stream-error")
        ),
        HostileItem("an end", "</stream:stream >", .passes(code: nil)),
    ]
}
