import Testing

/// Data that strangers and attackers send instead of a valid stream, for the tests of all modules.
package struct HostileBytes: Sendable, CustomTestStringConvertible {
    /// A description of the bytes.
    package let name: String
    /// Expected number of records for top-level items.
    package let items: Int
    private let make: @Sendable () -> [UInt8]

    /// The data.
    package var bytes: [UInt8] { make() }
    /// The name.
    package var testDescription: String { name }

    private init(_ name: String, items: Int = 1, _ make: @escaping @Sendable () -> [UInt8]) {
        self.name = name
        self.items = items
        self.make = make
    }

    private init(_ name: String, items: Int = 1, text: @escaping @Sendable () -> String) {
        self.init(name, items: items) { Array(text().utf8) }
    }

    /// Returns all data; endless input is limited to `large` bytes.
    package static func all(large: Int) -> [HostileBytes] {
        foreign + encodings + markup + endless(large) + many
    }

    private static let header =
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        + "to='localhost' version='1.0'>"

    /// Other protocols, and silence.
    private static let foreign = [
        HostileBytes("silence") { [] as [UInt8] },
        HostileBytes("garbage") {
            var generator = SeededGenerator(seed: 1)
            return generator.bytes(count: 100_000)
        },
        HostileBytes("zeros") { [UInt8](repeating: 0, count: 100_000) },
        HostileBytes("HTTP") { "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" },
        HostileBytes("an HTTP answer") { "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" },
        HostileBytes("SSH") { "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n" },
        HostileBytes("a TLS record") { [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3] },
        HostileBytes("a TLS alert") { [0x15, 3, 1, 0, 2, 2, 40] },
        HostileBytes("a TLS record cut in its head") { [0x16, 3] },
        HostileBytes("a ClientHello whose lengths lie") {
            [0x16, 3, 1, 0xFF, 0xFF, 1, 0xFF, 0xFF, 0xFF, 3, 3] + [UInt8](repeating: 0xFF, count: 600)
        },
    ]

    /// Encodings that are not UTF-8.
    private static let encodings = [
        HostileBytes("a UTF-16 stream, little endian") { [0xFF, 0xFE] + utf16(header).flatMap { [$0, $1] } },
        HostileBytes("a UTF-16 stream, big endian") { [0xFE, 0xFF] + utf16(header).flatMap { [$1, $0] } },
        HostileBytes("a UTF-16 stream without a mark") { utf16(header).flatMap { [$0, $1] } },
        HostileBytes("a UTF-32 stream") { utf16(header).flatMap { [0, 0, $1, $0] } },
        HostileBytes("a byte order mark before the header") { [0xEF, 0xBB, 0xBF] + Array(header.utf8) },
        HostileBytes("a header that declares Latin-1") {
            "<?xml version='1.0' encoding='ISO-8859-1'?><stream:stream xmlns='jabber:client'>"
        },
        HostileBytes("a surrogate in UTF-8") { Array(header.utf8) + Array("<a>".utf8) + [0xED, 0xA0, 0x80] },
        HostileBytes("a character cut in half") { Array(header.utf8) + Array("<a>".utf8) + [0xF0, 0x9F] },
    ]

    private static func utf16(_ text: String) -> [(UInt8, UInt8)] {
        text.utf16.map { (UInt8($0 & 0xFF), UInt8($0 >> 8)) }
    }

    /// XML that a stream must not contain, or not at this place.
    private static let markup = [
        HostileBytes("half a header") { "<?xml version='1.0'?><stream:stream xmlns='jabber:cli" },
        HostileBytes("half a declaration") { "<?xml version" },
        HostileBytes("a lone bracket") { "<" },
        HostileBytes("a header that is no stream") { "<html xmlns='http://www.w3.org/1999/xhtml'><body>" },
        HostileBytes("an end before any beginning") { "</stream:stream>" },
        HostileBytes("a billion laughs") {
            let entities = (1...9).map { "<!ENTITY l\($0) '" + String(repeating: "&l\($0 - 1);", count: 10) + "'>" }
            return "<?xml version='1.0'?><!DOCTYPE l [<!ENTITY l0 'ha'>\(entities.joined())]>" + header.dropFirst(21)
                + "<message><body>&l9;</body></message>"
        },
        HostileBytes("an entity that reads a file") {
            "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><stream:stream>&b;"
        },
        HostileBytes("100,000 deep") { header + String(repeating: "<a>", count: 100_000) },
        HostileBytes("100,000 deep, each in a namespace of its own") {
            header + (0..<100_000).map { "<a xmlns='u:\($0)'>" }.joined()
        },
        HostileBytes("100,000 attributes") {
            header + "<a" + (0..<100_000).map { " a\($0)='1'" }.joined() + "/>"
        },
        HostileBytes("10,000 namespace declarations in the header") {
            "<stream:stream" + (0..<10_000).map { " xmlns:a\($0)='u'" }.joined() + ">"
        },
        HostileBytes("tags that close others") { header + "<a><b></a></b></stream:stream>" },
        HostileBytes("a stanza after the end") { header + "</stream:stream><presence/>" },
    ]

    /// Returns items that never end.
    private static func endless(_ large: Int) -> [HostileBytes] {
        [
            HostileBytes("an endless header") { "<stream:stream to='" + String(repeating: "x", count: large) },
            HostileBytes("an endless header of blanks") { "<stream:stream " + String(repeating: " ", count: large) },
            HostileBytes("an endless name") { "<" + String(repeating: "x", count: large) },
            HostileBytes("an endless declaration") { "<?xml version='1.0" + String(repeating: " ", count: large) },
            HostileBytes("an endless comment") { "<!--" + String(repeating: "x", count: large) },
            HostileBytes("endless white space") { String(repeating: " \n\t\r", count: large / 4) },
            HostileBytes("endless text between stanzas") { header + String(repeating: "x", count: large) },
            HostileBytes("a large stanza") {
                header + "<message to='romeo@localhost' id='large'><body>" + String(repeating: "x", count: large)
                    + "</body></message><presence/>"
            },
            HostileBytes("a large stanza of tiny elements") {
                header + "<message>" + String(repeating: "<a/>", count: large / 4) + "</message><presence/>"
            },
            HostileBytes("an endless section") { header + "<a><![CDATA[" + String(repeating: "]]", count: large / 2) },
            HostileBytes("an endless attribute") { header + "<iq id='" + String(repeating: "x", count: large) },
        ]
    }

    /// Too many items, each of which is allowed.
    private static let many = [
        HostileBytes("1,000 headers", items: 2000) { String(repeating: header, count: 1000) },
        HostileBytes("1,000 elements before login", items: 1000) {
            header + String(repeating: "<a xmlns='u'/>", count: 1000)
        },
        HostileBytes("1,000 requests for TLS", items: 1000) {
            header + String(repeating: "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", count: 1000)
        },
        HostileBytes("1,000 answers nobody waits for", items: 1000) {
            header
                + (0..<1000).map { "<iq type='result' id='\($0)' from='a@b/c'/><iq type='error' id='\($0)'/>" }.joined()
        },
    ]
}
