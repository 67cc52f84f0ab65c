import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

/// Tests of stanzas that xmpptap inserts into a session's streams.
@Suite struct InjectionTests {
    private static let ping = "<iq type='get' id='xt-1'><ping xmlns='urn:xmpp:ping'/></iq>"

    private static func harness(_ options: SessionOptions = SessionOptions(level: .trace)) -> SessionHarness {
        var harness = SessionHarness(options: options)
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        return harness
    }

    private static func injection(
        _ item: String,
        to destination: Leg = .server,
        number: UInt64 = 1,
        isRaw: Bool = false,
        swallowsAnswer: Bool = false
    ) -> Injection {
        Injection(Array(item.utf8), to: destination, number: number, isRaw: isRaw, swallowsAnswer: swallowsAnswer)
    }

    // MARK: Random sequences

    @Test(arguments: CheckedInjections.Manner.allCases)
    private func `injected items are sent once and between items, and all other bytes are unchanged`(
        manner: CheckedInjections.Manner
    ) {
        for seed in 0..<300 {
            var random = SeededGenerator(seed: UInt64(seed))
            var session = CheckedInjections(manner, seed: seed)
            for _ in 0..<100 { session.step(using: &random) }
            session.finish()
        }
    }

    // MARK: Position

    @Test(arguments: Leg.allCases) func `an item injected between two items is sent at once`(leg: Leg) {
        var harness = Self.harness()
        let direction = leg.inbound.opposite
        let before = leg == .server ? harness.toServer.count : harness.toClient.count
        harness.inject(Self.injection(" <presence id='p'/>\n", to: leg, number: 7))
        let out = leg == .server ? harness.toServer : harness.toClient
        #expect(String(decoding: out[before...], as: UTF8.self) == "<presence id='p'/>")
        #expect(harness.injected.map(\.number) == [7] && harness.injected.first?.outcome == .sent)
        let records = harness.told.filter { $0.record.origin == .tap }
        #expect(records.count == 1)
        #expect(records.first?.xml == "<presence id='p'/>")
        #expect(records.first?.record.kind == .stanza && records.first?.record.part == .inject)
        #expect(records.first?.record.direction == direction && records.first?.record.leg == leg)
        #expect(records.first?.text(records.first?.record.id) == "p")
        let isCutThrough = harness.session.isCutThrough(direction)
        #expect(isCutThrough && harness.session.isInjecting == false)
        #expect(harness.told(code: "store-and-forward").isEmpty)
    }

    @Test func `an item injected during another one is sent after it, then cut-through resumes`() {
        var harness = Self.harness()
        let before = harness.toServer.count
        harness.send("<message><bo")
        harness.inject(Self.injection("<presence/>"))
        harness.send("dy>a</body></mess")
        #expect(harness.injected.isEmpty)
        harness.send("age><message><body>b")
        harness.send("</body></message>")
        #expect(
            String(decoding: harness.toServer[before...], as: UTF8.self)
                == "<message><body>a</body></message><presence/><message><body>b</body></message>"
        )
        #expect(harness.injected.map(\.outcome) == [.sent])
        let isCutThrough = harness.session.isCutThrough(.send)
        #expect(isCutThrough)
    }

    @Test func `injected items wait for the end of an item over the size limit`() {
        var options = SessionOptions(level: .trace)
        options.limits.itemBytes = 400
        var harness = Self.harness(options)
        let before = harness.toServer.count
        let big = "<message><body>\(String(repeating: "x", count: 2000))</body></message>"
        harness.send(String(big.prefix(700)))
        harness.inject(Self.injection("<presence id='a'/>", number: 1))
        harness.send(String(big.dropFirst(700).prefix(700)))
        harness.inject(Self.injection("<presence id='b'/>", number: 2))
        harness.send(String(big.dropFirst(1400)) + "<presence id='c'/>")
        let items = "<presence id='c'/><presence id='a'/><presence id='b'/>"
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == big + items)
        #expect(harness.closed == nil)
    }

    @Test func `an item over the size limit is forwarded while an answer is pending`() {
        var options = SessionOptions(level: .trace)
        options.limits.itemBytes = 400
        var harness = Self.harness(options)
        let before = harness.toClient.count
        harness.inject(Self.injection(Self.ping, swallowsAnswer: true))
        let big = "<message><body>\(String(repeating: "x", count: 2000))</body></message>"
        for piece in [big.prefix(300), big.dropFirst(300).prefix(600), big.dropFirst(900)] {
            harness.recv(String(piece))
        }
        harness.recv("\(big)<iq type='result' id='xt-1'/><presence/>")
        #expect(String(decoding: harness.toClient[before...], as: UTF8.self) == "\(big)\(big)<presence/>")
        #expect(harness.closed == nil && harness.injected.count == 2)
    }

    // MARK: Answers

    @Test(arguments: [
        "<iq type='result' id='xt-1'/>", "<iq from='juliet@example.org' id='xt-1' type='result'/>",
        "<iq type='error' id='xt-1' from='example.org'><error type='cancel'><service-unavailable "
            + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
    ])
    func `the answer to an injected request is dropped and returned to the caller`(answer: String) throws {
        var harness = Self.harness()
        harness.inject(Self.injection(Self.ping, number: 3, swallowsAnswer: true))
        let before = harness.toClient.count
        harness.wait(5_000_000)
        harness.recv("<presence from='a@example.org'/>\(answer)<presence from='b@example.org'/>")
        #expect(
            String(decoding: harness.toClient[before...], as: UTF8.self)
                == "<presence from='a@example.org'/><presence from='b@example.org'/>"
        )
        // Each read in the test takes one millisecond.
        #expect(
            harness.injected.map(\.outcome) == [.sent, .answered(Array(answer.utf8), roundTrip: 6_000_000)]
        )
        let record = try #require(harness.told.first { $0.record.action != nil }?.record)
        let request = try #require(harness.told.first { $0.record.origin == .tap }?.record)
        #expect(record.action == "dropped" && record.answers == request.sequence && record.roundTrip == 6_000_000)
        let isCutThrough = harness.session.isCutThrough(.recv)
        #expect(isCutThrough && harness.session.isInjecting == false)
    }

    @Test(arguments: [
        "", "from='example.org'", "from='juliet@example.org'", "from='juliet@example.org/balcony'",
        "from='juliet@example.org/balcony' to='juliet@example.org/balcony'",
    ])
    func `the answer to a ping of xmpptap is identified by its id, whatever address it is from`(addresses: String) {
        var harness = Self.harness()
        let id = harness.session.injectedID(1)
        harness.inject(Injection(harness.session.info.ping(.server, id: id), to: .server, swallowsAnswer: true))
        let before = harness.toClient.count
        harness.recv("<iq type='result' id='\(id)' \(addresses)/><presence/>")
        #expect(String(decoding: harness.toClient[before...], as: UTF8.self) == "<presence/>")
        #expect(harness.injected.count == 2)
    }

    @Test func `other stanzas with the id of an injected request are forwarded`() {
        var harness = Self.harness()
        harness.inject(Self.injection(Self.ping, swallowsAnswer: true))
        let before = harness.toClient.count
        let others =
            "<iq type='get' id='xt-1'/><iq type='result' id='xt-2'/><iq type='result' id='xt-1' from='a@example.net'/>"
            + "<message id='xt-1' type='error'/>"
        harness.recv(others)
        #expect(String(decoding: harness.toClient[before...], as: UTF8.self) == others)
        #expect(harness.injected.map(\.outcome) == [.sent])
    }

    @Test func `an injected request times out after 10 s, and its late answer is dropped`() {
        var harness = Self.harness()
        harness.inject(Self.injection(Self.ping, swallowsAnswer: true))
        #expect(harness.session.nextDeadline == harness.now.monotonic + 10_000_000_000)
        harness.wait(9_999_999_999)
        #expect(harness.injected.count == 1)
        harness.wait(1)
        #expect(harness.injected.map(\.outcome) == [.sent, .failed(.noAnswer)])
        #expect(harness.session.nextDeadline == harness.now.monotonic + Injections.lateness)
        let before = harness.toClient.count
        harness.recv("<iq type='result' id='xt-1'/><presence/>")
        #expect(String(decoding: harness.toClient[before...], as: UTF8.self) == "<presence/>")
        #expect(harness.injected.count == 2 && harness.session.isInjecting == false)
    }

    @Test func `an injected request that is never answered is forgotten after a time limit`() {
        var harness = Self.harness()
        harness.inject(Self.injection(Self.ping, swallowsAnswer: true))
        harness.wait(10_000_000_000)
        #expect(harness.session.isInjecting && !harness.session.isCutThrough(.recv))
        harness.wait(Injections.lateness)
        #expect(harness.session.isInjecting == false && harness.session.isCutThrough(.recv))
        #expect(harness.session.nextDeadline == nil)
    }

    @Test func `an answer that is not to be swallowed is forwarded and matched with its request`() throws {
        var harness = Self.harness()
        harness.inject(Self.injection(Self.ping))
        let before = harness.toClient.count
        harness.recv("<iq type='result' id='xt-1'/>")
        #expect(harness.toClient.count > before)
        let request = try #require(harness.told.first { $0.record.origin == .tap }?.record)
        #expect(harness.told.last?.record.answers == request.sequence)
    }

    // MARK: Refusals

    @Test(arguments: [
        ("", InjectionFault.incomplete), (" \n", .incomplete), ("<message>", .incomplete), ("<message", .incomplete),
        ("<message/><presence/>", .severalItems(offset: 10)), ("<message/></stream:stream>", .streamEnd),
        ("</stream:stream>", .streamEnd), ("<?xml version='1.0'?><message/>", .notStanza), ("<x/>", .notStanza),
        ("<message xmlns='jabber:server' to='a@b'/>", .notStanza),
        ("<s:iq xmlns:s='jabber:component:accept' type='get' id='1' to='a@b'/>", .notStanza),
        ("<message xmlns='urn:example:x'/>", .notStanza), ("<r xmlns='urn:xmpp:sm:3'/>", .notStanza),
        ("<stream:error/>", .notStanza),
        ("a<message/>", .malformed(ScanFault(.textOutsideStanza, at: 0))),
        ("<message/>a", .malformed(ScanFault(.textOutsideStanza, at: 10))),
        ("<message></body>", .malformed(ScanFault(.mismatchedTag, at: 9))),
        ("<message><!--a--></message>", .malformed(ScanFault(.comment, at: 9))),
        ("<message><x:a/></message>", .malformed(ScanFault(.unboundPrefix, at: 10))),
    ])
    func `input other than one stanza is refused, and no part of it is sent`(item: String, fault: InjectionFault) {
        for leg in Leg.allCases {
            var harness = Self.harness()
            let before = (harness.toServer.count, harness.toClient.count, harness.told.count)
            harness.inject(Self.injection(item, to: leg))
            #expect(harness.injected.map(\.outcome) == [.failed(fault)])
            #expect(harness.toServer.count == before.0 && harness.toClient.count == before.1)
            #expect(harness.told.count == before.2 && harness.session.isInjecting == false)
        }
    }

    @Test func `invalid addresses and a foreign sender to the server are refused, unless sent raw`() throws {
        var harness = Self.harness()
        let jid = try #require(harness.session.info.jid)
        let bare = String(jid.prefix { $0 != "/" })
        for item in ["<message from='\(jid)'/>", "<message from='\(bare)' to='a@example.net'/>", "<message/>"] {
            harness.inject(Self.injection(item))
        }
        harness.inject(Self.injection("<message from='other@example.net'/>", to: .client))
        #expect(harness.injected.map(\.outcome) == Array(repeating: .sent, count: 4))
        for (item, fault) in [
            ("<message from='other@example.net'/>", InjectionFault.foreignSender("other@example.net", jid: jid)),
            ("<message from='a&apos;b@@c'/>", .notAddress("a'b@@c", attribute: "from")),
            ("<iq type='get' id='1' to='@example.net'/>", .notAddress("@example.net", attribute: "to")),
        ] {
            var harness = Self.harness()
            harness.inject(Self.injection(item))
            #expect(harness.injected.map(\.outcome) == [.failed(fault)])
            var raw = Self.injection(item)
            raw.isRaw = true
            harness.inject(raw)
            #expect(harness.injected.last?.outcome == .sent)
        }
    }

    /// Returns a session with an open stream between servers, whose domain dialback has verified.
    private static func servers() -> SessionHarness {
        let header =
            "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' "
            + "xmlns:db='jabber:server:dialback' version='1.0' "
        var harness = SessionHarness()
        harness.send(header + "from='montague.example' to='capulet.example'>")
        harness.recv(header + "from='capulet.example' to='montague.example' id='1'><stream:features/>")
        harness.send("<db:result from='montague.example' to='capulet.example'>b4835385</db:result>")
        harness.recv("<db:result from='capulet.example' to='montague.example' type='valid'/>")
        return harness
    }

    private static func component() -> SessionHarness {
        var harness = SessionHarness()
        harness.say(Conversations.component)
        return harness
    }

    @Test(arguments: [true, false]) func `stanzas of servers and components need both addresses and their own domain`(
        isComponent: Bool
    ) throws {
        let own = isComponent ? "plays.example.org" : "montague.example"
        func harness() -> SessionHarness { isComponent ? Self.component() : Self.servers() }
        for (item, fault) in [
            ("<message to='a@capulet.example'/>", InjectionFault.noAddress(attribute: "from")),
            ("<message from='r@\(own)'/>", .noAddress(attribute: "to")),
            ("<message from='r@\(own)' to='a@b@c'/>", .notAddress("a@b@c", attribute: "to")),
            ("<message from='r@x.example' to='a@capulet.example'/>", .foreignDomain("r@x.example", domain: own)),
        ] {
            var harness = harness()
            let before = harness.toServer.count
            harness.inject(Self.injection(item))
            #expect(harness.injected.map(\.outcome) == [.failed(fault)] && harness.toServer.count == before)
            harness.inject(Self.injection(item, isRaw: true))
            #expect(harness.injected.last?.outcome == .sent)
        }
        var fine = harness()
        fine.inject(Self.injection("<message from='r@\(own.uppercased())/x' to='a@capulet.example'/>"))
        // The sender of a stanza to a component, or to the first server, is not checked.
        fine.inject(Self.injection("<message from='any@where.example' to='r@\(own)'/>", to: .client))
        fine.inject(Self.injection("<message from='any@where.example'/>", to: .client))
        fine.inject(
            Self.injection("<presence from='any@where.example' to='r@\(own)' type='x'/>", to: .client, number: 9)
        )
        #expect(
            fine.injected.map(\.outcome) == [.sent, .sent, .failed(.noAddress(attribute: "to")), .sent]
        )
        for leg in Leg.allCases {
            let peer = try JID(parsing: "a@capulet.example")
            fine.inject(Injection(fine.session.info.ping(leg, id: "p"), to: leg))
            fine.inject(Injection(fine.session.info.message("hello", to: leg, peer: peer, id: "m"), to: leg))
        }
        #expect(fine.injected.suffix(4).map(\.outcome) == Array(repeating: .sent, count: 4))
    }

    @Test func `a server can send for another domain after dialback has verified it`() {
        var harness = Self.servers()
        let item = "<message from='r@verona.example' to='a@capulet.example'/>"
        harness.inject(Self.injection(item))
        harness.send("<db:result from='verona.example' to='capulet.example'>c4835385</db:result>")
        harness.recv("<db:result from='capulet.example' to='verona.example' type='valid'/>")
        harness.inject(Self.injection(item))
        #expect(
            harness.injected.map(\.outcome)
                == [.failed(.foreignDomain("r@verona.example", domain: "montague.example")), .sent]
        )
    }

    @Test func `the ids of different runs have different random prefixes`() {
        let prefixes = (0..<100).map { _ in Run().idPrefix }
        #expect(Set(prefixes).count == 100)
        // A prefix of 96 random bits is very unlikely to be short.
        #expect(prefixes.allSatisfy { $0.hasPrefix("xt-") && $0.utf8.count > 10 && $0.utf8.count <= 3 + 13 + 7 })
    }

    @Test func `an injected stanza can use the namespace prefixes of its stream`() {
        var harness = SessionHarness()
        harness.say(
            Conversations.plainLogin.prefix(10).map {
                (
                    $0.direction,
                    $0.text.replacing("xmlns:stream='http", with: "xmlns:x='urn:example:x' xmlns:stream='http")
                )
            }
        )
        harness.inject(Self.injection("<message><x:a/></message>"))
        harness.inject(Self.injection("<message xmlns='jabber:client'/>", to: .client))
        #expect(harness.injected.map(\.outcome) == [.sent, .sent])
    }

    @Test func `a stanza larger than the server's announced limit is refused`() {
        var harness = SessionHarness(options: SessionOptions(level: .trace))
        harness.say(
            Conversations.plainLogin.prefix(10).map {
                let limit = $0.text.contains("<bind xmlns") ? 100 : 40
                let limits = "<limits xmlns='urn:xmpp:stream-limits:0'><max-bytes>\(limit)</max-bytes></limits>"
                return ($0.direction, $0.text.replacing("</stream:features>", with: limits + "</stream:features>"))
            }
        )
        func item(_ count: Int) -> String {
            "<message><body>\(String(repeating: "x", count: count - 32))</body></message>"
        }
        for (count, leg, isRaw) in [
            (101, Leg.server, false), (100, .server, false), (101, .client, false), (101, .server, true),
        ] {
            harness.inject(Self.injection(item(count), to: leg, isRaw: isRaw))
        }
        #expect(harness.injected.map(\.outcome) == [.failed(.overReceiverLimit(100, .server)), .sent, .sent, .sent])
        #expect(
            InjectionFault.overReceiverLimit(100, .server).description
                == "it is larger than 100 bytes, the most that the server accepts in a stanza (XEP-0478)"
        )
    }

    @Test func `a stanza that is not a request cannot await an answer`() {
        for item in ["<message id='a'/>", "<iq type='result' id='a'/>", "<iq type='get'/>"] {
            var harness = Self.harness()
            harness.inject(Self.injection(item, swallowsAnswer: true))
            #expect(harness.injected.map(\.outcome) == [.failed(.notRequest)])
        }
    }

    @Test func `the size limits of one injected item and of all waiting ones are enforced`() {
        var options = SessionOptions(level: .trace)
        options.limits.itemBytes = 400
        options.injectedBytes = 600
        var harness = Self.harness(options)
        harness.send("<message><bo")
        func item(_ count: Int) -> String { "<message><body>\(String(repeating: "x", count: count))</body></message>" }
        harness.inject(Self.injection(item(400)))
        #expect(harness.injected.map(\.outcome) == [.failed(.tooLarge(limit: 400))])
        for _ in 0..<3 { harness.inject(Self.injection(item(200))) }
        #expect(harness.injected.dropFirst().map(\.outcome) == [.failed(.tooManyWaiting(limit: 600))])
        harness.send("dy/></message>")
        #expect(harness.injected.count(where: { $0.outcome == .sent }) == 2)
    }

    @Test func `the number of pending injected requests is limited`() {
        var harness = Self.harness()
        for number in 0...Injections.capacity {
            harness.inject(
                Self.injection("<iq type='get' id='xt-\(number)'/>", number: UInt64(number), swallowsAnswer: true)
            )
        }
        #expect(harness.injected.last?.outcome == .failed(.tooManyWaiting(limit: Injections.capacity)))
        #expect(harness.injected.count == Injections.capacity + 1)
    }

    @Test func `an injection fails if the current item does not end within 10 s`() {
        var harness = Self.harness()
        harness.send("<message><bo")
        harness.inject(Self.injection("<presence/>"))
        harness.wait(10_000_000_000)
        #expect(harness.injected.map(\.outcome) == [.failed(.noBoundary)])
        let before = harness.toServer.count
        harness.send("dy/></message>")
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == "dy/></message>")
        let isCutThrough = harness.session.isCutThrough(.send)
        #expect(isCutThrough && harness.session.isInjecting == false)
    }

    @Test func `an injection before the session is open fails`() {
        for count in 0..<10 {
            var harness = SessionHarness()
            harness.say(Array(Conversations.plainLogin.prefix(count)))
            harness.inject(Self.injection("<presence/>"))
            #expect(harness.injected.map(\.outcome) == [.failed(.notOpen)], "\(count)")
        }
    }

    @Test func `an injection after the end of a stream fails`() {
        var closing = Self.harness()
        closing.send("</stream:stream>")
        closing.inject(Self.injection("<presence/>"))
        closing.inject(Self.injection("<presence/>", to: .client))
        #expect(closing.injected.map(\.outcome) == [.failed(.ended), .sent])

        var ended = Self.harness()
        ended.end(.client)
        ended.inject(Self.injection("<presence/>"))
        ended.inject(Self.injection("<presence/>", to: .client))
        ended.inject(Self.injection(Self.ping, to: .client, swallowsAnswer: true))
        #expect(ended.injected.map(\.outcome) == [.failed(.ended), .sent, .failed(.ended)])
        ended.end(.server, .reset)
        ended.inject(Self.injection("<presence/>", to: .client))
        #expect(ended.injected.last?.outcome == .failed(.ended))
    }

    @Test func `pending injections fail when the session ends`() {
        var harness = Self.harness()
        harness.inject(Self.injection(Self.ping, number: 1, swallowsAnswer: true))
        harness.send("<message><bo")
        harness.inject(Self.injection("<presence/>", number: 2))
        harness.end(.server)
        harness.end(.client)
        #expect(harness.injected.map(\.number).sorted() == [1, 1, 2])
        #expect(harness.injected.count(where: { $0.outcome == .failed(.ended) }) == 2)
        #expect(harness.session.isInjecting == false)
    }

    @Test func `an injection fails if the stream cannot be decoded`() {
        var harness = Self.harness()
        harness.send("<message><bo")
        harness.inject(Self.injection("<presence/>"))
        harness.send("</message>")
        harness.inject(Self.injection("<presence/>"))
        #expect(harness.injected.map(\.outcome) == [.failed(.notDecoded), .failed(.notDecoded)])
    }

    // MARK: Raw bytes

    @Test(arguments: [
        "<message><unclosed", "</stream:stream>", "<a xmlns='urn:xmpp:sm:3' h='9'/>", " \n", "a",
        "<presence/><message/>",
        "<message></body>", "\u{1}",
    ])
    func `raw bytes are sent unchanged between two items and recorded without content`(bytes: String) throws {
        for leg in Leg.allCases {
            var harness = Self.harness()
            let before = leg == .server ? harness.toServer.count : harness.toClient.count
            let (partial, rest) = ("<message><bo", "dy/></message>")
            leg == .server ? harness.send(partial) : harness.recv(partial)
            harness.inject(Self.injection(bytes, to: leg, isRaw: true))
            #expect(harness.injected.isEmpty)
            leg == .server ? harness.send(rest) : harness.recv(rest)
            let out = leg == .server ? harness.toServer : harness.toClient
            #expect(String(decoding: out[before...], as: UTF8.self) == partial + rest + bytes)
            #expect(harness.injected.map(\.outcome) == [.sent])
            let record = try #require(harness.told.last { $0.record.origin == .tap }).record
            #expect(record.kind == .bytes && record.code == "raw" && record.part == .inject && record.leg == leg)
            #expect(record.length == UInt64(bytes.utf8.count) && record.bytes == nil && record.xml == nil)
            #expect(harness.closed == nil)
        }
    }

    @Test func `a complete stanza in raw bytes is recorded as a stanza and can be answered`() throws {
        var harness = Self.harness()
        let before = harness.toServer.count
        harness.inject(Self.injection(" \(Self.ping)\n", isRaw: true, swallowsAnswer: true))
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == " \(Self.ping)\n")
        let record = try #require(harness.told.last { $0.record.origin == .tap })
        #expect(record.record.kind == .stanza && record.xml == Self.ping)
        harness.recv("<iq type='result' id='xt-1'/>")
        guard case .answered(_, _)? = harness.injected.last?.outcome else {
            Issue.record("no answer: \(harness.injected)")
            return
        }
    }

    @Test func `raw bytes are refused if too large, empty, or sent before the session is open`() {
        var options = SessionOptions(level: .trace)
        options.limits.itemBytes = 400
        var harness = Self.harness(options)
        harness.inject(Self.injection(String(repeating: "x", count: 401), isRaw: true))
        harness.inject(Self.injection("", isRaw: true))
        harness.inject(Self.injection("<message/><message/>", isRaw: true, swallowsAnswer: true))
        #expect(
            harness.injected.map(\.outcome)
                == [.failed(.tooLarge(limit: 400)), .failed(.incomplete), .failed(.notRequest)]
        )
        var early = SessionHarness()
        early.inject(Self.injection("<message/>", isRaw: true))
        #expect(early.injected.map(\.outcome) == [.failed(.notOpen)])
    }

    @Test func `secrets in an injected stanza are not recorded`() {
        var harness = Self.harness()
        harness.inject(
            Self.injection(
                "<iq type='set' id='r'><query xmlns='jabber:iq:register'><password>r0m30</password></query></iq>"
            )
        )
        let record = harness.told.first { $0.record.origin == .tap }
        #expect(record?.xml?.contains("r0m30") == false && record?.text(record?.record.id) == "r")
        #expect(String(decoding: harness.toServer, as: UTF8.self).contains("r0m30"))
    }
}

/// An open session with random injections, together with a simple model of the expected output.
private struct CheckedInjections: ~Copyable {
    /// The relay mode of the session.
    enum Manner: CaseIterable {
        /// Cut-through, with some items larger than the limit.
        case cutThrough
        /// Alternating modes, with directions that are sometimes held.
        case mixed
        /// Always store-and-forward.
        case stored
    }

    private static let limit = 400

    private var session: Session
    private let manner: Manner
    private let seed: Int
    private var now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
    private var number: UInt64 = 0

    private var output: [[UInt8]] = [[], []]
    /// The items that were generated, except answers to injections.
    private var items: [[[UInt8]]] = [[], []]
    /// The generated bytes that were not passed to the session yet.
    private var coming: [ArraySlice<UInt8>] = [[], []]
    /// The answers that are still to be sent, by direction.
    private var answers: [[String]] = [[], []]
    private var injected: [[[UInt8]]] = [[], []]
    /// The requests with answers that are not forwarded, with their direction.
    private var asked: [UInt64: Direction] = [:]
    private var sent = 0
    private var answered = 0
    private var recorded: [String] = []
    private var dropped = 0

    init(_ manner: Manner, seed: Int) {
        var options = SessionOptions(level: .verbose, redaction: .none)
        options.limits.itemBytes = Self.limit
        options.onUnparsable = manner == .stored ? .close : .relay
        self.manner = manner
        self.seed = seed
        session = Session(
            run: Run(),
            options: options,
            tools: SessionTools(run: Run(), redaction: options.redaction),
            remote: nil,
            upstream: "127.0.0.1:5222",
            at: now
        )
        session.handle(.connected("127.0.0.1:5222"), at: now)
        for turn in Conversations.plainLogin.prefix(10) {
            _ = session.receive(turn.direction, Array(turn.text.utf8).span, at: now)
            perform()
        }
        output = [[], []]
    }

    mutating func step(using random: inout SeededGenerator) {
        let direction = Bool.random(using: &random) ? Direction.send : .recv
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1: inject(direction, using: &random)
        case 2 where manner == .mixed: session.sharedState.storeAndForward(direction)
        case 3 where manner != .cutThrough: session.sharedState.hold(direction)
        case 4, 5: session.sharedState.release(direction)
        default: read(direction, using: &random)
        }
        // Sometimes received data stays unprocessed until the next event.
        if Bool.random(using: &random) { perform() }
    }

    private mutating func inject(_ direction: Direction, using random: inout SeededGenerator) {
        number += 1
        let swallows = Bool.random(using: &random)
        let item =
            swallows
            ? "<iq type='get' id='xt-\(number)' to='example.org'/>"
            : "<message id='xt-\(number)'><body>é</body></message>"
        let injection = Injection(
            Array(item.utf8),
            to: direction.destination,
            number: number,
            swallowsAnswer: swallows
        )
        session.handle(.inject(injection), at: now)
        injected[Int(direction.rawValue)].append(Array(item.utf8))
        if swallows { asked[number] = direction }
    }

    private mutating func read(_ direction: Direction, using random: inout SeededGenerator) {
        let side = Int(direction.rawValue)
        if coming[side].isEmpty { make(direction, using: &random) }
        take(direction, Int.random(in: 1...max(1, min(coming[side].count, 60)), using: &random))
    }

    private mutating func take(_ direction: Direction, _ count: Int) {
        let side = Int(direction.rawValue)
        let bytes = Array(coming[side].prefix(count))
        coming[side] = coming[side].dropFirst(count)
        if session.receive(direction, bytes.span, at: now) == .relay { output[side] += bytes }
    }

    private mutating func make(_ direction: Direction, using random: inout SeededGenerator) {
        let side = Int(direction.rawValue)
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let item: String
            switch Int.random(in: 0..<6, using: &random) {
            case 0: item = " "
            case 1: item = "<r xmlns='urn:xmpp:sm:3'/>"
            case 2: item = "<iq type='result' id='xt-\(number)' from='other@example.net'/>"
            case 3 where manner == .cutThrough:
                let length = Int.random(in: Self.limit..<(3 * Self.limit), using: &random)
                item = "<message><body>\(String(repeating: "x", count: length))</body></message>"
            case 4 where !answers[side].isEmpty:
                bytes += Array(answers[side].removeFirst().utf8)
                continue
            default:
                let body = String(repeating: "é", count: .random(in: 0..<90, using: &random))
                item = "<message><body>\(body)</body></message>"
            }
            items[side].append(Array(item.utf8))
            bytes += Array(item.utf8)
        }
        coming[side] = bytes[...]
    }

    private mutating func perform() {
        while let command = session.next() {
            switch command {
            case .forward(let direction): output[Int(direction.rawValue)].append(session.content)
            case .send(let leg, let bytes): output[Int(leg.inbound.opposite.rawValue)] += bytes
            case .record(let redacted):
                let record = redacted.record
                if record.origin == .tap, let xml = record.xml { recorded.append(session.content.slice(xml).string()) }
                if record.action != nil { dropped += 1 }
            case .injected(let number, .sent):
                sent += 1
                // The peer answers each request that it receives.
                guard let direction = asked[number] else { continue }
                let from = direction == .send ? " from='example.org'" : ""
                answers[Int(direction.opposite.rawValue)].append("<iq type='result' id='xt-\(number)'\(from)/>")
            case .injected(_, .answered): answered += 1
            case .injected(let number, .failed(let fault)): Issue.record("seed \(seed): \(number) failed: \(fault)")
            default: break
            }
        }
    }

    /// Passes all items and answers to the session, releases both directions, and checks that everything was sent.
    mutating func finish() {
        for _ in 0..<2 {
            for direction in Direction.allCases {
                let side = Int(direction.rawValue)
                take(direction, coming[side].count)
                session.sharedState.release(direction)
                perform()
                coming[side] = Array(answers[side].joined().utf8)[...]
                answers[side] = []
                take(direction, coming[side].count)
                perform()
            }
        }
        for direction in Direction.allCases { check(direction) }
        let all = injected[0] + injected[1]
        #expect(sent == all.count && answered == asked.count && dropped == asked.count, "seed \(seed), \(manner)")
        let isRecorded = recorded.sorted() == all.map { String(decoding: $0, as: UTF8.self) }.sorted()
        #expect(isRecorded, "seed \(seed), \(manner)")
        #expect(session.isInjecting == false, "seed \(seed), \(manner)")
    }

    /// Checks that the output contains all received data, with injections only between items.
    private func check(_ direction: Direction) {
        let side = Int(direction.rawValue)
        var rest = output[side][...]
        var items = items[side][...]
        var injected = injected[side][...]
        while !rest.isEmpty {
            if let next = injected.first, rest.starts(with: next) {
                rest = rest.dropFirst(next.count)
                injected = injected.dropFirst()
            } else if let next = items.first, rest.starts(with: next) {
                rest = rest.dropFirst(next.count)
                items = items.dropFirst()
            } else {
                break
            }
        }
        let isRight = rest.isEmpty && items.isEmpty && injected.isEmpty
        #expect(
            isRight,
            "seed \(seed), \(manner), \(direction): \(rest.count) bytes, \(items.count) items, \(injected.count) injected left"
        )
    }
}
