import Foundation
import TapTestKit
import Testing

/// Tests that the log of a login shows at least as much as XMPPFramework prints. The corpus contains a recording of
/// XMPPFramework's output.
@Suite(.timeLimit(.minutes(2)))
struct LoginLogTests {
    @Test(
        "The log of a login has the same lines in the same order as XMPPFramework's log",
        .enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set"),
        .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing")
    )
    func login() async throws {
        let printed = String(decoding: try Corpus.read("xmppframework-login.log"), as: UTF8.self)
            .split(separator: "\n").compactMap(Line.init)
        try #require(printed.count == 11)
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let client = try RawConnection(port: tap.port)
        // The bytes of the recorded client, with another account and server address.
        for (line, next) in zip(printed, printed.dropFirst().map(Optional.some) + [nil]) where line.direction == "SEND"
        {
            let text = line.xml
                .replacing("192.168.1.1", with: "localhost")
                .replacing(
                    "DJhJ5hsADHd824",
                    with: Data("\0juliet\0\(Account.juliet.password)".utf8).base64EncodedString()
                )
            try await client.write(text)
            guard let next, next.direction == "RECV" else { continue }
            try await client.read(through: next.ending)
        }
        try await client.write("</stream:stream>")
        try await client.read(through: "</stream:stream>")
        client.close()
        try await tap.wait(for: "session-ended", in: tap.json)
        try await tap.stop()
        try await server.stop()

        let logged = tap.lines().compactMap(Line.init)
        var rest = logged[...]
        for line in printed {
            let position = rest.firstIndex { $0.direction == line.direction && $0.shape == line.shape }
            guard let position else {
                Issue.record("no \(line.direction): \(line.shape)… in order; the log is\n\(Tap.read(tap.text))")
                return
            }
            rest = rest[(position + 1)...]
        }
        let auth = try #require(logged.first { $0.xml.hasPrefix("<auth") })
        #expect(auth.xml.contains("[redacted:sasl-plain#1]</auth>"))
        #expect(auth.xml.contains(#"mechanism="PLAIN""#))
        let bind = try #require(logged.first { $0.xml.contains("<resource>") })
        #expect(bind.xml.contains("<resource>iOS_V1.0</resource>"))
        #expect(logged.contains { $0.who == "juliet@localhost/iOS_V1.0" })

        // The story of the same login: one line per event, and no XML.
        let story = Tap.read(tap.story)
        for word in [
            "connected", "PLAIN", "success", "bind", "ready as juliet@localhost/iOS_V1.0", "closed by the client",
        ] {
            #expect(story.contains(word), "no \(word) in the story:\n\(story)")
        }
        #expect(!story.contains("<"))
    }

    /// A SEND or RECV line of XMPPFramework's log or of xmpptap's: `TIME [SESSION WHO] SEND: XML`.
    private struct Line {
        var direction: String
        var who: String?
        var xml: String

        init?(_ line: Substring) {
            guard
                let match = line.wholeMatch(
                    of: /(?:[\d-]{10}T)?[\d:]{8}\.\d{3}Z? +(?:\[\d+(?: (.+?))?\] )?(SEND|RECV): (<.*)/
                )
            else { return nil }
            (who, direction, xml) = (match.1.map(String.init), String(match.2), String(match.3))
        }

        init?(_ line: String) { self.init(line[...]) }

        /// The features by which the corresponding line of another login is found: the kind of item, and its first
        /// child.
        var shape: String {
            if xml.hasPrefix("<?xml") { return "<?xml" }
            if xml.hasPrefix("<stream:stream") { return "<stream:stream" }
            if xml.hasPrefix("<stream:features") {
                let features = ["<mechanism>PLAIN</mechanism>", "<bind", "<session"]
                return "<stream:features" + features.filter { xml.contains($0) }.joined()
            }
            let name = xml.prefix { !$0.isWhitespace && $0 != ">" && $0 != "/" }
            guard name == "<iq" else { return String(name) }
            let type = xml.contains("result") ? "result" : "set"
            for child in ["<bind", "<session"] where xml.contains(child) { return "\(name) \(type) \(child)" }
            return "\(name) \(type)"
        }

        /// The text at the end of the item, after which it has arrived completely.
        var ending: String {
            if xml.hasPrefix("<stream:features") { return "</stream:features>" }
            if xml.hasPrefix("<success") { return "<success" }
            return xml.contains("<jid>") ? "</iq>" : "result"
        }
    }
}
