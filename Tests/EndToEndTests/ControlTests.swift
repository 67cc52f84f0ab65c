import Foundation
import TapTestKit
import Testing

/// Tests of the control socket of the running program.
@Suite(.timeLimit(.minutes(3)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ControlTests {
    @Test func `the control socket returns sessions, their logins, rosters and requests`() async throws {
        let scene = try await ControlScene()
        // After the answer to this ping, the proxy has handled everything that the client sent before it.
        #expect(try await scene.isUntouched())
        let health = try await scene.ask("GET", "/health").json
        #expect(health["status"] as? String == "ok")
        #expect(health["sessions"] as? Int == 1)
        let list = try await scene.ask("GET", "/sessions").json["sessions"] as? [[String: Any]]
        let session = try #require(list?.first)
        #expect(list?.count == 1)
        #expect(session["jid"] as? String == "juliet@localhost/balcony")
        #expect(session["phase"] as? String == "ready")
        #expect(session["domain"] as? String == "localhost")
        #expect((session["server"] as? String)?.hasPrefix("127.0.0.1:") == true)
        #expect(((session["sent"] as? [String: Any])?["stanzas"] as? Int ?? 0) > 2)
        for (jid, count) in [("juliet@localhost", 1), ("juliet@localhost/balcony", 1), ("romeo@localhost", 0)] {
            let list = try await scene.ask("GET", "/sessions?jid=\(jid)").json["sessions"] as? [Any]
            #expect(list?.count == count, "\(jid)")
        }
        let one = try await scene.ask("GET", "/sessions/1").json
        #expect(one["mechanism"] as? String == "PLAIN")
        let timeline = try await scene.ask("GET", "/sessions/1/timeline").json["timeline"] as? [[String: Any]]
        let steps = timeline?.compactMap { $0["step"] as? String } ?? []
        #expect(steps.contains("connect") && steps.contains("bind") && steps.last == "ready", "\(steps)")
        let roster = try await scene.ask("GET", "/sessions/1/roster").json["roster"] as? [[String: Any]]
        #expect(roster?.contains { $0["jid"] as? String == "romeo@localhost" } == true)
        #expect(try await scene.ask("GET", "/sessions/1/requests").json["requests"] as? [Any] != nil)
        #expect(try await scene.ask("GET", "/sessions/1/held").json["held"] as? [Any] != nil)
        for path in ["/sessions/2", "/sessions/2/timeline", "/nothing"] {
            #expect(try await scene.ask("GET", path).status == 404, "\(path)")
        }
        let wrong = try await scene.ask("PATCH", "/sessions")
        #expect(wrong.status == 405 && wrong.head.contains("Allow: GET"))
    }

    @Test func `stanzas are injected in both directions, and the requester gets the responses`() async throws {
        let scene = try await ControlScene()
        let message = #"{"to":"client","message":{"body":"a < b","peer":"romeo@localhost/orchard"}}"#
        let sent = try await scene.ask("POST", "/sessions/1/inject", message)
        #expect(sent.status == 200 && sent.json["outcome"] as? String == "sent", "\(sent.body)")
        try await scene.client.socket.read(until: "a &lt; b")
        let id = try #require(sent.json["id"] as? String)
        try await scene.client.socket.read(until: "<origin-id xmlns='urn:xmpp:sid:0' id='\(id)'/>")
        #expect(scene.client.socket.received.contains("<no-store xmlns='urn:xmpp:hints'/>"))

        let disco = "<iq type='get' id='d' to='localhost'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>"
        let answered = try await scene.ask("POST", "/sessions/1/inject", #"{"to":"server","stanza":"\#(disco)"}"#)
        #expect(answered.json["outcome"] as? String == "answered", "\(answered.body)")
        #expect((answered.json["answer"] as? String)?.contains("disco#info") == true)
        #expect((answered.json["round_trip_ns"] as? Int ?? 0) > 0)

        let ping = try await scene.ask("POST", "/sessions/1/ping", #"{"to":"server"}"#)
        #expect(ping.status == 200 && ping.json["type"] as? String == "result", "\(ping.body)")
        let silent = try await scene.ask("POST", "/sessions/1/ping", #"{"to":"client","timeout_ns":1000000}"#)
        #expect(silent.status == 504, "\(silent.body)")
        #expect(try await scene.isUntouched())
        #expect(!scene.client.socket.received.contains("id='d'"))
        #expect(try await scene.ask("GET", "/sessions/1").json["injected"] as? Int == 4)
        // Ids of another run begin differently, so that injections into both runs cannot be confused.
        let other = try await ControlScene(["--log", "off"])
        let again = try #require(try await other.ask("POST", "/sessions/1/inject", message).json["id"] as? String)
        let (mine, its) = (id.split(separator: "-"), again.split(separator: "-"))
        #expect(mine.first == "xt" && mine.count == 4 && mine[0] == its[0] && mine[1] != its[1], "\(id), \(again)")
    }

    @Test func `an injection that is not possible is refused with the reason`() async throws {
        let scene = try await ControlScene()
        for (body, status, words) in [
            (#"{"to":"client","stanza":"<message>"}"#, 422, "it is not a complete stanza"),
            (#"{"to":"client","stanza":"<message/><message/>"}"#, 422, "more than one stanza"),
            (#"{"to":"client","stanza":"</stream:stream>"}"#, 422, "it ends the stream"),
            (#"{"to":"client","stanza":"<message><a></message>"}"#, 422, "offset"),
            (#"{"to":"client","stanza":"<r xmlns='urn:xmpp:sm:3'/>"}"#, 422, "not an iq, message or presence"),
            (#"{"to":"client","stanza":"<message/>","await_answer":true}"#, 422, "only an iq request with an id"),
            (#"{"to":"client"}"#, 422, "either"),
            (#"{"to":"nobody","stanza":"<message/>"}"#, 422, "\"to\" must be"),
            (#"{"to":"client","stanza":7}"#, 422, "must be a string"),
            (#"{"to":"client","stanza":"<message/>","wings":true}"#, 422, "unknown field \"wings\""),
            (#"{"to":"client","message":{"body":"x","peer":"@"}}"#, 422, "peer"),
            (#"{"to":"client","stanza":"#, 400, "not JSON"),
            ("", 422, "\"to\" is missing"),
        ] {
            let answer = try await scene.ask("POST", "/sessions/1/inject", body)
            #expect(answer.status == status, "\(body): \(answer.body)")
            #expect((answer.json["detail"] as? String)?.contains(words) == true, "\(body): \(answer.body)")
            #expect(answer.head.contains("application/problem+json"))
        }
        #expect(try await scene.isUntouched())
    }

    @Test func `DELETE closes a session with a stream error and removes it from the list`() async throws {
        let scene = try await ControlScene()
        #expect(try await scene.ask("DELETE", "/sessions/1").status == 204)
        try await scene.client.socket.read()
        #expect(scene.client.socket.received.contains("<undefined-condition"))
        #expect(scene.client.socket.received.contains("closed by the operator"))
        // The client's connection is still open.
        #expect((try await scene.ask("GET", "/sessions").json["sessions"] as? [Any])?.isEmpty == true)
        for (method, path) in [("DELETE", "/sessions/1"), ("GET", "/sessions/1"), ("POST", "/sessions/1/ping")] {
            let answer = try await scene.ask(method, path, method == "POST" ? #"{"to":"client"}"# : nil)
            #expect(answer.status == 404, "\(method) \(path): \(answer.body)")
            #expect(answer.json["code"] as? String == "no-such-session")
        }
    }

    @Test func `the log level changes while sessions run`() async throws {
        let scene = try await ControlScene()
        #expect(try await scene.ask("GET", "/level").json["level"] as? String == "info")
        #expect(try await scene.isUntouched())
        let changed = try await scene.ask("PUT", "/level", #"{"level":"verbose","session":1}"#)
        #expect((changed.json["sessions"] as? [String: String]) == ["1": "verbose"], "\(changed.body)")
        #expect(!scene.binary.process.text(of: .standardOutput).contains("SEND: <iq"))
        #expect(try await scene.isUntouched())
        _ = try await scene.binary.process.line(of: .standardOutput, within: .seconds(20)) { $0.contains("SEND: <iq") }
        let list = try await scene.ask("GET", "/sessions").json["sessions"] as? [[String: Any]]
        #expect(list?.first?["level"] as? String == "verbose")
        _ = try await scene.ask("PUT", "/level", #"{"level":null,"session":1}"#)
        for (body, part) in [(#"{"level":"warn"}"#, nil), (#"{"level":"trace","part":"sasl"}"#, "sasl")] {
            let answer = try await scene.ask("PUT", "/level", body)
            #expect(answer.json["level"] as? String == "warn")
            #expect((answer.json["parts"] as? [String: String])?.keys.first == part)
        }
        for wrong in [
            "{}", #"{"level":null}"#, #"{"level":"loud"}"#, #"{"level":"info","part":"x"}"#,
            #"{"level":"info","session":1,"jid":"a@b"}"#, #"{"level":"info","session":0}"#,
        ] {
            #expect(try await scene.ask("PUT", "/level", wrong).status == 422, "\(wrong)")
        }
    }

    @Test func `records are streamed live and redacted until the client disconnects`() async throws {
        let scene = try await ControlScene(["--log", "off"])
        let stream = try RawConnection(path: scene.path)
        try await stream.write("GET /records?level=verbose HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try await stream.read(through: ": xmpptap")
        let other = try await PlainClient(scene.juliet, port: scene.port)
        let text = try await stream.read(through: "session-ready")
        #expect(
            text.contains("event: record\nid: ") && text.contains("\ndata: {\"sequence\":")
                && text.contains(#""mechanism":"PLAIN""#)
        )
        #expect(!text.contains(scene.juliet.password))
        let secret = Data("\0juliet\0\(scene.juliet.password)".utf8).base64EncodedString()
        #expect(!text.contains(secret) && text.contains("[redacted:"))
        stream.close()
        try await other.leave()
        #expect(try await scene.isUntouched())
        #expect(try await scene.ask("GET", "/records?filter=(").status == 422)
        #expect(try await scene.ask("GET", "/records?level=loud").status == 422)
        #expect(try await scene.ask("GET", "/records?content=some").status == 400)
    }

    @Test func `metrics are served on the control socket and on the metrics port`() async throws {
        let scene = try await ControlScene(["--log", "info", "--metrics", "127.0.0.1:0"])
        let port = try scene.binary.metricsPort()
        // A second proxy does not take over the port, reports which option needs it, and leaves no control socket.
        let folder = try TemporaryFolder()
        let socket = folder.path(of: "second.sock")
        let second = try await XMPPTapBinary.run([
            "proxy", "--listen", "127.0.0.1:0", "--control", socket, "--metrics", "127.0.0.1:\(port)",
        ])
        #expect(!FileManager.default.fileExists(atPath: socket))
        #expect(second.ending == .exited(4) && !second.error.contains("listening"), "\(second)")
        #expect(
            second.error.contains(
                "--metrics: cannot listen on 127.0.0.1:\(port): the port is already in use; stop that program, or choose another port\n"
            ),
            "\(second.error)"
        )
        // The session does not end until the client's connection is closed too.
        var other: PlainClient? = try await PlainClient(scene.juliet, port: scene.port)
        #expect(try await scene.ask("DELETE", "/sessions/2").status == 204)
        try await other?.socket.read()
        other = nil
        let deadline = ContinuousClock.now + .seconds(20)
        while try await scene.ask("GET", "/health").json["sessions"] as? Int != 1, ContinuousClock.now < deadline {}
        let answer = try await ControlScene.ask(RawConnection(port: port), "GET", "/metrics")
        #expect(answer.head.contains("text/plain; version=0.0.4"))
        let own = try await scene.ask("GET", "/metrics").body
        for line in [
            #"xmpptap_sessions_total{outcome="tap"} 1"#, #"xmpptap_sessions_active{mode="cut-through"} 1"#,
            #"xmpptap_sasl_attempts_total{mechanism="PLAIN",flag="none",outcome="success"} 2"#,
            #"xmpptap_redactions_total{kind="sasl-plain"} 2"#, "xmpptap_leaf_mint_seconds_count 1",
            #"xmpptap_stanzas_total{direction="send",kind="presence",verdict="passed"} 2"#,
            #"xmpptap_audit_dropped_total{sink="standard output",reason="write"} 0"#,
            "# TYPE xmpptap_upstream_cert_not_after_timestamp_seconds gauge",
        ] {
            #expect(answer.body.contains("\(line)\n"), "\(line)")
            #expect(own.contains("\(line)\n"), "\(line)")
        }
        let lag = try #require(own.firstMatch(of: #/audit_lag_seconds{sink="standard output"} ([0-9.e-]+)\n/#)?.1)
        #expect(Double(lag) ?? -1 >= 0)
        #expect(!answer.body.contains("juliet"))
        // The proxy refuses requests with another host name, so that a web page cannot read the metrics through DNS
        // rebinding.
        let hosts = [
            ("evil.example", 421), ("evil.example:\(port)", 421), ("127.0.0.1.evil.example", 421),
            ("127.0.0.1:\(port)", 200), ("LOCALHOST", 200), ("[::1]:\(port)", 200),
        ]
        for (host, status) in hosts {
            let connection = try RawConnection(port: port)
            try await connection.write("GET /metrics HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n")
            let answer = try await connection.read(through: "\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(host): \(answer)")
        }
        let elsewhere = try await ControlScene.ask(RawConnection(port: port), "GET", "/sessions")
        #expect(elsewhere.status == 404)
    }

    @Test func `metrics count the effects of rules, pings and broken streams`() async throws {
        let folder = try TemporaryFolder()
        let rules = try folder.write("::recv\n\nKIND: presence\nDROP.\n\nKIND: message\nDELAY=150ms\n", to: "a.pfw")
        let scene = try await ControlScene(["--log", "info", "--rules", rules])
        _ = try await scene.ask("POST", "/sessions/1/ping", #"{"to":"server"}"#)
        try await scene.client.socket.write("<message to='juliet@localhost/balcony'><body>later</body></message>")
        try await scene.client.socket.read(until: "later")
        let broken = try await PlainClient(scene.juliet, port: scene.port)
        try await broken.socket.write("<message></body>")
        try await broken.socket.read()
        func metrics() async throws -> [String: Double] {
            let text = try await scene.ask("GET", "/metrics").body
            let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { $0.split(separator: " ") }
            return Dictionary(lines.map { (String($0[0]), Double($0[1]) ?? -1) }) { _, last in last }
        }
        let found = try await metrics()
        for (name, value) in [
            (#"xmpptap_ping_rtt_seconds_count{leg="server"}"#, 1.0),
            (#"xmpptap_ping_rtt_seconds_bucket{leg="server",le="+Inf"}"#, 1),
            (#"xmpptap_ping_rtt_seconds_count{leg="client"}"#, 0),
            (#"xmpptap_injected_stanzas_total{direction="send",kind="iq"}"#, 1),
            (#"xmpptap_stanzas_total{direction="recv",kind="message",verdict="passed"}"#, 1),
            ("xmpptap_stanza_delay_seconds_count", 1),
            (#"xmpptap_stanza_delay_seconds_bucket{le="0.1"}"#, 0),
            (#"xmpptap_parse_errors_total{leg="client",class="mismatched-tag"}"#, 1),
            (#"xmpptap_sessions_active{mode="store"}"#, 1), ("xmpptap_sm_divergence", 0),
            ("xmpptap_sm_ack_translations_total", 0),
        ] { #expect(found[name] == value, "\(name): \(String(describing: found[name]))") }
        // The answer to the proxy's ping is not counted as a dropped stanza of the session.
        #expect(found[#"xmpptap_stanzas_total{direction="recv",kind="iq",verdict="dropped"}"#] ?? 0 == 0)
        #expect(found["xmpptap_stanza_delay_seconds_sum"] ?? 0 >= 0.15)
        #expect(found["xmpptap_relay_latency_seconds_count"] ?? 0 > 0)
        let sent = (found[#"xmpptap_stream_bytes_total{leg="client",direction="send"}"#] ?? 0)
        // The ping is sent in addition to the client's data.
        #expect(found[#"xmpptap_stream_bytes_total{leg="server",direction="send"}"#] ?? 0 > sent)
        #expect(found[#"xmpptap_stream_bytes_total{leg="client",direction="recv"}"#] ?? 0 > 0)
        // Before authentication, an item may have at most 64 KiB.
        let stranger = try PlainSocket(port: scene.port)
        try await stranger.write(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
                + "<auth>" + String(repeating: "A", count: 70_000)
        )
        try await stranger.read(until: "policy-violation")
        #expect(try await metrics()[#"xmpptap_limit_hits_total{limit="login-item"}"#] == 1)
        // The metrics contain each limit even before it is reached.
        let limits = try await metrics().keys.filter { $0.hasPrefix("xmpptap_limit_hits_total") }
        #expect(
            Set(limits.compactMap { $0.firstMatch(of: /"(.*)"/).map { String($0.1) } }) == [
                "item", "login-item", "tag", "depth", "attributes", "name", "namespaces", "waiting", "connections",
                "connections-per-address", "connections-without-header", "login", "idle", "authorities",
            ]
        )
        // No counter decreases when sessions end.
        #expect(try await scene.ask("DELETE", "/sessions/1").status == 204)
        for (name, value) in try await metrics() where name.contains("_total") || name.contains("_count") {
            #expect(value >= found[name] ?? 0, "\(name)")
        }
    }

    @Test func `rule hits are streamed live with the tags of their stanzas`() async throws {
        let folder = try TemporaryFolder()
        let text =
            "::recv\n\nKIND: message\nINSPECT: body#=fast\nTAG TRACE=fast\n\n"
            + "KIND: message\nINSPECT: body#=slow\nTAG TRACE=slow\n"
        let scene = try await ControlScene(["--log", "off", "--rules", try folder.write(text, to: "tags.pfw")])
        let stream = try RawConnection(path: scene.path)
        try await stream.write("GET /rules/trace?tag=slow HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try await stream.read(through: ": xmpptap")
        for body in ["fast", "slow"] {
            try await scene.client.socket.write("<message to='juliet@localhost/balcony'><body>\(body)</body></message>")
            try await scene.client.socket.read(until: ">\(body)<")
        }
        let hit = try await stream.read(through: "\n\n")
        #expect(
            hit.contains("event: hit\n") && hit.contains(#""line":7"#) && hit.contains(#""tags":["slow"]"#),
            "\(hit)"
        )
        #expect(!hit.contains(">fast<"))
    }

    // MARK: Bad input

    @Test func `slow, broken and malformed requests, even many at once, do not affect sessions`() async throws {
        let scene = try await ControlScene()
        var idle: [RawConnection] = []
        // Each of these connections stays open: no data, an incomplete head, an incomplete body, garbage, and a request
        // with a response that is not read.
        for text in [
            "", "GET /sess", "POST /sessions/1/inject HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
            "\u{0}\u{1}\u{2}\r\n\r\n", "GET /records?level=trace HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            let connection = try RawConnection(path: scene.path)
            try await connection.write(text)
            idle.append(connection)
        }
        #expect(try await scene.isUntouched())
        #expect(try await scene.ask("GET", "/health").status == 200)
        // One client closes the connection in the middle of its request, and another does not wait for the response.
        try await RawConnection(path: scene.path).write("POST /sessions/1/ping HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")
        try await RawConnection(path: scene.path).write(
            "POST /sessions/1/ping HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{\"to\":\"client\"}"
        )
        let long = try await scene.ask("GET", "/" + String(repeating: "a", count: 200_000))
        #expect(long.status >= 400)
        #expect(try await scene.isUntouched())
        var flood: [RawConnection] = []
        for _ in 0..<500 {
            if let connection = try? RawConnection(path: scene.path) { flood.append(connection) }
        }
        #expect(try await scene.isUntouched())
        let refused = try await scene.ask("GET", "/health")
        #expect(refused.status == 503, "\(refused.body)")
        #expect(try await scene.isUntouched())
        for connection in flood + idle { connection.close() }
        var status = 503
        let deadline = ContinuousClock.now + .seconds(30)
        while status == 503, ContinuousClock.now < deadline {
            status = try await scene.ask("GET", "/health").status
        }
        #expect(status == 200)
        #expect(try await scene.isUntouched())
    }

    @Test func `a slow reader of live records loses some, is informed of it, and delays no session`() async throws {
        let scene = try await ControlScene(["--log", "off"])
        let stream = try RawConnection(path: scene.path)
        try await stream.write("GET /records?level=verbose HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try await stream.read(through: ": xmpptap")
        let body = String(repeating: "x", count: 10_000)
        for _ in 0..<500 {
            try await scene.client.socket.write("<message to='\(scene.juliet.jid)'><body>\(body)</body></message>")
        }
        #expect(try await scene.isUntouched())
        let text = try await stream.read(through: "event: lost\ndata: {\"records\":")
        #expect(text.contains("event: record"))
        #expect(try await scene.isUntouched())
    }

    @Test func `a ping that waits for its answer fails when the session ends`() async throws {
        let scene = try await ControlScene()
        let path = scene.path
        async let answer = ControlScene.ask(
            RawConnection(path: path),
            "POST",
            "/sessions/1/ping",
            #"{"to":"client","timeout_ns":60000000000}"#
        )
        try await scene.client.socket.read(until: "urn:xmpp:ping")
        try await scene.client.leave()
        let status = try await answer.status
        #expect(status == 409)
        #expect(try await scene.ask("GET", "/health").status == 200)
    }

    @Test func `a command fails if its session ends before it is executed`() async throws {
        let scene = try await ControlScene()
        let path = scene.path
        // When half of the message has reached the server, an injection has to wait for the other half.
        let half = "<message to='\(scene.juliet.jid)'><body>half"
        let relayed = try await scene.bytesSent() + half.utf8.count
        try await scene.client.socket.write(half)
        while try await scene.bytesSent() < relayed {}
        async let answer = ControlScene.ask(
            RawConnection(path: path),
            "POST",
            "/sessions/1/inject",
            #"{"to":"server","stanza":"<message to='romeo@localhost'/>"}"#
        )
        try await Task.sleep(for: .milliseconds(300))
        #expect(try await scene.ask("DELETE", "/sessions/1").status == 204)
        let injected = try await answer
        // 404 if the session ended before the command was handled.
        #expect([404, 409].contains(injected.status), "\(injected.body)")

        let folder = try TemporaryFolder()
        let rules = try folder.write("::recv\n\nINSPECT: body#=wait\nPAUSE.\n", to: "a.pfw")
        let holding = try await ControlScene(["--log", "info", "--rules", rules])
        try await holding.client.socket.write("<message to='\(holding.juliet.jid)/balcony'><body>wait</body></message>")
        var held: [String: Any]?
        while held == nil {
            held = (try await holding.ask("GET", "/sessions/1/held").json["held"] as? [[String: Any]])?.first
        }
        #expect(try await holding.ask("DELETE", "/sessions/1").status == 204)
        let number = try #require(held?["number"] as? Int)
        let passed = try await holding.ask("POST", "/sessions/1/held/\(number)", #"{"action":"pass"}"#)
        #expect(passed.status == 404 && passed.json["code"] as? String == "no-such-session", "\(passed.body)")
        try await PlainClient(holding.juliet, port: holding.port).leave()
    }

    @Test func `a filter selects the records that are shown, logged, captured and streamed`() async throws {
        let folder = try TemporaryFolder()
        let (log, capture) = (folder.path(of: "pings.json"), folder.path(of: "messages.xtap"))
        let scene = try await ControlScene([
            "--log", "verbose", "--filter", "message and body:shown or code:session-ready",
            "--log-to", "\(log),format=json,verbose,filter=payload:{urn:xmpp:ping}ping",
            "--capture", "\(capture),filter=message and send",
        ])
        let tail = try ToolProcess(
            #require(XMPPTapBinary.path),
            ["tail", "--control", scene.path, "--level", "verbose", "--filter", "message and recv and body~'^sh'"]
        )
        _ = try await scene.ask("GET", "/health")
        let me = scene.juliet.jid
        // Sends messages until the command is connected and shows records.
        var told = 0
        while tail.text(of: .standardOutput).isEmpty {
            try await scene.client.socket.write("<message to='\(me)/balcony'><body>shown</body></message>")
            told += 1
            try await Task.sleep(for: .milliseconds(100))
            guard tail.isRunning, told < 300 else { throw tail.failure("tail shows nothing") }
        }
        try await scene.client.socket.write("<message to='\(me)/balcony'><body>hidden</body></message>")
        #expect(try await scene.isUntouched())
        try await tail.terminate()
        #expect(try await scene.binary.process.terminate() == .exited(0))

        let streamed = tail.lines(of: .standardOutput)
        #expect(streamed.allSatisfy { $0.contains("RECV") && ($0.contains(">shown<") || $0.contains("body 5 B")) })
        let shown = scene.binary.process.lines(of: .standardOutput)
        #expect(shown.count { $0.contains(" SEND: <message") } == told && shown.contains { $0.contains("ready as") })
        #expect(shown.allSatisfy { $0.contains("message") || $0.contains("ready as") }, "\(shown)")
        #expect(!shown.contains { $0.contains("hidden") })
        let pings = try LogRecord.all(in: log)
        #expect(!pings.isEmpty && pings.allSatisfy { $0.payload == "{urn:xmpp:ping}ping" })
        let header = Tap.read(capture).prefix { $0 != "\n" }
        #expect(header.contains(#""filter":"message and send""#) && header.contains(#""complete":false"#), "\(header)")
        let read = try await XMPPTapBinary.run(["read", capture, "--log", "off,send,recv"])
        let lines = read.output.split(separator: "\n")
        #expect(lines.count == told + 1 && lines.allSatisfy { $0.contains("SEND: <message") }, "\(read)")
        #expect(lines.last?.contains("hidden") == true)
    }

    @Test func `a request body beyond the limit is refused before it is read`() async throws {
        let scene = try await ControlScene()
        let connection = try RawConnection(path: scene.path)
        let head =
            "POST /sessions/1/inject HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 104857600\r\n\r\n"
        try await connection.write(head)
        async let sent = connection.write([UInt8](repeating: 0x20, count: 104_857_600))
        let (bytes, _) = try await connection.read(within: .seconds(60)) { $0.count > 12 }
        #expect(String(decoding: bytes, as: UTF8.self).hasPrefix("HTTP/1.1 413"))
        connection.close()
        _ = try? await sent
        #expect(try await scene.isUntouched())
    }

    @Test func `the program exits at once if control clients do not read, and deletes its socket`() async throws {
        let scene = try await ControlScene(["--log", "info", "--grace", "1"])
        let stuck = try RawConnection(path: scene.path)
        let request = Array("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
        for _ in 0..<1000 { try await stuck.write(request, patience: .zero) }
        let stream = try RawConnection(path: scene.path)
        try await stream.write("GET /records HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try await stream.read(through: ": xmpptap")
        #expect(try await scene.binary.process.terminate() == .exited(0))
        #expect(!FileManager.default.fileExists(atPath: scene.path))
        // After the last record, the response ends properly.
        let (bytes, _) = try await stream.read(within: .seconds(5)) { _ in false }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("session-ended") && text.hasSuffix("0\r\n\r\n"), "\(text.suffix(300))")
    }

    @Test func `a control socket in use is not replaced, but a stale one is`() async throws {
        let scene = try await ControlScene()
        let arguments = ["proxy", "--listen", "127.0.0.1:0", "--control", scene.path]
        let second = try await XMPPTapBinary.run(arguments)
        #expect(second.ending == .exited(4))
        #expect(second.error.contains("a running program listens there"))
        #expect(try await scene.ask("GET", "/health").status == 200)
        scene.binary.process.signal(SIGKILL)
        _ = try await scene.binary.process.ending()
        let third = try XMPPTapBinary(arguments)
        _ = try await third.port()
        #expect(try await scene.ask("GET", "/health").json["sessions"] as? Int == 0)
        #expect(try await third.process.terminate() == .exited(0))
    }
}
