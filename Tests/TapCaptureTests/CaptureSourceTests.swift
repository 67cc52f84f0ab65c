import TapCapture
import TapCore
import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests that sessions read from their capture have the same records as the live ones.
@Suite struct CaptureSourceTests {
    /// A scenario: sessions and their options.
    struct Scene: Sendable, CustomTestStringConvertible {
        typealias Play = @Sendable (inout SessionHarness) -> Void

        var testDescription: String
        var options = SessionOptions()
        var isConnected = true
        /// Consecutive sessions of one run.
        var plays: [Play]

        init(
            _ name: String,
            options: SessionOptions = SessionOptions(),
            isConnected: Bool = true,
            _ first: @escaping Play,
            _ second: Play? = nil,
            _ third: Play? = nil
        ) {
            testDescription = name
            self.options = options
            self.isConnected = isConnected
            plays = [first, second, third].compactMap(\.self)
        }

        /// Returns the lines of a capture of the sessions.
        func recorded() -> [String] {
            let run = Run()
            var lines: [String] = []
            for (index, play) in plays.enumerated() {
                var harness = SessionHarness(options: options, run: run, connected: isConnected)
                harness.now = harness.now.advanced(by: Int64(index) * 20_000_000_000)
                play(&harness)
                harness.now = harness.now.advanced(by: 1_000_000)
                harness.close()
                lines += harness.told.map {
                    CaptureSourceTests.line(RecordLine($0.record.shown, content: $0.content.span))
                }
            }
            return lines
        }
    }

    /// Returns a record as the line of a capture.
    private static func line(_ record: RecordLine) -> String {
        var form = JSONForm()
        var line = LineBuffer()
        form.append(record, [.content, .chunks], to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    /// Returns the records made of the lines of a capture.
    private static func made(of lines: [String]) throws -> [RecordLine] {
        var source = CaptureSource()
        var options = CaptureSource.options
        options.advice = SessionHarness.advice
        var runner = SourceRunner(run: Run(), options: options)
        var made: [RecordLine] = []
        for line in lines {
            source.add(try RecordLine(json: Array(line.utf8).span.bytes))
            runner.process(&source) { made.append($0) }
        }
        runner.release { made.append($0) }
        return made
    }

    // MARK: Scenes

    private static let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"
    private static let sm = "xmlns='urn:xmpp:sm:3'"
    private static let opening = Array(Conversations.plainLogin.prefix(3))

    private static func sasl(_ name: String, _ message: String) -> String {
        "<\(name)>\(Base64.encode(Array(message.utf8)))</\(name.prefix { $0 != " " })>"
    }

    private static func streamError(_ condition: String) -> String {
        "<stream:error><\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
    }

    /// Logs in by SCRAM; all messages of the login are secrets.
    private static func scram(_ harness: inout SessionHarness, succeeds: Bool) {
        harness.say(opening)
        harness.send(sasl("auth \(sasl) mechanism='SCRAM-SHA-1'", "n,,n=juliet,r=fyko+d2lbbFgONRv9qkxdawL"))
        harness.recv(
            sasl(
                "challenge \(sasl)",
                "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=\(succeeds ? 4096 : 10000)"
            )
        )
        harness.send(
            sasl(
                "response \(sasl)",
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
            )
        )
        guard succeeds else {
            return harness.recv("<failure \(sasl)><not-authorized/><text>Wrong password</text></failure>")
        }
        harness.recv(sasl("success \(sasl)", "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="))
        harness.say(Array(Conversations.plainLogin[5..<10]))
    }

    private static func leave(_ harness: inout SessionHarness) {
        harness.say(Array(Conversations.plainLogin.suffix(2)))
        harness.end(.client)
        harness.end(.server)
    }

    private static func dialback(_ harness: inout SessionHarness, _ type: String) {
        let header =
            "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' "
            + "xmlns:db='jabber:server:dialback' "
        harness.send(header + "from='montague.example' to='capulet.example' version='1.0'>")
        harness.recv(header + "from='capulet.example' to='montague.example' id='D60000229F' version='1.0'>")
        harness.recv(
            "<stream:features><dialback xmlns='urn:xmpp:features:dialback'><errors/></dialback></stream:features>"
        )
        harness.send("<db:result from='montague.example' to='capulet.example'>b4835385f37fe2895af6c1</db:result>")
        harness.recv("<db:result from='capulet.example' to='montague.example' type='\(type)'/>")
        harness.send("<message from='romeo@montague.example' to='juliet@capulet.example'><body>Hi</body></message>")
        harness.end(.server)
        harness.end(.client)
    }

    private static func intercepting(client: LegTLS = .auto, server: LegTLS = .auto) -> SessionOptions {
        var options = SessionOptions()
        options.holdsProceed = true
        options.clientTLS = client
        options.serverTLS = server
        return options
    }

    /// Negotiates STARTTLS on both legs, as a driver does.
    private static func startTLS(_ harness: inout SessionHarness) {
        harness.say(Conversations.startTLS)
        for leg in [Leg.server, .client] {
            harness.now = harness.now.advanced(by: 5_000_000)
            harness.openTLS(leg)
        }
    }

    static let scenes = [
        Scene("a login by PLAIN, closed in order") {
            $0.say(Array(Conversations.plainLogin.dropLast(2)))
            leave(&$0)
        },
        Scene("a login by SCRAM, whose server dies") {
            scram(&$0, succeeds: true)
            $0.send("<iq type='get' id='p1'><ping xmlns='urn:xmpp:ping'/></iq>")
            $0.now = $0.now.advanced(by: 90_000_000_000)
            $0.end(.client)
            $0.end(.server)
        },
        Scene("a wrong password, and a connection that is reset") {
            scram(&$0, succeeds: false)
            $0.end(.client, .reset)
        },
        Scene("a client that leaves at the mechanisms") {
            $0.say(opening)
            $0.end(.client)
            $0.end(.server)
        },
        Scene("a server that leaves at the mechanisms") {
            $0.say(opening)
            $0.end(.server)
            $0.end(.client)
        },
        Scene("a server that closes at the start") {
            $0.send(opening[0].text)
            $0.end(.server)
            $0.end(.client)
        },
        Scene("a stream error before the login, and one after it") {
            $0.say(Array(opening.prefix(2)))
            $0.recv(streamError("host-unknown"))
            $0.end(.server)
            $0.end(.client)
        } _: {
            $0.say(Array(Conversations.plainLogin.dropLast(2)))
            $0.recv(streamError("conflict"))
            $0.end(.server)
            $0.end(.client)
        },
        Scene("a session that is resumed") {
            scram(&$0, succeeds: true)
            $0.send("<enable \(sm) resume='true'/>")
            $0.recv("<enabled \(sm) resume='true' id='sm-9b2f51c7d0e84a6f' max='300'/>")
            $0.end(.client, .reset)
        } _: {
            scram(&$0, succeeds: true)
            leave(&$0)
        } _: {
            $0.say(Array(Conversations.plainLogin.prefix(8)))
            $0.send("<resume \(sm) h='0' previd='sm-9b2f51c7d0e84a6f'/>")
            $0.recv("<resumed \(sm) h='0' previd='sm-9b2f51c7d0e84a6f'/>")
            $0.recv("<message from='romeo@example.net' type='chat'><body>Call me but love</body></message>")
            leave(&$0)
        },
        Scene("servers that are believed by dialback, and not") {
            dialback(&$0, "valid")
        } _: {
            dialback(&$0, "invalid")
        },
        Scene("a component, and one whose secret is wrong") {
            $0.say(Conversations.component)
            leave(&$0)
        } _: {
            $0.say(Array(Conversations.component.prefix(3)))
            $0.recv(streamError("not-authorized"))
            $0.end(.server)
            $0.end(.client)
        },
        Scene("SASL2 with Bind2") {
            $0.say(Conversations.sasl2)
            leave(&$0)
        },
        Scene("authentication before SASL") {
            $0.say(Conversations.legacyLogin)
            leave(&$0)
        },
        Scene("a roster and its changes") {
            $0.say(Array(Conversations.plainLogin.prefix(10)))
            $0.send("<iq type='get' id='r1'><query xmlns='jabber:iq:roster'/></iq>")
            $0.recv(
                "<iq type='result' id='r1'><query xmlns='jabber:iq:roster'><item jid='romeo@example.net' "
                    + "subscription='both'/></query></iq>"
            )
            $0.recv("<presence type='unsubscribed' from='romeo@example.net' to='juliet@example.org'/>")
            $0.send("<iq type='set' id='x'><nobody xmlns='urn:example'/></iq>")
            $0.recv(
                "<iq type='error' id='x'><error type='cancel'><service-unavailable "
                    + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
            )
            leave(&$0)
        },
        Scene("STARTTLS that passes through") {
            $0.say(Conversations.startTLS)
            $0.receive(.send, Array(repeating: 0x17, count: 300))
            $0.receive(.recv, Array(repeating: 0x17, count: 500))
            $0.end(.client)
            $0.end(.server)
        },
        Scene("compression") {
            $0.say(Array(opening.prefix(2)))
            $0.recv(
                "<stream:features><compression xmlns='http://jabber.org/features/compress'><method>zlib</method>"
                    + "</compression></stream:features>"
            )
            $0.send("<compress xmlns='http://jabber.org/protocol/compress'><method>zlib</method></compress>")
            $0.recv("<compressed xmlns='http://jabber.org/protocol/compress'/>")
            $0.receive(.send, Array(repeating: 0x78, count: 30))
            $0.end(.client)
            $0.end(.server)
        },
        Scene("TLS that is ended on both legs, with a login and with a wrong password", options: intercepting()) {
            startTLS(&$0)
            $0.say(Array(Conversations.plainLogin.dropLast(2)))
            leave(&$0)
        } _: {
            startTLS(&$0)
            scram(&$0, succeeds: false)
            leave(&$0)
        },
        Scene("TLS that fails with the server", options: intercepting()) {
            $0.say(Conversations.startTLS)
            $0.now = $0.now.advanced(by: 5_000_000)
            var failure = TLSFailure(code: "certificate-expired", "the certificate has expired")
            failure.cause = .certificateExpired
            $0.handle(.tls(.server, .failed(failure)))
        },
        Scene("TLS that is asked for by the proxy alone", options: intercepting(client: .off)) {
            $0.say(Array(Conversations.startTLS.prefix(3)))
            $0.recv(Conversations.startTLS[4].text)
            $0.openTLS(.server)
            $0.say(Array(Conversations.plainLogin[1..<10]))
            leave(&$0)
        },
        Scene("TLS that the client has alone", options: intercepting(server: .off)) {
            $0.send(Conversations.startTLS[0].text)
            $0.send(Conversations.startTLS[3].text)
            $0.openTLS(.client)
            $0.say(Array(Conversations.plainLogin.dropLast(2)))
            leave(&$0)
        },
        Scene("a stream that cannot be parsed, before the login and after it") {
            $0.say(opening)
            $0.send("<auth <nothing/>")
            $0.send("more of it")
            $0.end(.client)
            $0.end(.server)
        } _: {
            $0.say(Array(Conversations.plainLogin.prefix(10)))
            $0.recv("<message><body>&unknown;</body></message>")
            $0.send("<presence/>")
            $0.end(.client)
            $0.end(.server)
        },
        Scene("what is no XMPP") {
            $0.send("GET / HTTP/1.1\r\n\r\n")
            $0.end(.client)
            $0.end(.server)
        },
        Scene("an item beyond the limit", options: SessionOptions(limits: StreamLimits(itemBytes: 2000))) {
            $0.say(Array(Conversations.plainLogin.prefix(10)))
            $0.send("<message to='romeo@example.net'><body>\(String(repeating: "x", count: 5000))</body></message>")
            leave(&$0)
        },
        Scene("an end inside an item") {
            $0.say(Array(Conversations.plainLogin.prefix(10)))
            $0.send("<message to='romeo@example.net'><bo")
            $0.end(.client, .reset)
        },
        Scene("a server that is not there", isConnected: false) {
            $0.send(opening[0].text)
            $0.failServer("cannot connect to 127.0.0.1:5222: connection refused", .refused)
        },
        Scene("a session that xmpptap ends, and one that it leaves when it stops") {
            $0.say(opening)
            $0.abort(.connectionTimeout, "No login within 60 s.")
        } _: {
            $0.say(opening)
            $0.session.handle(.stop, at: $0.now)
        },
        Scene("names that are hidden", options: SessionOptions(redaction: .metadata)) {
            scram(&$0, succeeds: true)
            $0.say(Array(Conversations.plainLogin[12..<15]))
            leave(&$0)
        },
    ]

    // MARK: Tests

    @Test(arguments: scenes) func `A reanalysis derives every record again as it was recorded`(_ scene: Scene) throws {
        let recorded = scene.recorded()
        let made = try Self.made(of: recorded).map(Self.line)
        for (one, other) in zip(recorded, made) where one != other {
            Issue.record("recorded \(one)made     \(other)")
        }
        #expect(recorded.count == made.count)
    }

    @Test func `The division of items into chunks changes only the chunks of the records`() throws {
        var generator = SeededGenerator(seed: 11)
        func capture(piece: Int) -> [String] {
            Scene("chunks") { $0.say(Conversations.plainLogin, piece: piece) }.recorded()
        }
        func withoutChunks(_ lines: [String]) throws -> [String] {
            try lines.map { line in
                let read = try RecordLine(json: Array(line.utf8).span.bytes)
                var record = read.record
                record.chunks = []
                record.time = Timestamp(nanoseconds: 0)
                record.monotonic = 0
                record.roundTrip = nil
                return Self.line(RecordLine(record.shown, content: read.content.span))
            }
        }
        let whole = try withoutChunks(Self.made(of: capture(piece: .max)).map(Self.line))
        for _ in 0..<20 {
            let recorded = capture(piece: Int.random(in: 1...100, using: &generator))
            let made = try Self.made(of: recorded).map(Self.line)
            #expect(made == recorded)
            #expect(try withoutChunks(made) == whole)
        }
    }

    @Test func `A reanalysis keeps unknown fields that another version has written`() throws {
        var lines = Scene("login") {
            $0.say(Array(Conversations.plainLogin.dropLast(2)))
            Self.leave(&$0)
        }.recorded()
        let message = try #require(lines.firstIndex { $0.contains("\"name\":\"message\"") })
        lines[message] = lines[message].replacing("}\n", with: ",\"later\":[1,{\"a\":null}]}\n")
        lines.insert(
            lines[message - 1].replacing("\"kind\":\"whitespace\"", with: "\"kind\":\"note\",\"code\":\"unheard-of\"")
                .replacing("\"kind\":\"stanza\"", with: "\"kind\":\"note\",\"code\":\"unheard-of\""),
            at: message
        )
        let made = try Self.made(of: lines)
        #expect(made.contains { $0.record.code == "unheard-of" })
        #expect(made.contains { String(decoding: $0.unknown, as: UTF8.self) == "\"later\":[1,{\"a\":null}]" })
        #expect(made.count == lines.count)
        #expect(made.last?.record.code == Record.Code.sessionEnded)
    }

    @Test func `Without recorded steps, a reanalysis derives the diagnosis from the items`() throws {
        let scene = try #require(Self.scenes.first { $0.testDescription.hasPrefix("a wrong password") })
        // Records as an older version may have written them.
        let older = scene.recorded().filter { !$0.contains("\"code\":\"step\"") || $0.contains("\"connect\"") }
            .map { $0.replacing("wrong-password", with: "not-authorized") }
        let made = try Self.made(of: older)
        let diagnosis = try #require(made.compactMap { LoginDiagnosis($0.record) }.first)
        #expect(diagnosis.cause == .wrongPassword)
        #expect(made.filter { $0.record.code == LoginStep.code }.count > 5)
    }

    @Test func `A session whose end was not recorded stays open`() throws {
        let lines = Self.scenes[0].recorded().dropLast()
        let made = try Self.made(of: Array(lines)).map(Self.line)
        #expect(made == Array(lines))
    }

    @Test func `A session whose beginning was not recorded is returned as stored`() throws {
        let lines = Array(Self.scenes[0].recorded().dropFirst())
        #expect(try Self.made(of: lines).map(\.record.sequence).count == lines.count)
        #expect(try Self.made(of: lines).allSatisfy { $0.record.code != "unparsable" && $0.record.kind != .bytes })
        #expect(try Self.made(of: lines).filter { $0.record.kind == .error }.isEmpty)
    }

    @Test func `After a damaged line, the stored records are returned, and none is lost`() throws {
        let folder = try TemporaryFolder()
        let lines = Scene("login") { $0.say(Conversations.plainLogin) }.recorded()
        var header = LineBuffer()
        RecordHeader.test(run: "r").append(to: &header)
        // The line of the client's stream header, without which its next item cannot be decoded.
        let damaged = try #require(lines.firstIndex { $0.contains("\"kind\":\"stream-open\"") })
        for place in [nil, damaged, lines.count - 2] {
            var texts = lines
            if let place { texts[place] = "{\"torn\n" }
            let path = try folder.write(String(decoding: header.bytes, as: UTF8.self) + texts.joined(), to: "x.xtap")
            let reanalysis = CaptureReanalyzer(try RecordReader([path]))
            var count = 0
            while let entry = try reanalysis.next() {
                guard case .record(let line) = entry else { continue }
                count += 1
                #expect(line.record.code != ScanFault.Code.notAStream.rawValue && line.record.kind != .bytes)
            }
            #expect(count == (place == nil ? lines.count : lines.count - 1), "\(place ?? -1)")
            #expect(reanalysis.isWhole == (place == nil))
        }
    }

    @Test func `Records follow a header of their run, also those that were held until the files end`() throws {
        func header(_ run: String, isComplete: Bool = true) -> String {
            var header = RecordHeader.test(run: run)
            header.isComplete = isComplete
            return LineBuffer.text { header.append(to: &$0) }
        }
        let failed = Scene("two logins and a failed one") {
            $0.say(Array(Conversations.plainLogin.dropLast(2)))
            Self.leave(&$0)
        } _: {
            $0.say(Array(Conversations.plainLogin.dropLast(2)))
            Self.leave(&$0)
        } _: {
            Self.scram(&$0, succeeds: false)
            $0.end(.client, .reset)
        }.recorded()
        // xmpptap was killed while the third session ended.
        let diagnosis = try #require(failed.lastIndex { $0.contains(Record.Code.loginFailed) })
        let killed = Array(failed[...diagnosis])
        let other = Self.scenes[0].recorded()
        let folder = try TemporaryFolder()
        for (name, lines) in [
            ("end", [header("a")] + killed + [header("b")] + other),
            (
                "gap",
                [header("a")] + killed + [header("b")] + other + [header("a", isComplete: false)] + [
                    failed[diagnosis + 1]
                ]
            ),
        ] {
            let path = try folder.write(lines.joined(), to: "\(name).xtap")
            let reanalysis = CaptureReanalyzer(try RecordReader([path]))
            var run = ""
            var counts: [String: Int] = [:]
            var places: [String] = []
            while let entry = try reanalysis.next() {
                switch entry {
                case .header(let header): run = header.run
                case .record(let line):
                    counts[run, default: 0] += 1
                    if line.record.code == Record.Code.loginFailed { places.append("\(run) \(line.record.session)") }
                case .damage, .gap: Issue.record("\(entry)")
                }
            }
            #expect(counts == ["a": killed.count + (name == "gap" ? 1 : 0), "b": other.count], "\(name)")
            #expect(places == ["a 3"], "\(name)")
        }
        // The header that is returned again has the path of its file.
        let paths = try [("a", killed), ("b", other)].map {
            try folder.write(header($0) + $1.joined(), to: "\($0).xtap")
        }
        let reanalysis = CaptureReanalyzer(try RecordReader(paths))
        var headers = 0
        while let entry = try reanalysis.next() {
            guard case .header(let header) = entry else { continue }
            headers += 1
            #expect(reanalysis.path.hasSuffix("/\(header.run).xtap"))
        }
        #expect(headers > 2)
    }

    @Test(arguments: ["9223372036.854775807", "-9223372036.854775807", "3000000000"])
    func `Times that no session can have are refused`(value: String) throws {
        let line = try #require(Self.scenes[0].recorded().first)
        let text = line.replacing(/"monotonic":[^,]*/, with: "\"monotonic\":\(value)")
        #expect(throws: RecordLineError.self) { try RecordLine(json: Array(text.utf8).span.bytes) }
    }
}
