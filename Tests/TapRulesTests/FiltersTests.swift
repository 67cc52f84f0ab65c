import Foundation
import TapTestKit
import Testing
import XMPPCore

import TapRecord
@testable import TapRules

/// Tests the shipped rule files with stanzas that each file affects and stanzas that it does not, and checks the
/// reference in `filters/README.md`.
@Suite struct FiltersTests {
    private static let folder = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
        .appending(path: "../../filters").standardized

    private static func text(_ file: String) throws -> String {
        try String(contentsOf: folder.appending(path: file), encoding: .utf8)
    }

    private static var files: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".pfw") }.sorted()
        }
    }

    /// Returns the decision of a rule file on a stanza, and the other effects.
    private func judge(
        _ file: String,
        _ stanzas: [(Direction, String)],
        phase: RulePhase = .open,
        roster: Roster? = nil
    ) throws -> [String] {
        let judge = Judge(try RuleSet([RuleSource(name: file, text: try Self.text(file))]))
        judge.context.phase = phase
        judge.context.roster = roster
        judge.context.clientAddress = "192.0.2.7"
        return try stanzas.map { direction, xml in
            let verdict = try judge.judge(direction, xml)
            #expect(verdict.remarks.map(\.remark) == [])
            let fate =
                switch verdict.decision {
                case .pass: verdict.editedText ?? "passed"
                case .drop: "dropped"
                case .fault(let fault): fault.description
                }
            return ([fate] + verdict.actions.map(\.action.description)).joined(separator: "; ")
        }
    }

    @Test func `Every filter file loads without a warning and is listed with its description`() throws {
        let reference = try Self.text("README.md")
        let files = try Self.files
        #expect(files.count >= 16)
        for file in files {
            let text = try Self.text(file)
            let rules = try RuleSet([RuleSource(name: file, text: text)])
            #expect(rules.warnings.isEmpty && rules.count > 0)
            let summary = try #require(text.split(separator: "\n").first)
            #expect(summary.hasPrefix("# ") && (summary.hasSuffix(".") || summary.hasSuffix("?")))
            #expect(reference.contains("- [\(file)](\(file)): \(summary.dropFirst(2))\n"))
        }
    }

    @Test func `The reference shows every term with an example that loads`() throws {
        let definitions = """
            %ZONE staff: staff.example
            %LIST bad: memory
            %RATE calm: 2
            %SEARCH body: body#
            %PATTERN link (regex): https?://(\\S+)

            ::user/spam
            PASS.

            ::both

            """
        let reference = try Self.text("README.md")
        // The conditions of filters have a different syntax; `RecordFilterTests` tests them.
        let rules = try #require(reference.split(separator: "\n## Filters\n").first)
        var terms: Set<String> = []
        for line in rules.split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.replacing("\\|", with: "\u{1}").split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces).replacing("\u{1}", with: "|")
            }
            guard cells.count >= 3, cells[2].hasPrefix("`"), cells[2].hasSuffix("`"), !cells[0].hasPrefix("`::") else {
                continue
            }
            let term = String(cells[0].dropFirst().prefix { $0 != "`" })
            let example = String(cells[2].dropFirst().dropLast())
            #expect(example.hasPrefix(term) || example.hasPrefix("NOT \(term)"))
            terms.insert(term)
            // These conditions and actions are refused in rules that do not select the elements they need.
            let needed = ["SASL FAILURE": "ELEMENT: auth\n", "LOSE ACK": "ELEMENT: {urn:xmpp:sm:3}a\n"][term] ?? ""
            let isCondition = RuleConditionName(rawValue: term) != nil && !example.hasPrefix("\(term)=")
            let rule =
                term.hasPrefix("%")
                ? "\(example.replacing("file:bad.txt", with: "memory"))\n" : isCondition ? "\(example)\nDROP." : example
            #expect(throws: Never.self, "\(example)") { try RuleSet.test(definitions + needed + rule) }
        }
        let known = RuleConditionName.allCases.map(\.rawValue) + RuleActionName.allCases.map(\.rawValue)
        #expect(Set(known).subtracting(terms) == [])
        for refused in RuleConditionName.refused.keys.map(\.self) + RuleActionName.refused.keys {
            #expect(reference.contains("`\(refused)`"))
        }
        let blocks = reference.split(separator: "```pfw\n").dropFirst().compactMap { $0.split(separator: "```").first }
        #expect(blocks.count >= 3)
        for block in blocks { #expect(try RuleSet.test(String(block)).count == 1, "\(block)") }
    }

    // MARK: Dropped, bounced and edited stanzas

    private static let state = "<active xmlns='http://jabber.org/protocol/chatstates'/>"

    @Test func `no-typing drops typing notifications and removes chat states from messages with text`() throws {
        #expect(
            try judge(
                "no-typing.pfw",
                [
                    (.send, "<message to='romeo@example.net'>\(Self.state)</message>"),
                    (.send, "<message to='romeo@example.net'><body>x</body>\(Self.state)</message>"),
                    (.send, "<message to='romeo@example.net'><body>x</body></message>"),
                    (.recv, "<message from='romeo@example.net'>\(Self.state)</message>"),
                ]
            ) == ["dropped", "<message to='romeo@example.net'><body>x</body></message>", "passed", "passed"]
        )
    }

    @Test func `appear-offline drops presence and receipts for the listed contacts`() throws {
        #expect(
            try judge(
                "appear-offline.pfw",
                [
                    (.send, "<presence to='paris@example.com'/>"), (.send, "<presence to='romeo@example.com'/>"),
                    (.send, "<presence to='tybalt@example.org/x' type='unavailable'/>"), (.send, "<presence/>"),
                    (.send, "<message to='paris@example.com'><received xmlns='urn:xmpp:receipts' id='1'/></message>"),
                    (
                        .send,
                        "<message to='paris@example.com'><body>x</body><request xmlns='urn:xmpp:receipts'/></message>"
                    ),
                ]
            ) == ["dropped", "passed", "passed", "passed", "dropped", "passed"]
        )
    }

    @Test func `block-roster-changes refuses changes of roster and vCard, and passes queries`() throws {
        let outcomes = try judge(
            "block-roster-changes.pfw",
            [
                (.send, "<iq type='set' id='1'><query xmlns='jabber:iq:roster'><item jid='a@b'/></query></iq>"),
                (.send, "<iq type='set' id='2'><vCard xmlns='vcard-temp'/></iq>"),
                (.send, "<iq type='get' id='3'><query xmlns='jabber:iq:roster'/></iq>"),
                (.recv, "<iq type='set' id='4'><query xmlns='jabber:iq:roster'><item jid='a@b'/></query></iq>"),
            ]
        )
        #expect(outcomes.map { $0.contains("<not-allowed") } == [true, true, false, false])
        #expect(
            outcomes[2...] == ["passed", "passed"]
                && outcomes[0].hasPrefix("dropped; bounce to the client: <iq type='error' id='1'")
        )
    }

    @Test func `freeze-subscriptions drops subscription stanzas in both directions`() throws {
        #expect(
            try judge(
                "freeze-subscriptions.pfw",
                [
                    (.send, "<presence type='subscribe' to='a@b'/>"),
                    (.recv, "<presence type='unsubscribed' from='a@b'/>"),
                    (.recv, "<presence from='a@b'/>"),
                ]
            ) == ["dropped", "dropped", "passed"]
        )
    }

    @Test func `rewrite-domain rewrites a domain in both directions, also in the roster`() throws {
        #expect(
            try judge(
                "rewrite-domain.pfw",
                [
                    (.send, "<message to='romeo@chat.example.net/x'/>"),
                    (.send, "<iq to='chat.example.net' id='1' type='get'/>"),
                    (.send, "<message to='romeo@other.example'/>"), (.recv, "<message from='romeo@example.net/x'/>"),
                    (
                        .recv,
                        "<iq type='result' id='1'><query xmlns='jabber:iq:roster'><item jid='a@example.net'/></query></iq>"
                    ),
                    (.recv, "<message from='romeo@chat.example.net'/>"),
                ]
            ) == [
                "<message to='romeo@example.net/x'/>", "<iq id='1' type='get' to='example.net'/>", "passed",
                "<message from='romeo@chat.example.net/x'/>",
                "<iq type='result' id='1'><query xmlns='jabber:iq:roster'><item jid='a@chat.example.net'/></query></iq>",
                "passed",
            ]
        )
    }

    @Test func `echo-bot answers a message with the same text`() throws {
        #expect(
            try judge(
                "echo-bot.pfw",
                [
                    (.send, "<message to='echo@example.net' id='1'><body>a &lt; b</body></message>"),
                    (.send, "<message to='romeo@example.net'><body>x</body></message>"),
                ]
            ) == [
                "dropped; reply to the client: <message id='1' from='echo@example.net' to='juliet@example.net/balcony'><body>a &lt; b</body></message>",
                "passed",
            ]
        )
    }

    @Test func `anti-spam limits the rate and the links of strangers, not of contacts`() throws {
        let outcomes = try judge(
            "anti-spam.pfw",
            [
                (.recv, "<message from='x@y/1' type='chat'><body>hello</body></message>"),
                (.recv, "<message from='x@y/2' type='chat'><body>again</body></message>"),
                (.recv, "<message from='z@y/1'><body>see https://example.com</body></message>"),
                (.recv, "<message from='romeo@example.net/1'><body>see https://example.com</body></message>"),
                (.recv, "<message from='romeo@example.net/1'><body>again</body></message>"),
            ],
            roster: try Roster.ofTwo()
        )
        #expect(outcomes.map { $0.hasPrefix("dropped") } == [false, true, true, false, false])
        #expect(outcomes[1].contains("Too many messages") && outcomes[2].contains("No links"))
    }

    @Test func `anti-spam refuses a stranger's message with a listed word, regardless of case`() throws {
        let source = RuleSource(name: "anti-spam.pfw", text: try Self.text("anti-spam.pfw"))
        let judge = Judge(
            try RuleSet([source]) {
                $0 == "filters/words.txt" ? .contents(Array("Lottery\ninheritance\n".utf8)) : .missing
            }
        )
        judge.context.roster = try Roster.ofTwo()
        for (index, (body, isRefused)) in [
            ("you won the LOTTERY!", true), ("an inheritance, for you", true), ("lotteries are silly", false),
        ].enumerated() {
            let stanza = "<message from='x\(index)@y/1'><body>\(body)</body></message>"
            let verdict = try judge.judge(.recv, stanza)
            #expect((verdict.decision == .drop) == isRefused, "\(body)")
            #expect(verdict.injected.contains { $0.contains("A word is not allowed here") } == isRefused)
        }
    }

    // MARK: Recorded stanzas

    @Test func `log-subscriptions, messages-only and handshake-only record only their stanzas`() throws {
        let stanzas: [(Direction, String)] = [
            (.send, "<presence type='subscribe' to='romeo@example.net'/>"),
            (.recv, "<message from='romeo@example.net'><body>x</body></message>"),
            (
                .recv,
                "<iq type='set' id='1'><query xmlns='jabber:iq:roster'><item jid='a@b' subscription='to'/></query></iq>"
            ),
            (.send, "<presence/>"),
        ]
        #expect(
            try judge("log-subscriptions.pfw", stanzas) == [
                "passed; log info: subscribe from juliet@example.net to romeo@example.net", "passed; record off",
                "passed; log info: roster change of a@b to to", "passed; record off",
            ]
        )
        #expect(
            try judge("messages-only.pfw", stanzas) == [
                "passed; record off", "passed", "passed; record off", "passed; record off",
            ]
        )
        #expect(try judge("handshake-only.pfw", stanzas) == Array(repeating: "passed; record off", count: 4))
        #expect(try judge("handshake-only.pfw", stanzas, phase: .binding) == Array(repeating: "passed", count: 4))
    }

    @Test func `hide-presence-floods omits presence stanzas over the rate from the records`() throws {
        let presence: [(Direction, String)] = Array(
            repeating: (.recv, "<presence from='room@chat.example/x'/>"),
            count: 4
        )
        #expect(
            try judge("hide-presence-floods.pfw", presence) == [
                "passed", "passed", "passed; record off", "passed; record off",
            ]
        )
    }

    @Test func `redact-bodies omits texts from the records of messages`() throws {
        let stanzas: [(Direction, String)] = [(.send, "<message><body>x</body></message>"), (.send, "<presence/>")]
        #expect(
            try judge("redact-bodies.pfw", stanzas) == [
                "passed; redact body#; redact subject#; redact {http://jabber.org/protocol/xhtml-im}html", "passed",
            ]
        )
    }

    @Test func `suspicious-xml logs a warning for a stanza of more than 256 kB`() throws {
        let most = 256_000 - "<message from='a@b'><body></body></message>".utf8.count
        func stanza(_ count: Int) -> (Direction, String) {
            (.recv, "<message from='a@b'><body>\(String(repeating: "x", count: count))</body></message>")
        }
        #expect(
            try judge("suspicious-xml.pfw", [stanza(most), stanza(most + 1)])
                == ["passed", "passed; log warn: a@b sends a stanza of more than 256 kB"]
        )
    }

    @Test func `suspicious-xml logs a warning for a forged carbon copy and for markup in a nick`() throws {
        let forged = "<received xmlns='urn:xmpp:carbons:2'/>"
        #expect(
            try judge(
                "suspicious-xml.pfw",
                [
                    (.recv, "<message from='paris@example.com/x'>\(forged)</message>"),
                    (.recv, "<message from='juliet@example.net'>\(forged)</message>"),
                    (
                        .recv,
                        "<message from='a@b'><nick xmlns='http://jabber.org/protocol/nick'>&lt;b>x</nick></message>"
                    ),
                ]
            ) == [
                "passed; log warn: carbon copy forged by paris@example.com/x", "passed",
                "passed; log warn: a@b has markup in its nick",
            ]
        )
    }

    // MARK: Simulated faults

    @Test func `slow-link throttles both directions and delays received stanzas`() throws {
        let outcomes = try judge("slow-link.pfw", [(.send, "<presence/>"), (.recv, "<presence from='a@b'/>")])
        #expect(outcomes[0] == "passed; throttle to 2000 bytes a second")
        #expect(outcomes[1].hasPrefix("passed; throttle to 2000 bytes a second; delay "))
    }

    @Test func `flaky-acks loses every third acknowledgement`() throws {
        let acks: [(Direction, String)] = (1...6).map { (.send, "<a xmlns='urn:xmpp:sm:3' h='\($0)'/>") }
        let lost = "acknowledgement lost"
        #expect(try judge("flaky-acks.pfw", acks) == ["passed", "passed", lost, "passed", "passed", lost])
        #expect(
            try judge("flaky-acks.pfw", Array(repeating: (.send, "<r xmlns='urn:xmpp:sm:3'/>"), count: 3)) == [
                "passed", "passed", "passed",
            ]
        )
    }

    @Test func `reset-after-messages resets the connection at the tenth message`() throws {
        let messages: [(Direction, String)] = Array(repeating: (.send, "<message to='a@b'/>"), count: 11)
        #expect(
            try judge("reset-after-messages.pfw", messages) == Array(repeating: "passed", count: 9) + [
                "reset", "passed",
            ]
        )
    }

    @Test func `refuse-first-login refuses the first login, with SASL and with SASL2`() throws {
        let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AA==</auth>"
        let authenticate = "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'/>"
        let failure = "SASL failure temporary-auth-failure"
        #expect(
            try judge("refuse-first-login.pfw", [(.send, auth), (.send, auth)], phase: .opening) == [failure, "passed"]
        )
        #expect(
            try judge("refuse-first-login.pfw", [(.send, authenticate), (.send, auth)], phase: .opening) == [
                failure, "passed",
            ]
        )
    }

    @Test func `stream-error ends the session at a message with the configured text`() throws {
        #expect(
            try judge(
                "stream-error.pfw",
                [
                    (.send, "<message to='bot@example.com'><body>crash</body></message>"),
                    (.send, "<message to='bot@example.com'><body>hello</body></message>"),
                ]
            ) == ["stream error system-shutdown (The test asked for it)", "passed"]
        )
    }

    @Test func `strip-compression removes compression from the features`() throws {
        let features =
            "<stream:features><compression xmlns='http://jabber.org/features/compress'><method>zlib</method></compression><ver xmlns='urn:xmpp:features:rosterver'/></stream:features>"
        #expect(
            try judge("strip-compression.pfw", [(.recv, features)], phase: .opening)
                == [
                    "<features xmlns='http://etherx.jabber.org/streams'><ver xmlns='urn:xmpp:features:rosterver'/></features>"
                ]
        )
    }
}
