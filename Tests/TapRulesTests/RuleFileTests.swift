import TapTestKit
import Testing

import TapRecord
@testable import TapRules

/// Tests mistakes in rule files: their positions and messages. Other tests cover the meaning of each condition and
/// action.
@Suite struct RuleFileTests {
    /// Definitions that most cases use.
    static let definitions = """
        %ZONE staff: staff.example
        %RATE normal: 2 (burst 3)
        %SEARCH body: body#
        %PATTERN word: %a+
        %LIST bad: memory

        """

    /// Returns the faults of rules that follow the definitions, with line numbers that do not count the definitions.
    static func faults(_ text: String) -> [String] {
        do throws(RuleSet.LoadError) {
            _ = try RuleSet.test(definitions + text)
            return []
        } catch {
            return error.faults.map { fault in
                var fault = fault
                fault.place.line -= definitions.count(where: \.isNewline)
                return fault.description
            }
        }
    }

    @Test(arguments: ruleMistakes)
    func `A mistake is reported with its position, the expected syntax and the probable intention`(
        _ file: String,
        _ faults: [String]
    ) {
        #expect(Self.faults(file) == faults.map { "test.pfw:\($0)" })
    }

    @Test func `Every term that only a server can evaluate has a test case`() {
        let named = Set(
            ruleMistakes.flatMap(\.1).compactMap { $0.firstMatch(of: #/^1:1: (.+) is not supported; /#)?.1 }
        )
        let refused = Array(RuleConditionName.refused.keys) + RuleActionName.refused.keys
        #expect(Set(refused).subtracting(named.map(String.init)) == [])
    }

    @Test func `Of many mistakes only the first 200 are listed, with the number of the others`() {
        let faults = Self.faults(String(repeating: "DORP.\n\n", count: 1000))
        #expect(faults.count == 201 && faults.last == "test.pfw:401:1: 800 more mistakes")
    }

    @Test func `A byte-order mark at the start of a file is ignored`() {
        #expect(throws: Never.self) { try RuleSet.test("\u{FEFF}KIND: iq\nPASS.") }
    }

    @Test func `If any file has mistakes, all are reported in order and nothing is loaded`() throws {
        let files = [
            RuleSource(name: "b.pfw", text: "DORP.\n\nKIND: msg\nDROP."),
            RuleSource(name: "a.pfw", text: "FROM: a@b@c\nPAS."),
        ]
        let error = #expect(throws: RuleSet.LoadError.self) { try RuleSet(files) }
        #expect(error?.faults.map { "\($0.place)" } == ["b.pfw:1", "b.pfw:3", "a.pfw:1", "a.pfw:2"])
    }

    @Test func `Definitions are shared between files, and a backslash continues a line`() throws {
        let files = [
            RuleSource(name: "a.pfw", text: "ENTERING: staff\nDROP."),
            RuleSource(name: "b.pfw", text: "%ZONE staff: a.example, \\\n  b.example\n; a comment\n# and another"),
        ]
        let rules = try RuleSet(files)
        #expect(rules.count == 1)
        #expect(rules.definitions.zones.values.last?.members == [Array("a.example".utf8), Array("b.example".utf8)])
    }

    @Test func `All syntax of mod_firewall's documentation is accepted`() throws {
        let rules = try RuleSet.test(
            """
            %ZONE myorganisation: staff.myorg.example, support.myorg.example
            %LIST blocked_jids: file:lists/blocked.txt (missing: ignore)
            %LIST recent: memory (limit: 100)
            %RATE per: 0.1 (burst 30) (entries 4096) (allow overflow)
            %SEARCH body: body#
            %PATTERN url: https?://%S+
            %PATTERN link (regex): https?://\\S+
            @@ trace = off

            ENTERING: myorganisation
            KIND: message
            TIME: 12am-9am, 5pm-12am
            REPLY=Sorry, our office is closed.

            NOT FROM: user@example.com
            KIND NOT: message presence
            IN ROSTER NOT?
            IN_ROSTER_GROUP: Friends
            CHECK LIST: blocked_jids contains $<@from>
            BOUNCE=policy-violation (Your JID is blocked)

            COUNT: url in body > 1
            LIMIT: per on $<@from|host||"none">
            INSPECT: {jabber:iq:register}query/username#=admin
            FROM: admin@<*.example.com>
            TO: <<admin%d*>>@example.com
            ORIGIN MARKED: spammer (3600s)
            LOG=[debug] User received: $(stanza) of $(stanza.attr.from)
            MARK ORIGIN=spammer
            JUMP CHAIN=user/spam_filtering

            ::user/spam_filtering
            SCAN: body for url in recent
            STRIP=html http://jabber.org/protocol/xhtml-im
            INJECT=<x xmlns='urn:x' a="$<@from>"/>
            FORWARD=admin@example.com
            RETURN.

            ::deliver_remote
            DEFAULT.
            """
        )
        #expect(rules.count == 5 && rules.warnings.isEmpty)
    }

    @Test(arguments: [
        ("KIND: iq\nDROP.", "DROP. leaves the iq request unanswered"),
        ("KIND: iq\nTYPE: set\nDROP.", "DROP. leaves the iq request unanswered"),
        ("SET=@from=a@b", "this changes the stanza's from"),
        ("KIND: message\nREMOVE=@id", "this changes the stanza's id"),
        ("DROP.\nLOG=too late", "unreachable action LOG"),
        ("KIND: message\nBOUNCE=policy-violation (no)\nMARK ORIGIN=spammer", "unreachable action MARK ORIGIN"),
        ("LOG=[warm] x", "\"[warm]\" is not a level: it is logged as text"),
        ("JUMP CHAIN=user/a", "no rules in chain user/a"),
        ("FROM: *@example.com\nDROP.", "the \"*\" in \"*@example.com\" stands for itself"),
        ("NOT WITH: a@b.example/*\nDROP.", "the \"*\" in \"a@b.example/*\" stands for itself"),
        ("%ZONE z: a@b.example, *.example.com\nENTERING: z\nDROP.", "the \"*\" in \"*.example.com\" stands for itself"),
    ])
    func `Valid syntax that is probably a mistake causes a warning`(_ file: String, _ warning: String) throws {
        #expect(try RuleSet.test(file).warnings.map(\.found) == [warning])
    }

    @Test(arguments: [
        "KIND: iq\nTYPE: result\nDROP.", "KIND: message\nDROP.", "KIND: iq\nBOUNCE.", "SET=body#=x",
        "LOG=[firewall-agentes] x", "LOG=[a b] x", "LOG=[", "LOG=[error]",
        "FROM: <*>@<*.example.com>\nDROP.", "TO: a@b/<*>\nDROP.",
    ])
    func `Correct syntax that resembles a mistake causes no warning`(_ file: String) throws {
        #expect(try RuleSet.test(file).warnings.isEmpty)
    }

    @Test func `A direction that no rule can alter is detected, also through chains`() throws {
        let watching = try RuleSet.test("KIND: message\nLOG=x\nMARK ORIGIN=y\nRECORD=off\nPASS.")
        #expect(!watching.canAlter(.send) && !watching.canAlter(.recv))
        let sending = try RuleSet.test("::send\nJUMP CHAIN=user/a\n\n::user/a\nTYPE: chat\nDELAY=1s")
        #expect(sending.canAlter(.send) && !sending.canAlter(.recv))
        let receiving = try RuleSet.test("DIRECTION: recv\nDROP.")
        #expect(!receiving.canAlter(.send) && receiving.canAlter(.recv))
    }
}
