import Foundation
import TapTestKit
import Testing

/// The page in the browser: live, of a capture, and as a file.
@Suite(.timeLimit(.minutes(15))) struct PageTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent()

    /// Checks the page at a URL in a headless browser.
    ///
    /// - Parameters:
    ///   - scene: `live`, `view`, or `page` for a file with its reduced filters.
    ///   - program: Chromium or Firefox.
    private static func browse(_ url: String, _ scene: String, in program: TestProgram = .chromium) async throws {
        let script = root.appending(path: "Page/browser.mjs").path
        let browser = try ToolProcess(
            TestProgram.node.rawValue,
            [script, scene, url] + (program == .firefox ? ["firefox"] : [])
        )
        let ending = try await browser.ending(within: .seconds(280))
        let output = browser.text(of: .standardOutput)
        #expect(ending == .exited(0), "\(scene): \(output)\(browser.text(of: .standardError))")
        #expect(output.contains("no fault, no violation of the policy, no request to others"))
        if program == .chromium && ["live", "page", "report"].contains(scene) { expectAxe(output) }
    }

    /// Expects that the checks of axe were made, if it is installed.
    private static func expectAxe(_ output: String) {
        let script = root.appending(path: "../../.build/axe/axe_playwright_python/axe.min.js").standardized.path
        guard FileManager.default.fileExists(atPath: script) else { return }
        #expect(output.contains("axe finds nothing serious"))
    }

    static func url(_ binary: XMPPTapBinary) async throws -> String {
        let line = try await binary.process.line(of: .standardError, within: .seconds(60)) { $0.contains("http://127") }
        return try #require(line.split(separator: " ").last { $0.hasPrefix("http://") }.map(String.init))
    }

    /// Asks for data as a page does, so that records are kept for the next minute.
    static func begin(_ url: String) async throws {
        let (address, token) = try #require(
            url.firstMatch(of: /http:\/\/(127\.0\.0\.1:\d+)\/#token=(\w+)/).map { ($0.1, $0.2) }
        )
        let port = try #require(address.split(separator: ":").last.flatMap { UInt16($0) })
        let connection = try RawConnection(port: port)
        try await connection.write(
            "GET /page/state HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\nAuthorization: Bearer \(token)\r\n\r\n"
        )
        let (answer, _) = try await connection.read(within: .seconds(30)) { _ in false }
        #expect(String(decoding: answer, as: UTF8.self).contains("\"since\":"))
    }

    /// Returns the password of a user of the built-in server.
    static func password(of user: String, _ binary: XMPPTapBinary) async throws -> String {
        let line = try await binary.process.line(of: .standardError, within: .seconds(60)) {
            $0.contains("\(user)@localhost") && $0.contains("password")
        }
        return line.split(separator: " ").last.map(String.init) ?? ""
    }

    /// Lets a client fail to log in, and two others talk.
    private static func talk(_ binary: XMPPTapBinary) async throws {
        func password(of user: String) async throws -> String { try await Self.password(of: user, binary) }
        let port = try await binary.port()
        let wrong = try PlainSocket(port: port)
        try await wrong.openStream(to: "localhost")
        try await wrong.write(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHJvbWVvAHdyb25n</auth>"
        )
        try await wrong.read(until: "</failure>")
        try await wrong.write("</stream:stream>")
        try await wrong.read()
        let romeo = try await PlainClient(
            Account("romeo", password: password(of: "romeo")),
            port: port,
            resource: "orchard"
        )
        let juliet = try await PlainClient(
            Account("juliet", password: password(of: "juliet")),
            port: port,
            resource: "balcony"
        )
        let picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        try await juliet.socket.write(
            "<iq type='set' id='avatar'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='urn:xmpp:avatar:data'>"
                + "<item id='x'><data xmlns='urn:xmpp:avatar:data'>\(picture)</data></item></publish></pubsub></iq>"
        )
        try await juliet.socket.read(until: "avatar")
        let request = "<request xmlns='urn:xmpp:receipts'/>"
        try await juliet.socket.write(
            "<message to='romeo@localhost/orchard' type='chat' id='t1'><body>Art thou not Romeo?</body>\(request)</message>"
        )
        try await romeo.socket.read(until: "Art thou not Romeo?")
        try await romeo.socket.write(
            "<message to='juliet@localhost/balcony' type='chat' id='r1'><received xmlns='urn:xmpp:receipts' id='t1'/></message>"
                + "<message to='juliet@localhost/balcony' type='chat' id='t2'><body>Neither, fair saint</body></message>"
                + "<message to='juliet@localhost/balcony' type='chat' id='t3'><body>Neither, fair maid</body>"
                + "<replace xmlns='urn:xmpp:message-correct:0' id='t2'/></message>"
                + "<message to='juliet@localhost/balcony' type='chat' id='t4'><body>the contract is signed "
                + "&lt;script>window.executed=1&lt;/script>&lt;img src=x onerror='window.executed=1'> \u{202E}</body>\(request)</message>"
                + "<iq type='get' id='p1' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        try await romeo.socket.read(until: "p1")
        try await juliet.socket.read(until: "the contract is signed")
        try await romeo.leave()
        try await juliet.leave()
    }

    /// Captures the traffic of a proxy, and checks its live page.
    private static func talkLive(_ capture: String, in program: TestProgram) async throws {
        let proxy = try XMPPTapBinary([
            "proxy", "--listen", "127.0.0.1:0", "--web", "0", "--log", "off", "--capture", capture, "--control", "none",
        ])
        let live = try await url(proxy)
        // A page has to be open: records are only kept for pages.
        try await begin(live)
        try await talk(proxy)
        try await browse(live, "live", in: program)
        proxy.process.signal(SIGTERM)
        #expect(try await proxy.process.ending(within: .seconds(60)) == .exited(0))
    }

    /// Writes the page of a capture to a file, and checks it.
    private static func browseFile(of capture: String, _ folder: TemporaryFolder, in program: TestProgram) async throws
    {
        let page = folder.path(of: "talk.html")
        let converted = try await XMPPTapBinary.run(["convert", capture, page])
        #expect(converted.ending == .exited(0) && converted.error.isEmpty, "\(converted.error)")
        try await browse("file://\(page)", "page", in: program)
    }

    @Test(
        .enabled(
            if: TestProgram.areInstalled(.firefox, .node, .nodeWebSocket),
            "Firefox, Node.js or its library for WebSockets is missing"
        )
    )
    func `Firefox shows the page live and as a file`() async throws {
        let folder = try TemporaryFolder()
        let capture = folder.path(of: "talk.xtap")
        try await Self.talkLive(capture, in: .firefox)
        try await Self.browseFile(of: capture, folder, in: .firefox)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.chromium, .node), "Chromium or Node.js is missing"))
    func `the page shows the same sessions live, of a capture and as a file`() async throws {
        let folder = try TemporaryFolder()
        let capture = folder.path(of: "talk.xtap")
        try await Self.talkLive(capture, in: .chromium)

        let view = try XMPPTapBinary(["view", capture])
        try await Self.browse(Self.url(view), "view")
        view.process.signal(SIGINT)
        #expect(try await view.process.ending(within: .seconds(60)) == .exited(0))

        // A store has no login steps, but the same messages, which are found, and the cause of the failed login.
        let store = folder.path(of: "talk.sqlite")
        let stored = try await XMPPTapBinary.run(["convert", capture, store])
        #expect(stored.ending == .exited(0), "\(stored)")
        let audit = try XMPPTapBinary(["view", store])
        try await Self.browse(Self.url(audit), "store")
        audit.process.signal(SIGINT)
        #expect(try await audit.process.ending(within: .seconds(60)) == .exited(0))

        let other = folder.path(of: "other.xtap")
        let report = folder.path(of: "report.html")
        try folder.read("talk.xtap").replacing("Art thou not Romeo?", with: "Art thou not Paris?")
            .write(toFile: other, atomically: true, encoding: .utf8)
        let compared = try await XMPPTapBinary.run(["diff", capture, other, "--report", report])
        #expect(compared.ending == .exited(1), "\(compared)")
        try await Self.browse("file://\(report)", "report")

        try await Self.browseFile(of: capture, folder, in: .chromium)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.chromium, .node), "Chromium or Node.js is missing"))
    func `the page injects, pings, holds, edits, drops, switches rules and makes tests`() async throws {
        let folder = try TemporaryFolder()
        let capture = folder.path(of: "acts.xtap")
        let rules = try folder.write("::send\n\nINSPECT: body#=shout\nSET=body#=SHOUT\n", to: "a.pfw")
        let control = folder.path(of: "control.sock")
        let proxy = try XMPPTapBinary([
            "proxy", "--listen", "127.0.0.1:0", "--web", "0", "--web-act", "--log", "info", "--capture", capture,
            "--rules", rules, "--control", control,
        ])
        let script = Self.root.appending(path: "Page/act.mjs").path
        let (url, port) = (try await Self.url(proxy), try await proxy.port())
        let (juliet, romeo) = (
            try await Self.password(of: "juliet", proxy), try await Self.password(of: "romeo", proxy)
        )
        let program = try #require(XMPPTapBinary.path)
        let browser = try ToolProcess(
            TestProgram.node.rawValue,
            [script, url, "\(port)", juliet, romeo, rules, control, program, capture]
        )
        let ending = try await browser.ending(within: .seconds(280))
        let output = browser.text(of: .standardOutput)
        #expect(ending == .exited(0), "\(output)\(browser.text(of: .standardError))")
        #expect(output.contains("no fault, no violation of the policy"))
        Self.expectAxe(output)
        proxy.process.signal(SIGTERM)
        #expect(try await proxy.process.ending(within: .seconds(60)) == .exited(0))
    }

    @Test func `the page is only for this machine, and its port is never a client's server`() async throws {
        let folder = try TemporaryFolder()
        let header =
            #"{"xtap":1,"tool":"test","time":"2026-11-29T10:00:00Z","level":"verbose","filter":null,"complete":true,"redaction":"secrets","run":"a"}"#
        let capture = try folder.write(header + "\n", to: "empty.xtap")
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8080"] {
            let proxy = try await XMPPTapBinary.run(["proxy", "--web", address])
            #expect(proxy.ending == .exited(2) && proxy.error.contains("ssh -L"), "\(proxy.error)")
            let view = try await XMPPTapBinary.run(["view", capture, "--listen", address])
            #expect(view.ending == .exited(2) && view.error.contains("ssh -L"), "\(view.error)")
        }
        let port = try FreePort.next()
        let loop = try await XMPPTapBinary.run([
            "proxy", "--web", "\(port)", "--listen", "127.0.0.1:0", "--upstream", "localhost:\(port)", "--log", "off",
        ])
        #expect(loop.ending == .exited(2) && loop.error.contains("this proxy itself"), "\(loop.error)")
    }

    @Test(.enabled(if: TestProgram.areInstalled(.node), "Node.js is missing"))
    func `the scripts of the page read XML, quote for the shell, and know pictures by their first bytes`() async throws
    {
        let folder = Self.root.appending(path: "../../Sources/TapControl/Web").standardized.path
        let script = Self.root.appending(path: "Page/scripts.mjs").path
        let run = try ToolProcess(TestProgram.node.rawValue, [script, folder])
        let ending = try await run.ending(within: .seconds(120))
        #expect(ending == .exited(0), "\(run.text(of: .standardError))")
    }

    @Test(.enabled(if: TestProgram.areInstalled(.tsc), "tsc is missing"))
    func `the scripts of the page have the types that their comments say`() async throws {
        let mains = ["main.js", "filesource.js"].map {
            Self.root.appending(path: "../../Sources/TapControl/Web/\($0)").standardized.path
        }
        let check = try ToolProcess(
            TestProgram.tsc.rawValue,
            [
                "--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--module", "es2022", "--lib",
                "es2022,dom,dom.iterable",
            ] + mains
        )
        let ending = try await check.ending(within: .seconds(280))
        #expect(ending == .exited(0), "\(check.text(of: .standardOutput))")
    }
}
