import TapCore
import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Sessions over WebSocket (RFC 7395, RFC 6455).
struct WebSocketSessionTests {
    private static let stanza =
        "<message xmlns='jabber:client' to='romeo@example.net' id='m1'><body>hi</body></message>"

    // MARK: Relaying

    @Test("Every split of a login is relayed byte for byte, and gives the same records", arguments: [1, 2, 3, 7, 64])
    func relaysVerbatim(length: Int) throws {
        var whole = try WebSocketScene()
        whole.logIn()
        whole.send(Self.stanza)
        var scene = try WebSocketScene()
        var sent: [Direction: [UInt8]] = [.send: [], .recv: []]
        for (direction, text) in WebSocketConversation.login + [(.send, Self.stanza)] {
            let bytes = WebSocketScene.frame(text, from: direction)
            sent[direction]? += bytes
            scene.receive(direction, bytes, pieces: length)
        }
        #expect(scene.harness.toServer == sent[.send])
        #expect(scene.harness.toClient == sent[.recv])
        let items = { (told: [SessionHarness.Told]) in
            told.filter(\.record.kind.isStreamItem).map { "\($0.record.kind) \($0.record.offset) \($0.xml ?? "")" }
        }
        #expect(items(scene.harness.told) == items(whole.harness.told))
        #expect(scene.harness.session.info.jid == "juliet@example.org/balcony")
    }

    @Test("A login over WebSocket opens the session and names its transport")
    func logsIn() throws {
        var scene = try WebSocketScene()
        scene.logIn()
        #expect(scene.records(Record.Code.sessionReady).count == 1)
        #expect(scene.records(Record.Code.sessionBegan).first?.record.details?["transport"]?.text == "websocket")
        #expect(scene.harness.told.filter { $0.record.kind == .streamOpen }.count == 4)
        #expect(scene.harness.told.filter { $0.record.level <= .warn }.isEmpty)
        let secrets = scene.harness.told.filter { $0.xml?.contains("AGp1bGlldABzM2NyM3Q=") == true }
        #expect(secrets.isEmpty)
    }

    @Test("Binary messages, white space and declarations are reported once for each direction, and relayed")
    func reportsForm() throws {
        var scene = try WebSocketScene()
        scene.logIn()
        let before = scene.harness.toServer.count
        var sent: [UInt8] = []
        for _ in 0..<2 {
            WebSocketFrameWriter.append(
                message: Array(Self.stanza.utf8).span,
                isBinary: true,
                as: .client(maskKey: 7),
                to: &sent
            )
            sent += WebSocketScene.frame(" \n" + Self.stanza, from: .send)
            sent += WebSocketScene.frame("<?xml version='1.0'?>" + Self.stanza + "\n", from: .send)
        }
        scene.receive(.send, sent, pieces: 50)
        scene.receive(.recv, WebSocketScene.frame(" " + Self.stanza, from: .recv), pieces: 50)
        #expect(Array(scene.harness.toServer.dropFirst(before)) == sent)
        #expect(
            scene.harness.told.filter { $0.record.kind == .stanza && $0.text($0.record.name) == "message" }.count == 7
        )
        let codes = scene.harness.told.compactMap { told in
            told.record.code.flatMap {
                $0.hasPrefix("framing-") ? "\($0) \(told.record.direction.map { "\($0)" } ?? "")" : nil
            }
        }
        #expect(
            codes == [
                "framing-binary send", "framing-white-space send", "framing-declaration send",
                "framing-white-space recv",
            ]
        )
    }

    @Test("Offsets count the bytes of messages, from the last <open/> on")
    func countsPayload() throws {
        var scene = try WebSocketScene()
        scene.logIn()
        let before = scene.harness.told.last { $0.record.direction == .send && $0.record.kind.isStreamItem }
        scene.send(Self.stanza)
        let record = try #require(scene.harness.told.last { $0.record.kind == .stanza }).record
        let last = try #require(before?.record)
        #expect(record.offset == last.offset + last.length)
        #expect(record.length == UInt64(Self.stanza.utf8.count))
        #expect(record.epoch == 2)
    }

    @Test("The fragments of a message stay as the sender cut them, and are one record")
    func keepsFragments() throws {
        for rules in [nil, "FROM: nobody@example.com\nDROP."] {
            var scene = try WebSocketScene(rules: rules)
            scene.logIn()
            let parts = [
                WebSocketScene.frame("<message xmlns='jabber:cli", .text, isFinal: false, from: .send),
                WebSocketScene.frame("from inside", .ping, from: .send),
                WebSocketScene.frame(
                    "ent' to='romeo@example.net'><body>h\u{E9}",
                    .continuation,
                    isFinal: false,
                    from: .send
                ),
                WebSocketScene.frame("</body></message>", .continuation, from: .send),
            ]
            let before = scene.harness.toServer.count
            for part in parts { scene.receive(.send, part, pieces: 5) }
            #expect(Array(scene.harness.toServer.dropFirst(before)) == parts.flatMap { $0 })
            #expect(
                scene.harness.told.filter { $0.record.kind == .stanza && $0.xml?.contains("h\u{E9}") == true }.count
                    == 1
            )
        }
    }

    // MARK: Control frames

    @Test("Pings, pongs and close frames are relayed in order, and recorded at trace")
    func relaysControlFrames() throws {
        var scene = try WebSocketScene(rules: "FROM: nobody@example.com\nDROP.")
        scene.logIn()
        scene.harness.receive(.recv, WebSocketScene.frame("beat", .ping, from: .recv))
        scene.harness.receive(.send, WebSocketScene.frame("beat", .pong, from: .send))
        scene.send(WebSocketScene.close)
        scene.recv(WebSocketScene.close)
        var close: [UInt8] = []
        #expect(WebSocketFrameWriter.append(close: .normal, reason: "bye", as: .server, to: &close))
        scene.harness.receive(.recv, close)
        #expect(scene.frames(to: .client).suffix(2).map(\.payload) == [WebSocketScene.close, "1000 bye"])
        #expect(scene.frames(to: .client).contains { $0.opcode == .ping && $0.payload == "beat" })
        #expect(scene.frames(to: .server).contains { $0.opcode == .pong && $0.payload == "beat" })
        let codes = scene.harness.told.filter { $0.record.kind == .frame }.map { $0.record.code }
        #expect(codes == ["ping", "pong", "close"])
        scene.harness.end(.client)
        scene.harness.end(.server)
        scene.harness.close()
        let end = try #require(scene.records(Record.Code.sessionEnded).first?.record)
        #expect(end.level == .info)
    }

    @Test("A close frame without <close/> is an unclean end, with its code and reason")
    func reportsCloseCode() throws {
        var scene = try WebSocketScene()
        scene.logIn()
        var close: [UInt8] = []
        #expect(WebSocketFrameWriter.append(close: .unsupportedData, reason: "no binary", as: .server, to: &close))
        scene.harness.receive(.recv, close)
        scene.harness.end(.server)
        scene.harness.end(.client)
        scene.harness.close()
        let message = try #require(scene.records(Record.Code.sessionEnded).first?.record.message)
        #expect("\(message)".contains("1003"), "\(message)")
        #expect("\(message)".contains("no binary"), "\(message)")
    }

    @Test("A silent client is pinged by a frame, since white space is no message")
    func pingsByFrame() throws {
        var scene = try WebSocketScene { $0.ping = PingOptions(interval: 5_000_000_000, method: .whitespace) }
        scene.logIn()
        scene.harness.wait(6_000_000_000)
        #expect(scene.frames(to: .client).last == .init(opcode: .ping, isFinal: true, payload: "xmpptap"))
    }

    // MARK: Messages that are not one element

    @Test(
        "A message that is not one element is reported and relayed unchanged, and the next one is decoded",
        arguments: [
            ("\(stanza)\(stanza)", ScanFault.Code.severalElements), (" ", ScanFault.Code.emptyMessage),
            ("", ScanFault.Code.emptyMessage),
            ("text", ScanFault.Code.textInMessage),
            ("<message xmlns='jabber:client'>", ScanFault.Code.unfinishedElement),
        ]
    )
    func reportsFraming(message: String, code: ScanFault.Code) throws {
        var scene = try WebSocketScene()
        scene.logIn()
        scene.send(message)
        scene.send(Self.stanza)
        #expect(scene.messages(to: .server).suffix(2) == [message, Self.stanza])
        let fault = try #require(scene.records(code.rawValue).first?.record)
        #expect(fault.kind == .error)
        #expect(scene.harness.told.last?.xml == Self.stanza)
    }

    @Test("Where rules can alter stanzas, a message of two elements closes the session")
    func refusesSmuggling() throws {
        var scene = try WebSocketScene(rules: "FROM: juliet@example.org\nKIND: message\nDROP.")
        scene.logIn()
        scene.send("<presence xmlns='jabber:client'/>\(Self.stanza)")
        #expect(!scene.messages(to: .server).contains { $0.contains("<body>") })
        #expect(scene.messages(to: .client).contains { $0.contains("stream:error") })
        #expect(scene.messages(to: .client).last == WebSocketScene.close)
        #expect(scene.frames(to: .client).last?.payload == "1000 ")
        #expect(scene.harness.closed == false)
    }

    @Test func `A stanza without a namespace is reported, and refused if rules can alter stanzas`() throws {
        let unqualified = "<message to='juliet@example.org'><body>secret</body></message>"
        var scene = try WebSocketScene()
        scene.logIn()
        scene.send(unqualified)
        #expect(scene.records("framing-no-namespace").count == 1)
        #expect(scene.messages(to: .server).last == unqualified)
        scene = try WebSocketScene(rules: "KIND: message\nINSPECT: body#~=secret\nDROP.")
        scene.logIn()
        scene.send(unqualified)
        #expect(!scene.messages(to: .server).contains { $0.contains("secret") })
        #expect(scene.messages(to: .client).contains { $0.contains("<invalid-namespace") })
    }

    @Test("After an element without xmlns, nothing is injected into a session whose stanzas are counted")
    func refusesUncountedInjections() throws {
        var scene = try WebSocketScene { $0.ping = PingOptions(interval: 20_000_000_000) }
        scene.logIn()
        let sm = "xmlns='urn:xmpp:sm:3'"
        scene.send("<enable \(sm) resume='true'/>")
        scene.recv("<enabled \(sm) resume='true' id='i1'/>")
        scene.send("<message to='juliet@example.org'><body>a</body></message>")
        for leg in Leg.allCases { scene.harness.inject(Injection(Array("<presence/>".utf8), to: leg)) }
        #expect(scene.harness.injected.map(\.outcome) == [.failed(.notCounted), .failed(.notCounted)])
        let count = scene.messages(to: .client).count
        scene.harness.wait(30_000_000_000)
        scene.harness.wait(30_000_000_000)
        #expect(scene.messages(to: .client).count == count)
        let deadline = scene.harness.session.nextDeadline
        #expect(deadline == nil)
        scene.send("<a \(sm) h='0'/>")
        #expect(scene.messages(to: .server).last == "<a \(sm) h='0'/>")
        #expect(scene.records("wrong-acknowledgement").isEmpty)
    }

    // MARK: Frames that are not acceptable

    @Test("Bytes that are not frames are reported, and the rest of their direction is relayed")
    func relaysFaultyFrames() throws {
        var scene = try WebSocketScene()
        scene.logIn()
        let unmasked = WebSocketScene.frame(Self.stanza, from: .recv)
        let count = scene.harness.toServer.count
        scene.harness.receive(.send, unmasked)
        scene.send(Self.stanza)
        #expect(scene.records("unmasked-frame").count == 1)
        #expect(
            Array(scene.harness.toServer.dropFirst(count)) == unmasked + WebSocketScene.frame(Self.stanza, from: .send)
        )
        scene.recv(Self.stanza)
        #expect(scene.harness.told.last?.xml == Self.stanza)
    }

    @Test("Bytes that are not frames close a session with --on-unparsable close, with the code of RFC 6455")
    func closesFaultyFrames() throws {
        var scene = try WebSocketScene { $0.onUnparsable = .close }
        scene.logIn()
        scene.harness.receive(.send, WebSocketScene.frame(Self.stanza, from: .recv))
        #expect(scene.frames(to: .client).last?.payload == "1002 ")
        #expect(!scene.messages(to: .server).contains(Self.stanza))
    }

    // MARK: Rules and injection

    @Test("A rule drops a message, with the control frames inside it relayed")
    func drops() throws {
        var scene = try WebSocketScene(rules: "KIND: message\nDROP.")
        scene.logIn()
        let count = scene.frames(to: .server).count
        scene.harness.receive(
            .send,
            WebSocketScene.frame("<message xmlns='jabber:client'>", isFinal: false, from: .send)
        )
        scene.harness.receive(.send, WebSocketScene.frame("inside", .ping, from: .send))
        scene.harness.receive(.send, WebSocketScene.frame("</message>", .continuation, from: .send))
        scene.send("<presence xmlns='jabber:client'/>")
        let frames = scene.frames(to: .server).dropFirst(count)
        #expect(frames.map(\.payload) == ["inside", "<presence xmlns='jabber:client'/>"])
    }

    @Test("An injected stanza is a message of its own, and declares its namespace")
    func injects() throws {
        for (leg, direction) in [(Leg.client, Direction.recv), (.server, .send)] {
            for rules in [nil, "FROM: nobody@example.com\nDROP."] {
                var scene = try WebSocketScene(rules: rules)
                scene.logIn()
                scene.harness.inject(
                    Injection(Array("<message id='x'><body>hey</body></message>".utf8), to: leg, number: 7)
                )
                let expected = "<message xmlns='jabber:client' id='x'><body>hey</body></message>"
                #expect(scene.messages(to: leg).last == expected)
                #expect(scene.frames(to: leg).last == .init(opcode: .text, isFinal: true, payload: expected))
                let record = scene.harness.told.last { $0.record.origin == .tap }
                #expect(record?.xml == expected)
                #expect(record?.record.direction == direction)
            }
        }
    }

    @Test("An injected stanza waits for the end of a message that has begun")
    func waitsForTheMessage() throws {
        var scene = try WebSocketScene()
        scene.logIn()
        let frame = WebSocketScene.frame(Self.stanza, from: .recv)
        scene.harness.receive(.recv, Array(frame.prefix(20)))
        scene.harness.inject(Injection(Array("<presence/>".utf8), to: .client, number: 7))
        #expect(scene.harness.toClient.suffix(20) == frame.prefix(20))
        scene.harness.receive(.recv, Array(frame.dropFirst(20)))
        #expect(scene.messages(to: .client).suffix(2) == [Self.stanza, "<presence xmlns='jabber:client'/>"])
    }

    @Test("A dropped stanza does not disturb the counts of stream management")
    func translatesCounts() throws {
        var scene = try WebSocketScene(rules: "KIND: message\nDROP.")
        scene.logIn()
        scene.send("<enable xmlns='urn:xmpp:sm:3'/>")
        scene.recv("<enabled xmlns='urn:xmpp:sm:3'/>")
        scene.send(Self.stanza)
        scene.send("<presence xmlns='jabber:client'/>")
        scene.recv("<a xmlns='urn:xmpp:sm:3' h='1'/>")
        #expect(scene.messages(to: .client).last == "<a xmlns='urn:xmpp:sm:3' h='2'/>")
    }

    @Test("A stanza that a rule has changed still declares its namespace")
    func editsStanzas() throws {
        var scene = try WebSocketScene(rules: "KIND: message\nSET=body#=bye")
        scene.logIn()
        scene.send(Self.stanza)
        let sent = try #require(scene.messages(to: .server).last)
        #expect(sent.contains("xmlns='jabber:client'") && sent.contains("<body>bye</body>"), "\(sent)")
        let edited = scene.harness.told.last { $0.record.edited != nil }
        #expect(edited?.text(edited?.record.edited ?? .empty) == sent)
    }

    // MARK: Violations of the protocol

    @Test("STARTTLS and compression are only recorded: the peers cannot negotiate them over WebSocket")
    func ignoresStartTLS() throws {
        var scene = try WebSocketScene()
        scene.send(WebSocketScene.open)
        scene.harness.receive(
            .send,
            WebSocketScene.frame("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", from: .send)
                + WebSocketScene.frame(WebSocketScene.open, from: .send).prefix(3)
        )
        scene.recv(WebSocketConversation.login[1].1)
        scene.recv("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        scene.recv("<compressed xmlns='http://jabber.org/protocol/compress'/>")
        scene.recv(Self.stanza)
        #expect(scene.harness.told.last?.xml == Self.stanza)
    }

    @Test("A message of endless fragments is not stored beyond a limit")
    func limitsFragments() throws {
        for rules in [nil, "KIND: message\nDROP."] {
            var scene = try WebSocketScene(level: .info, rules: rules)
            scene.send(WebSocketScene.open)
            scene.harness.receive(.send, WebSocketScene.frame("<", .text, isFinal: false, from: .send))
            let piece = (0..<2000).flatMap { _ in
                WebSocketScene.frame("", .continuation, isFinal: false, from: .send)
            }
            for _ in 0..<40 where scene.records("limit-message").isEmpty { scene.harness.receive(.send, piece) }
            #expect(scene.records("limit-message").count == 1)
        }
    }

    @Test("A stanza or a second <close/> after <close/> does not disturb an orderly end")
    func allowsLateMessages() throws {
        for rules in [nil, "KIND: message\nDROP."] {
            var scene = try WebSocketScene(rules: rules)
            scene.logIn()
            scene.send(WebSocketScene.close)
            scene.send("<presence xmlns='jabber:client'/>")
            scene.send(WebSocketScene.close)
            scene.recv(WebSocketScene.close)
            #expect(scene.messages(to: .client).last == WebSocketScene.close)
            #expect(!scene.messages(to: .client).contains { $0.contains("stream:error") })
            #expect(scene.records("repeated-end").count == 1)
            scene.harness.end(.client)
            scene.harness.end(.server)
            scene.harness.close()
            #expect(scene.records(Record.Code.sessionEnded).first?.record.level == .info)
        }
    }

    @Test("Nothing is sent after a close frame")
    func sendsNothingAfterClose() throws {
        var scene = try WebSocketScene()
        scene.logIn()
        var close: [UInt8] = []
        #expect(WebSocketFrameWriter.append(close: .goingAway, as: .server, to: &close))
        scene.harness.receive(.recv, close)
        let count = scene.harness.toClient.count
        scene.harness.inject(Injection(Array("<presence/>".utf8), to: .client, number: 7))
        scene.harness.abort(.policyViolation, "enough")
        #expect(scene.harness.toClient.count == count)
        #expect(scene.harness.injected.last?.outcome == .failed(.ended))
    }

    // MARK: The end

    @Test("A session that xmpptap aborts ends with a stream error, <close/> and a close frame on both legs")
    func aborts() throws {
        var scene = try WebSocketScene()
        scene.logIn()
        scene.harness.abort(.policyViolation, "enough")
        let messages = scene.messages(to: .client)
        #expect(
            messages.suffix(2).first?.hasPrefix("<stream:error xmlns:stream='http://etherx.jabber.org/streams'>")
                == true
        )
        #expect(messages.last == WebSocketScene.close)
        #expect(scene.frames(to: .client).last?.opcode == .close)
        #expect(scene.messages(to: .server).last == WebSocketScene.close)
        #expect(scene.frames(to: .server).last?.opcode == .close)
    }

    @Test("A client that names no server is refused with <open/>, a stream error and <close/>")
    func refusesBeforeTheStream() throws {
        var scene = try WebSocketScene()
        scene.send(WebSocketScene.open)
        scene.harness.abort(.hostUnknown, "no such host")
        let messages = scene.messages(to: .client)
        #expect(messages.count == 3)
        #expect(messages.first?.hasPrefix("<open xmlns='urn:ietf:params:xml:ns:xmpp-framing'") == true)
        #expect(messages.last == WebSocketScene.close)
    }
}
