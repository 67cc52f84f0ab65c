import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private let sm = "xmlns='urn:xmpp:sm:3'"

/// Tests of sessions with stream management (XEP-0198) in which xmpptap injects and drops stanzas.
@Suite struct StreamManagementTests {
    /// An open session, and its traffic since stream management was requested.
    struct Scene: ~Copyable {
        var harness: SessionHarness
        private var before = (0, 0)

        init(
            _ options: SessionOptions = SessionOptions(level: .trace),
            enabled: String = "<enabled \(sm) id='i1' resume='true'/>"
        ) {
            harness = SessionHarness(options: options)
            harness.say(Array(Conversations.plainLogin.prefix(10)))
            harness.send("<enable \(sm) resume='true'/>")
            before = (harness.toServer.count, harness.toClient.count)
            harness.recv(enabled)
        }

        /// Sends data of the client; returns the data that the server receives.
        mutating func send(_ text: String) -> String {
            let start = harness.toServer.count
            harness.send(text)
            return String(decoding: harness.toServer[start...], as: UTF8.self)
        }

        /// Sends data of the server; returns the data that the client receives.
        mutating func recv(_ text: String) -> String {
            let start = harness.toClient.count
            harness.recv(text)
            return String(decoding: harness.toClient[start...], as: UTF8.self)
        }

        /// Injects a ping. Its answer is not forwarded.
        mutating func ping(_ leg: Leg, _ id: String = "xt-1") {
            let item = "<iq type='get' id='\(id)'><ping xmlns='urn:xmpp:ping'/></iq>"
            harness.inject(Injection(Array(item.utf8), to: leg, number: 1, swallowsAnswer: true))
        }

        mutating func inject(_ item: String, to leg: Leg, isRaw: Bool = false) {
            harness.inject(Injection(Array(item.utf8), to: leg, number: 2, isRaw: isRaw))
        }

        func isCutThrough() -> Bool {
            let (send, recv) = (
                harness.session.isCutThrough(.send), harness.session.isCutThrough(.recv)
            )
            return send && recv
        }

        /// The data that the client received since it requested stream management.
        var toClient: String { String(decoding: harness.toClient[before.1...], as: UTF8.self) }
    }

    private static func message(_ number: Int) -> String { "<message id='m\(number)'/>" }

    // MARK: Counts

    @Test func `records of stream management have the counts of both legs after them`() throws {
        var scene = Scene()
        _ = scene.send("<message id='1'/><message id='2'/><r \(sm)/>")
        scene.inject("<message id='own'/>", to: .client)
        _ = scene.recv("<message id='3'/><a \(sm) h='2'/>")
        let counts = scene.harness.told.map(\.record).compactMap(\.sm).map { sm in
            ["from_client", "to_server", "from_server", "to_client"].map { sm[$0] }
        }
        #expect(counts == [[0, 0, 0, 0], [2, 2, 0, 0], [2, 2, 1, 2]])
    }

    @Test func `without injected or dropped stanzas, all bytes are forwarded unchanged and at once`() {
        for seed in 0..<50 {
            var random = SeededGenerator(seed: UInt64(seed))
            var scene = Scene()
            var counts = (sent: 0, received: 0)
            for number in 0..<60 {
                let isSend = Bool.random(using: &random)
                let text: String
                switch Int.random(in: 0..<4, using: &random) {
                case 0: text = "<r \(sm)/>"
                case 1:
                    // Each peer acknowledges all stanzas that it has received.
                    let most = isSend ? counts.received : counts.sent
                    text = "<a \(sm) h=' \(most)' />"
                default:
                    text = Self.message(number)
                    if isSend { counts.sent += 1 } else { counts.received += 1 }
                }
                let out = isSend ? scene.send(text) : scene.recv(text)
                #expect(out == text)
            }
            let isCutThrough = scene.isCutThrough()
            #expect(isCutThrough)
            #expect(scene.harness.told(code: "wrong-acknowledgement").isEmpty)
            #expect(scene.harness.told(code: "store-and-forward").isEmpty)
        }
    }

    @Test func `after an injected ping to the server, each end receives its own count`() {
        var scene = Scene()
        _ = scene.send(Self.message(1) + Self.message(2))
        _ = scene.recv(Self.message(1))
        scene.ping(.server)
        #expect(scene.recv("<iq type='result' id='xt-1'/>" + Self.message(3)) == Self.message(3))
        _ = scene.send(Self.message(3) + "<r \(sm)/>")
        #expect(scene.recv("<a \(sm) h='4'/>") == "<a \(sm) h='3'/>")
        #expect(scene.recv("<r \(sm)/>") == "<r \(sm)/>")
        #expect(scene.send("<a \(sm) h='2'/>") == "<a \(sm) h='3'/>")
        let edited = scene.harness.told.filter { $0.record.action == "edited" }
        #expect(
            edited.map(\.record.messageText) == ["relayed with h=3 instead of h=4", "relayed with h=3 instead of h=2"]
        )
        #expect(edited.map { $0.xml } == ["<a \(sm) h='4'/>", "<a \(sm) h='2'/>"])
        #expect(edited.map { $0.text($0.record.edited) } == ["<a \(sm) h='3'/>", "<a \(sm) h='3'/>"])
        #expect(scene.harness.told(code: "wrong-acknowledgement").isEmpty)
    }

    @Test func `after an injected ping to the client, each end receives its own count`() {
        var scene = Scene()
        scene.ping(.client)
        #expect(scene.send("<iq type='error' id='xt-1'/>" + Self.message(1)) == Self.message(1))
        #expect(scene.send("<a \(sm) h='1'/>") == "<a \(sm) h='0'/>")
        #expect(scene.recv("<a \(sm) h='1'/>") == "<a \(sm) h='2'/>")
    }

    @Test func `an injected message to the client is excluded from acknowledgements to the server`() {
        var scene = Scene()
        scene.inject("<message><body>a</body></message>", to: .client)
        _ = scene.recv(Self.message(1))
        #expect(scene.send("<a \(sm) h='1'/>") == "<a \(sm) h='0'/>")
        #expect(scene.send("<a \(sm) h='2'/>") == "<a \(sm) h='1'/>")
    }

    @Test(arguments: [
        ("<message/>", 1), (" <message/><presence/> ", 2), ("<message/><x/>", 1), ("<x/>", 0), ("<message>", 0),
        ("</stream:stream>", 0), ("<message/></stream:stream><message/>", 1),
    ])
    func `raw bytes count as the complete stanzas in them`(bytes: String, count: Int) {
        var scene = Scene()
        scene.inject(bytes, to: .client, isRaw: true)
        _ = scene.recv(Self.message(1))
        #expect(scene.send("<a \(sm) h='\(count + 1)'/>") == "<a \(sm) h='1'/>")
        #expect(scene.harness.told(code: "wrong-acknowledgement").isEmpty)
    }

    @Test func `a partly forwarded item counts before the injected one`() {
        var scene = Scene()
        _ = scene.recv("<message><bo")
        scene.inject("<presence/>", to: .client)
        _ = scene.send("<a \(sm) h='")
        #expect(scene.recv("dy/></message>") == "dy/></message><presence/>")
        #expect(scene.recv(Self.message(2)) == Self.message(2))
        // The acknowledgement that was partly forwarded is still correct.
        #expect(scene.send("1'/><a \(sm) h='2'/>") == "1'/><a \(sm) h='1'/>")
        #expect(scene.send("<a \(sm) h='3'/>") == "<a \(sm) h='2'/>")
    }

    @Test func `stanzas before stream management and elements other than stanzas are not counted`() {
        var scene = SessionHarness()
        scene.say(Array(Conversations.plainLogin.prefix(10)))
        scene.inject(Injection(Array("<presence/>".utf8), to: .server))
        scene.send("<presence/><enable \(sm)/>")
        scene.recv("<message/><enabled \(sm)/><x xmlns='urn:example:x'/>")
        let before = scene.toClient.count
        scene.recv("<a \(sm) h='0'/>")
        #expect(String(decoding: scene.toClient[before...], as: UTF8.self) == "<a \(sm) h='0'/>")
        #expect(scene.told(code: "wrong-acknowledgement").isEmpty)
    }

    // MARK: Counts that are lost

    @Test(arguments: Direction.allCases)
    func `nothing is injected if one direction is not decoded and stanzas are counted`(direction: Direction) {
        var scene = Scene()
        let comment = "<message><!-- a --></message>"
        #expect((direction == .send ? scene.send(comment) : scene.recv(comment)) == comment)
        scene.inject("<presence/>", to: .server)
        scene.inject("<presence/>", to: .client)
        scene.inject("<presence/>", to: .client, isRaw: true)
        scene.ping(direction.destination)
        let (toServer, toClient): (InjectionFault, InjectionFault) =
            direction == .send ? (.notDecoded, .notCounted) : (.notCounted, .notDecoded)
        let faults = [toServer, toClient, toClient, .notDecoded]
        #expect(scene.harness.injected.map(\.outcome) == faults.map { .failed($0) })
        // Acknowledgements are forwarded unchanged, and not compared with counts.
        #expect(scene.send("<a \(sm) h='9'/>") == "<a \(sm) h='9'/>")
        #expect(scene.recv("<a \(sm) h='9'/>") == "<a \(sm) h='9'/>")
        #expect(scene.harness.told(code: "wrong-acknowledgement").isEmpty && scene.harness.session.ledgers == nil)
        let fault = scene.harness.session.obstacle(toPausing: direction.opposite)
        #expect(fault == .notCounted)
    }

    @Test(arguments: Direction.allCases)
    func `nothing is injected if stream management is requested after one direction stopped being decoded`(
        direction: Direction
    ) {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        func inject() { harness.inject(Injection(Array("<presence/>".utf8), to: direction.source)) }
        direction == .send ? harness.send("<message><!-- a -->") : harness.recv("<message><!-- a -->")
        inject()
        harness.send("<enable \(sm)/>")
        harness.recv("<enabled \(sm)/>")
        inject()
        #expect(harness.injected.map(\.outcome) == [.sent, .failed(.notCounted)])
    }

    @Test func `late data after the end of a stream leaves the other acknowledgements translated`() {
        var scene = Scene()
        scene.inject("<presence/>", to: .client)
        _ = scene.recv("</stream:stream><a \(sm) h='0'/>")
        #expect(scene.send("<a \(sm) h='1'/>") == "<a \(sm) h='0'/>")
    }

    // MARK: Relay modes

    @Test func `once the counts differ, both directions switch to store-and-forward`() {
        var scene = Scene()
        let isCutThrough = scene.isCutThrough()
        #expect(isCutThrough)
        scene.inject("<presence/>", to: .server)
        _ = scene.recv(Self.message(1))
        let (send, recv) = (
            scene.harness.session.isStoring(.send), scene.harness.session.isStoring(.recv)
        )
        #expect(send && recv)
        #expect(scene.harness.told(code: "store-and-forward").count == 2)
    }

    @Test func `without stream management an injection does not end cut-through mode`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.inject(Injection(Array("<presence/>".utf8), to: .server))
        harness.send("<presence/>")
        let isCutThrough = harness.session.isCutThrough(.send)
        #expect(isCutThrough && harness.session.ledgers == nil)
    }

    @Test func `an item over the size limit is forwarded and counted when the counts differ`() {
        var options = SessionOptions(level: .trace)
        options.limits.itemBytes = 400
        var scene = Scene(options)
        scene.inject("<presence/>", to: .client)
        let big = "<message><body>\(String(repeating: "x", count: 2000))</body></message>"
        let pieces = [big.prefix(700), big.dropFirst(700)].map(String.init)
        #expect(pieces.map { scene.recv($0) }.joined() == big)
        #expect(scene.send("<a \(sm) h='2'/>") == "<a \(sm) h='1'/>")
        #expect(scene.harness.closed == nil)
    }

    @Test func `malformed XML ends the session if the counts differ`() {
        var scene = Scene()
        #expect(scene.send("<message/>") == "<message/>")
        scene.inject("<presence/>", to: .client)
        #expect(scene.send("<message></body>") == "</stream:stream>")
        #expect(scene.harness.closed == false)
    }

    @Test func `an acknowledgement is requested once if many stanzas are unacknowledged`() {
        var scene = Scene()
        for round in 1...2 {
            var out = ""
            for number in 0..<40 {
                scene.ping(.server, "xt-\(number)")
                out += scene.recv("<iq type='result' id='xt-\(number)'/><message/>")
            }
            // The request is about the server's stanzas, which the client acknowledges.
            let request = "<r xmlns='urn:xmpp:sm:3'/>"
            #expect(out.replacing(request, with: "") == String(repeating: "<message/>", count: 40))
            #expect(out.ranges(of: request).count == 1)
            #expect(scene.harness.told.count { $0.record.origin == .tap && $0.xml == request } == round)
            #expect(scene.send("<a \(sm) h='\(40 * round)'/>") == "<a \(sm) h='\(80 * round)'/>")
        }
    }

    // MARK: Wrong counts of the peers

    @Test(arguments: [
        ("<a \(sm) h='3'/>", "too-high", Int64(2), "the client acknowledged h=3, 2 more than were sent to it"),
        ("<a \(sm) h='x'/>", "unreadable", 0, "the client sent an acknowledgement without a number"),
        ("<a \(sm)/>", "unreadable", 0, "the client sent an acknowledgement without a number"),
    ])
    func `a wrong count from the client is reported once and forwarded`(
        element: String,
        fault: String,
        difference: Int64,
        words: String
    ) throws {
        var scene = Scene()
        _ = scene.recv(Self.message(1))
        #expect(scene.send(element) == element)
        let record = try #require(scene.harness.told(code: "wrong-acknowledgement").first?.record)
        #expect(record.level == .warn && record.direction == .send && record.leg == .client)
        #expect(record.details?["fault"] == .string(fault) && record.details?["difference"] == .integer(difference))
        #expect(record.messageText?.hasPrefix(words) == true)
        // The fault is reported once.
        _ = scene.send(element)
        #expect(scene.harness.told(code: "wrong-acknowledgement").count == 1)
    }

    @Test func `a server that acknowledges less than before is reported`() {
        var scene = Scene()
        _ = scene.send(Self.message(1) + Self.message(2))
        _ = scene.recv("<a \(sm) h='2'/><a \(sm) h='1'/>")
        let record = scene.harness.told(code: "wrong-acknowledgement").first?.record
        #expect(record?.details?["fault"] == "backwards" && record?.leg == .server)
        #expect(
            record?.messageText?.hasPrefix("the server acknowledged h=1, 1 fewer than it acknowledged before") == true
        )
    }

    @Test func `a wrong count stays wrong by the same number when the counts differ`() {
        var scene = Scene()
        scene.inject("<presence/>", to: .client)
        #expect(scene.send("<a \(sm) h='4'/>") == "<a \(sm) h='3'/>")
        let record = scene.harness.told(code: "wrong-acknowledgement").first?.record
        #expect(record?.details?["difference"] == 3 && record?.details?["h"] == 4)
    }

    @Test func `a server's handled-count-too-high error is also recorded in the client's counts`() {
        var scene = Scene()
        scene.inject("<presence/>", to: .client)
        _ = scene.recv(Self.message(1))
        #expect(scene.send("<a \(sm) h='4'/>") == "<a \(sm) h='3'/>")
        let error =
            "<stream:error><undefined-condition xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
            + "<handled-count-too-high \(sm) h='3' send-count='1'/></stream:error>"
        #expect(scene.recv(error) == error)
        let note = scene.harness.told(code: "handled-count-translated").first?.record
        #expect(note?.messageText == "in the counts of the client: h=4, send-count=2")
    }

    @Test func `a restarted stream counts from its own enable`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(3)))
        // The request is too early, and the server does not answer it.
        harness.send("<enable \(sm)/>")
        harness.say(Array(Conversations.plainLogin[3..<10]))
        harness.send("<enable \(sm) resume='true'/>" + Self.message(1))
        harness.recv("<enabled \(sm) id='i1' resume='true'/>")
        harness.recv("<a \(sm) h='2'/>")
        let finding = harness.told(code: "wrong-acknowledgement").first?.record
        #expect(finding?.details?["difference"] == 1)
    }

    // MARK: Another host

    @Test(arguments: [true, false])
    func `a redirect becomes a reset if the counts differ, and is forwarded unchanged otherwise`(hasParted: Bool) {
        var scene = Scene()
        if hasParted { scene.inject("<presence/>", to: .client) }
        let host = "<see-other-host xmlns='urn:ietf:params:xml:ns:xmpp-streams'>b.example.org</see-other-host>"
        let reset = "<reset xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
        let text = "<text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>Drained.</text>"
        #expect(
            scene.recv("<stream:error>\(host)\(text)</stream:error></stream:stream>")
                == "<stream:error>\(hasParted ? reset : host)\(text)</stream:error></stream:stream>"
        )
        scene.harness.close()
        let end = scene.harness.told(code: "session-ended").first?.record.messageText
        #expect(end?.contains(hasParted ? "was told to reconnect" : "will bypass xmpptap") == true)
        #expect(scene.harness.told.contains { $0.record.action == "edited" } == hasParted)
    }

    @Test func `stream errors other than a redirect are forwarded unchanged`() {
        var scene = Scene()
        scene.inject("<presence/>", to: .client)
        let error = "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"
        #expect(scene.recv(error) == error)
    }

    @Test func `once the counts differ, a record says that the session cannot be resumed elsewhere`() {
        var scene = Scene(enabled: "<enabled \(sm) id='i1' resume='true' location='b.example.org'/>")
        #expect(scene.toClient.contains("location"))
        #expect(scene.harness.told(code: "other-location").count == 1)
        scene.inject("<presence/>", to: .client)
        scene.inject("<presence/>", to: .client)
        #expect(scene.harness.told(code: "other-location").count == 2)
    }

    @Test func `the location for resumption is removed from enabled if the counts differ already`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("<enable \(sm) resume='true'/>")
        harness.inject(Injection(Array("<presence/>".utf8), to: .server))
        let before = harness.toClient.count
        harness.recv("<enabled \(sm) id='i1' resume='true' location='b.example.org'/>")
        #expect(
            String(decoding: harness.toClient[before...], as: UTF8.self) == "<enabled \(sm) id='i1' resume='true'/>"
        )
        #expect(harness.told(code: "other-location").isEmpty)
    }
}
