import Foundation
import TapCore
import TapRecord
import TapSecurity
import TapTestKit
import Testing
import XMPPCore

@testable import TapStore

/// Avatars and vCards: which are read from stanzas, and how a store keeps them.
struct AvatarTests {
    private static let (juliet, romeo) = ("juliet@example.org", "romeo@example.org")
    private static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + Array(0...99)
    private static func sha1(_ bytes: [UInt8]) throws -> [UInt8] {
        try OpenSSLCryptography().digest(.sha1, of: bytes.span)
    }

    private static let card = "<FN>Romeo &amp; Co</FN><N><FAMILY>Montague</FAMILY></N>"

    /// Returns the record of a stanza in a session of Juliet, as a log has it.
    private static func line(
        _ xml: String,
        _ direction: Direction,
        from: String? = nil,
        to: String? = nil
    ) throws -> RecordLine {
        let xml = xml.replacing("\"", with: "'")
        let element = try #require(elementReader(xml))
        let type = element.attribute("type").map { #","type":"\#($0)""# } ?? ""
        let payload = element.firstChild.map { #","payload":"{\#($0.namespaceURI)}\#($0.name)""# } ?? ""
        let ends = [("from", from), ("to", to)].map { name, address in address.map { #","\#(name)":"\#($0)""# } ?? "" }
        let json =
            #"{"sequence":1,"time":"2026-11-21T17:22:42.102000000Z","monotonic":1,"level":"info","kind":"stanza","session":1,"#
            + #""jid":"\#(juliet)/x","direction":"\#(direction)","name":"\#(element.name)"\#(type)\#(payload)\#(ends.joined()),"#
            + #""xml":"\#(xml.replacing("\n", with: "\\n"))"}"#
        return try RecordLine(json: Array(json.utf8).span.bytes)
    }

    private static func elementReader(_ xml: String) -> Element? {
        var reader = ElementReader()
        return reader.read(Array(xml.utf8).span)
    }

    private static func profiles(
        _ xml: String,
        _ direction: Direction,
        from: String? = nil,
        to: String? = nil
    ) throws -> [AuditProfile] {
        var content = StoredContent()
        content.includesAvatars = true
        let line = try line(xml, direction, from: from, to: to)
        #expect(AuditRowMaker(run: "run").row(line)?.profiles == [])
        return try #require(AuditRowMaker(run: "run", content: content).row(line)).profiles
    }

    private static func item(_ picture: [UInt8], id: String? = nil) throws -> String {
        let hash = try sha1(picture).hexadecimal
        return "<item id='\(id ?? hash)'><data xmlns='urn:xmpp:avatar:data'>\(Base64.encode(picture))</data></item>"
    }

    private static func pubsub(_ type: String, _ node: String, _ item: String) -> String {
        "<iq type='\(type)' id='1'><pubsub xmlns='http://jabber.org/protocol/pubsub'><\(node) node='urn:xmpp:avatar:data'>"
            + "\(item)</\(node)></pubsub></iq>"
    }

    private static func event(_ item: String, type: String = "headline") -> String {
        "<message type='\(type)'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='urn:xmpp:avatar:data'>"
            + "\(item)</items></event></message>"
    }

    private static func vCard(_ type: String, _ content: String) -> String {
        "<iq type='\(type)' id='1'><vCard xmlns='vcard-temp'>\(content)</vCard></iq>"
    }

    private static func photo(_ base64: String) -> String {
        "<PHOTO><TYPE>image/svg+xml</TYPE><BINVAL>\(base64)</BINVAL></PHOTO>"
    }

    @Test("An avatar belongs to the sender of an answer or event, and to the account that publishes it")
    func readsAvatars() throws {
        let item = try Self.item(Self.png)
        func owners(_ xml: String, _ direction: Direction, from: String? = nil, to: String? = nil) throws -> [String] {
            try Self.profiles(xml, direction, from: from, to: to).map { profile in
                #expect(profile.content == .picture(Self.png) && profile.hash.count == 20)
                return profile.contact
            }
        }
        #expect(try owners(Self.pubsub("set", "publish", item), .send) == [Self.juliet])
        #expect(try owners(Self.pubsub("set", "publish", item), .send, to: Self.juliet) == [Self.juliet])
        #expect(try owners(Self.pubsub("result", "items", item), .recv, from: Self.romeo) == [Self.romeo])
        #expect(try owners(Self.pubsub("result", "items", item), .recv) == [Self.juliet])
        #expect(try owners(Self.event(item), .recv, from: Self.romeo) == [Self.romeo])
        #expect(try owners(Self.pubsub("result", "items", item + item), .recv).count == 2)
        // The server may refuse what a client publishes for others; others must not answer or publish by requests.
        #expect(try owners(Self.pubsub("set", "publish", item), .send, to: Self.romeo) == [])
        #expect(try owners(Self.pubsub("set", "publish", item), .recv, from: Self.romeo) == [])
        #expect(try owners(Self.pubsub("result", "items", item), .send) == [])
        #expect(try owners(Self.pubsub("error", "publish", item), .recv) == [])
        #expect(try owners(Self.event(item, type: "error"), .recv, from: Self.romeo) == [])
        #expect(try owners(Self.event(item), .send, to: Self.romeo) == [])
    }

    @Test("A picture with another hash than its item's id, malformed, empty or larger than 1 MB is not kept")
    func refusesPictures() throws {
        func count(_ item: String) throws -> Int {
            try Self.profiles(Self.pubsub("result", "items", item), .recv, from: Self.romeo).count
        }
        #expect(try count(Self.item(Array(repeating: 7, count: 1_000_000))) == 1)
        #expect(try count(Self.item(Self.png, id: Self.sha1(Self.png).hexadecimal.uppercased())) == 1)
        #expect(try count(Self.item(Array(repeating: 7, count: 1_000_001))) == 0)
        #expect(try count(Self.item(Array(repeating: 7, count: 3_000_000))) == 0)
        #expect(try count(Self.item([])) == 0)
        #expect(try count(Self.item(Self.png, id: "current")) == 0)
        #expect(try count(Self.item(Self.png).replacing("</data>", with: "*</data>")) == 0)
        #expect(try count("<item><data xmlns='urn:xmpp:avatar:data'>AAAA</data></item>") == 0)
        for data in ["A", "=", "AAAA=", "iVBOR", "\u{FFFD}", "AA==AA=="] {
            let photo = try Self.profiles(Self.vCard("result", Self.photo(data)), .recv)
            #expect(photo.count == 1, "only the vCard, of \(data)")
        }
    }

    @Test(
        "Of a vCard, the photo is a picture, and the XML is kept without it, whatever the form in which it is written"
    )
    func readsCards() throws {
        let base64 = Base64.encode(Self.png)
        let broken = base64.prefix(60) + "\n  " + base64.dropFirst(60)
        let found = try Self.profiles(
            Self.vCard("result", Self.card + Self.photo(String(broken))),
            .recv,
            from: "Romeo@Example.org"
        )
        #expect(found.map(\.contact) == [Self.romeo, Self.romeo])
        #expect(
            found.map(\.content) == [
                .picture(Self.png),
                .vCard("<vCard xmlns='vcard-temp'>\(Self.card)<PHOTO><TYPE>image/svg+xml</TYPE></PHOTO></vCard>"),
            ]
        )
        #expect(found.map(\.hash.count) == [20, 32])
        let prefixed = "<iq type='set' id='1' xmlns:v='vcard-temp'><v:vCard><v:FN>Juliet</v:FN></v:vCard></iq>"
        let plain = try Self.profiles(Self.vCard("set", "<FN>Juliet</FN>"), .send)
        #expect(try Self.profiles(prefixed, .send) == plain && plain.count == 1 && plain[0].contact == Self.juliet)
        // An occupant of a room is not the room.
        let occupant = "hall@rooms.example.org/Romeo"
        #expect(try Self.profiles(Self.vCard("result", Self.card), .recv, from: occupant).map(\.contact) == [occupant])
        #expect(try Self.profiles(Self.vCard("result", ""), .recv) == [])
        #expect(try Self.profiles(Self.vCard("result", "<N>  <FAMILY/></N>"), .recv) == [])
        let requested = "<iq type='get' id='1'><vCard xmlns='vcard-temp'/></iq>"
        #expect(try Self.profiles(requested, .send, to: Self.romeo) == [])

        let card4 =
            "<vcard xmlns='urn:ietf:params:xml:ns:vcard-4.0'><fn><text>Romeo</text></fn><photo><uri>data:image/png;base64,"
        let rest = "</uri></photo></vcard>"
        for xml in [
            "<iq type='result' id='1'>\(card4)\(base64)\(rest)</iq>",
            Self.pubsub("result", "items", "<item id='current'>\(card4)\(base64)\(rest)</item>"),
            Self.event("<item>\(card4)\(base64)\(rest)</item>"),
        ] {
            let found = try Self.profiles(xml, .recv, from: Self.romeo)
            #expect(found.map(\.content) == [.picture(Self.png), .vCard(card4 + rest)])
        }
    }

    @Test("With redacted texts, nothing is kept; a redacted key leaves the rest of a vCard")
    func keepsNothingRedacted() throws {
        let stanzas = [
            (Self.pubsub("result", "items", try Self.item(Self.png)), 1), (Self.event(try Self.item(Self.png)), 1),
            (Self.vCard("result", "\(Self.card)\(Self.photo(Base64.encode(Self.png)))<KEY>secret</KEY>"), 2),
            (
                "<iq type='result' id='1'><vcard xmlns='urn:ietf:params:xml:ns:vcard-4.0'><fn><text>R</text></fn></vcard></iq>",
                1
            ),
        ]
        for (xml, count) in stanzas {
            for policy in [RedactionPolicy.none, .secrets, .bodies, .metadata] {
                let redactor = Redactor(policy: policy, registry: SecretRegistry())
                var shown = xml
                if case .redacted(let redaction) = redactor.disclose(item: Array(xml.utf8).span) {
                    shown = String(decoding: redaction.bytes, as: UTF8.self)
                }
                let found = try Self.profiles(shown, .recv, from: Self.romeo)
                #expect(found.count == (policy.hidesTexts ? 0 : count), "\(policy): \(shown)")
                guard policy == .secrets else { continue }
                #expect(!found.contains { "\($0.content)".contains("[redacted") || "\($0.content)".contains("secret") })
            }
        }
    }

    @Test("Damaged, cut and deeply nested stanzas do no harm")
    func survivesHostileStanzas() throws {
        var reader = ProfileReader()
        let deep = String(repeating: "<N>", count: 100_000) + "x" + String(repeating: "</N>", count: 100_000)
        #expect(reader.read(Array(Self.vCard("result", deep).utf8).span, of: "a").isEmpty)
        var random = SeededGenerator(seed: 11)
        let stanzas = [
            Self.pubsub("result", "items", try Self.item(Self.png)),
            Self.vCard("result", Self.card + Self.photo(Base64.encode(Self.png))),
        ]
        for _ in 0..<20_000 {
            var bytes = Array((stanzas.randomElement(using: &random) ?? "").utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = .random(in: 0...255, using: &random)
                case 1: bytes.removeSubrange(place...)
                default: bytes.insert(contentsOf: bytes[..<place], at: place)
                }
                if bytes.isEmpty { bytes = [0x3C] }
            }
            _ = reader.read(bytes.span, of: "a")
        }
        #expect(reader.read([UInt8]().span, of: "a").isEmpty)
    }

    @Test("The type of a picture is that of its first bytes, and SVG has none")
    func findsTypes() {
        let heads: [(PictureType, [UInt8])] = [
            (.png, Self.png), (.jpeg, [0xFF, 0xD8, 0xFF, 0xE0]), (.gif, Array("GIF89a...".utf8)),
            (.webP, Array("RIFF\u{1}\u{2}\u{3}\u{4}WEBPVP8 ".utf8)), (.other, Array("<svg xmlns=".utf8)),
            (.other, Array("RIFF    WAVE".utf8)), (.other, [0x89]), (.other, []),
        ]
        for (type, head) in heads { #expect(PictureType(head) == type) }
    }

    // MARK: In a store

    /// Returns the row of an iq with profiles.
    private static func row(_ sequence: UInt64, _ profiles: [AuditProfile], after seconds: Int64) -> AuditRow {
        var row = TestRow.message("", sequence: sequence, after: seconds)
        (row.kind, row.body, row.profiles) = (.iq, nil, profiles)
        return row
    }

    @Test("A picture is stored once, with its contacts and times, until the last of them is too old")
    func storesAvatars() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let store = try SQLiteStore.create(path)
        func picture(_ contact: String, _ bytes: [UInt8]) throws -> AuditProfile {
            AuditProfile(contact: contact, content: .picture(bytes), hash: try Self.sha1(bytes))
        }
        let day: Int64 = 86_400
        let card = AuditProfile(contact: Self.romeo, content: .vCard("<vCard/>"), hash: [1])
        let many = try (0..<200).map { try picture("nurse@example.org", [UInt8($0), 1]) }
        let rows = [
            Self.row(1, [try picture(Self.romeo, Self.png), card], after: 2 * day),
            // A recording that is added later.
            Self.row(2, [try picture(Self.romeo, Self.png)], after: 0),
            Self.row(3, [try picture(Self.juliet, Self.png)], after: 4 * day), Self.row(4, many, after: 10),
        ]
        for _ in 0..<2 {
            for row in rows { try store.add(.stanza(row)) }
            try store.commit()
        }
        let start = TestRow.message("").time.nanoseconds
        func avatars() throws -> [StoredAvatar] {
            try SQLiteStore.open(path).avatars().filter { $0.contact != "nurse@example.org" }
        }
        func times(_ avatar: StoredAvatar) -> [Int64] {
            [avatar.first, avatar.last].map { ($0.nanoseconds - start) / 1_000_000_000 / day }
        }
        #expect(try avatars().map(\.contact) == [Self.juliet, Self.romeo])
        #expect(try avatars().map(times) == [[4, 4], [0, 2]])
        #expect(try avatars().allSatisfy { $0.type == .png && $0.size == Self.png.count })
        let overview = try store.overview()
        #expect(overview.pictures == 201 && overview.vCards == 1 && overview.stanzas == 4)
        var query = SearchQuery(words: "")
        query.kinds = [.iq]
        let read = try store.rows(for: query)
        #expect(read.count == 4 && read.allSatisfy { $0.profiles.isEmpty })

        func retain(days: Int64) throws {
            let now = Timestamp(nanoseconds: start + 5 * day * 1_000_000_000)
            while try store.retain(StoreLimit(age: .seconds(days * day)), at: now) {}
        }
        try retain(days: 4)
        #expect(try avatars().count == 2)
        #expect(try store.overview().pictures == 1 && store.overview().vCards == 1)
        try store.vacuum()
        #expect(try avatars().map(\.contact) == [Self.juliet, Self.romeo])
        try retain(days: 2)
        #expect(try avatars().map(\.contact) == [Self.juliet] && store.overview().vCards == 0)
        let hash = try #require(try avatars().first).hash
        #expect(try store.picture(hash) == Self.png)
        try retain(days: 0)
        #expect(try avatars() == [] && store.picture(hash) == nil && store.overview().pictures == 0)
        #expect(try store.faults() == [])
    }

    @Test("The avatar in a record is the same after the queue of a running proxy")
    func passesTheQueue() throws {
        let line = try Self.line(Self.pubsub("set", "publish", try Self.item(Self.png)), .send)
        let bytes = QueuedRecord.encode(line.record, line.content.span)
        var content = StoredContent()
        content.includesAvatars = true
        let maker = AuditRowMaker(run: "run", content: content)
        var entry: AuditEntry?
        QueuedRecord.decode(bytes.span) { entry = maker.entry($0, content: $1) }
        #expect(entry == maker.entry(line))
        guard case .stanza(let row) = entry else { return #expect(Bool(false)) }
        #expect(row.profiles.map(\.content) == [.picture(Self.png)])
    }
}
