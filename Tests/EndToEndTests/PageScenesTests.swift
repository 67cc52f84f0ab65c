import Foundation
import TapTestKit
import Testing

/// The page in Chromium with real clients, under load, and after restarts; and `view` of all kinds of recordings.
@Suite(
    .serialized,
    .timeLimit(.minutes(10)),
    .enabled(
        if: TestProgram.areInstalled(.chromium, .node) && XMPPTapBinary.path != nil,
        "Chromium, Node.js or xmpptap is missing"
    )
)
struct PageScenesTests {
    /// Runs a script that drives the page, and expects that all its facts hold.
    private static func run(_ script: String, _ arguments: [String]) async throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Page/\(script)").path
        let browser = try ToolProcess(TestProgram.node.rawValue, [file] + arguments)
        let ending = try await browser.ending(within: .seconds(280))
        let output = browser.text(of: .standardOutput)
        #expect(ending == .exited(0), "\(script): \(output)\(browser.text(of: .standardError))")
        #expect(output.contains("no fault, no violation of the policy"))
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing"))
    func `the page shows slixmpp clients that talk through Prosody, and why logins failed`() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port, arguments: ["--web", "0"])
        let url = try await PageTests.url(tap.binary)
        try await PageTests.begin(url)
        let options = ["--capabilities", "--receipts"]
        for _ in 1...2 {
            let wrong = Account("romeo", password: "wrong")
            let client = try ScriptedClient(.slixmpp, as: wrong, port: tap.port)
            try await client.event("failed")
        }
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: tap.port,
            .init(ping: true, reply: "I take thee at thy word", receive: 1),
            options: options
        )
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .slixmpp,
            as: .romeo,
            port: tap.port,
            .init(send: [(.juliet, "the contract is signed")], receive: 1),
            options: options
        )
        try await romeo.finish()
        try await juliet.finish()
        try await Self.run("clients.mjs", [url])
        try await tap.stop()
        try await server.stop()
    }

    @Test func `the page outlives its proxy, and announces the next run`() async throws {
        try await Self.run("restart.mjs", [try #require(XMPPTapBinary.path)])
    }

    @Test func `50 tabs, 200 connections and a sleeping browser disturb neither relay nor page`()
        async throws
    {
        let proxy = try XMPPTapBinary([
            "proxy", "--listen", "127.0.0.1:0", "--web", "0", "--log", "off", "--control", "none",
        ])
        let url = try await PageTests.url(proxy)
        try await Self.run(
            "load.mjs",
            [url, "\(try await proxy.port())", try await PageTests.password(of: "juliet", proxy)]
        )
        proxy.process.signal(SIGTERM)
        #expect(try await proxy.process.ending(within: .seconds(60)) == .exited(0))
    }

    @Test func `view shows twelve hours, a folder, packets and a client log, and keeps filters`()
        async throws
    {
        let folder = try TemporaryFolder()
        let corpus = Corpus.folder.map { [$0.path] } ?? []
        try await Self.run("recordings.mjs", [try #require(XMPPTapBinary.path), folder.path] + corpus)
    }
}
