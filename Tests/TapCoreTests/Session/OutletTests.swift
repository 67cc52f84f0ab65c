import Foundation
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules
@testable import TapStreamManagement

/// Tests that ``Outlet`` is the only output of a session.
@Suite struct OutletTests {
    /// A client or server that counts stanzas as XEP-0198 §4 requires, and decodes its input.
    private struct Peer: ~Copyable {
        var sent: UInt32 = 0
        private(set) var received: UInt32 = 0
        /// The counts in the acknowledgements that the peer received.
        private(set) var acknowledged: [UInt32] = []
        private var decoder = StreamDecoder()
        private var readCount: Int

        init(after count: Int) {
            readCount = count
            let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
            let bytes = Array(header.utf8)
            decoder.append(bytes.span)
            _ = decoder.next()
        }

        mutating func read(_ input: [UInt8]) {
            let bytes = Array(input[readCount...])
            decoder.append(bytes.span)
            readCount = input.count
            while let event = decoder.next() {
                guard event.item == .element else { continue }
                if event.head.kind != .nonza { received += 1 }
                let text = decoder.bytes.string()
                guard text.hasPrefix("<a "), let match = text.firstMatch(of: #/h='(\d+)'/#) else { continue }
                acknowledged.append(UInt32(match.1) ?? .max)
            }
        }
    }

    private static let rules = """
        ::both

        PAYLOAD: urn:example:drop
        DROP.

        PAYLOAD: urn:example:edit
        STRIP=x urn:example:edit

        PAYLOAD: urn:example:twice
        DUPLICATE.

        PAYLOAD: urn:example:bounce
        BOUNCE=service-unavailable
        """

    /// Each stanza counts for both peers, whether it is forwarded or not. Whatever rules and users do, a peer whose
    /// stanzas were all handled gets an acknowledgement with the number of stanzas that it has sent.
    @Test(arguments: 0..<60)
    func `each peer is acknowledged its own count, whatever rules and injections change`(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var options = SessionOptions(level: .info)
        options.rules = LiveRules(try RuleSet.test(Self.rules)) { _ in RuleLocalTime() }
        var harness = SessionHarness(options: options)
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("<enable xmlns='urn:xmpp:sm:3'/>")
        harness.recv("<enabled xmlns='urn:xmpp:sm:3'/>")
        var client = Peer(after: harness.toClient.count)
        var server = Peer(after: harness.toServer.count)
        for number in 0..<80 {
            let isSend = Bool.random(using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0: harness.send("<a xmlns='urn:xmpp:sm:3' h='\(client.received)'/>")
            case 1: harness.recv("<a xmlns='urn:xmpp:sm:3' h='\(server.received)'/>")
            case 2:
                let item = "<message id='i\(number)'><body>injected</body></message>"
                harness.inject(Injection(Array(item.utf8), to: isSend ? .server : .client, number: 1))
            default:
                let payload = ["plain", "drop", "edit", "twice", "bounce"].randomElement(using: &random) ?? ""
                let child = "<x xmlns='urn:example:\(payload)'/>"
                let stanza = "<iq type='get' id='q\(number)'>\(child)</iq>"
                if isSend { client.sent += 1 } else { server.sent += 1 }
                if isSend { harness.send(stanza) } else { harness.recv(stanza) }
            }
            let before = (client.acknowledged.count, server.acknowledged.count)
            client.read(harness.toClient)
            server.read(harness.toServer)
            // The acknowledgement covers all stanzas, because the other peer has acknowledged the delivered ones, and
            // xmpptap handles the rest.
            for count in client.acknowledged[before.0...] { #expect(count == client.sent, "step \(number)") }
            for count in server.acknowledged[before.1...] { #expect(count == server.sent, "step \(number)") }
            let counts = harness.session.ledgers
            #expect(counts?.send.delivered == UInt64(server.received), "step \(number)")
            #expect(counts?.recv.delivered == UInt64(client.received), "step \(number)")
        }
        #expect(!client.acknowledged.isEmpty && !server.acknowledged.isEmpty)
        #expect(harness.told(code: "wrong-acknowledgement").isEmpty)
    }

    /// Checks a restriction that the language cannot enforce: other files of the target neither append commands nor
    /// count stanzas.
    @Test func `only the outlet sends bytes and counts stanzas`() throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent()
        let sources = tests.appending(path: "../../../Sources/TapCore").standardized
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        // The outlet, its queue, and the counts that it updates.
        let allowed: Set = ["Outlet.swift", "Command.swift", "StreamManagement.swift"]
        let sending = #/Command\.(send|forward|finish|close)\b|\.append\(forwarding:|CommandQueue\(\)/#
        let counting =
            #/(ledgers?(\[\w+\]|\.send|\.recv)?|[sS]treamManagement\??|translator)\.(pass|drop|inject)\(/#
        var read = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            read += 1
            guard !allowed.contains(file.lastPathComponent) else { continue }
            for (number, line) in try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n",
                omittingEmptySubsequences: false
            ).enumerated() where !line.contains("///") {
                let isClean = line.firstMatch(of: sending) == nil && line.firstMatch(of: counting) == nil
                #expect(isClean, "\(file.lastPathComponent):\(number + 1): \(line)")
            }
        }
        #expect(read > 70)
    }

    /// A private property is accessible only within its file, so the session must consist of one file.
    @Test func `the session type is in one file, and its properties are private`() throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent()
        let sources = tests.appending(path: "../../../Sources/TapCore").standardized
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        var properties = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            guard file.lastPathComponent == "Session.swift" else {
                #expect(!text.contains("extension Session {"), "\(file.lastPathComponent)")
                continue
            }
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count <= 800)
            for line in lines where line.wholeMatch(of: #/ {4}([a-z()]+ )*(var|let) \w+(: [^{]+| = .*)/#) != nil {
                properties += 1
                #expect(line.hasPrefix("    private "), "\(line)")
            }
        }
        #expect(properties > 8)
    }
}
