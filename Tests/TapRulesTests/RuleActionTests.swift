import Testing
import XMPPCore

import TapRecord
@testable import TapRules

/// Tests each action: the decision on the stanza, and the other effects.
@Suite struct RuleActionTests {
    static let chat = RuleConditionTests.chat
    static let request =
        "<iq type='get' id='v1' from='romeo@example.net/orchard'><query xmlns='jabber:iq:version'/></iq>"
    static let sent = "<message id='m2' to='romeo@example.net' type='chat'><body>a &amp; b</body></message>"

    private func edited(_ actions: String, _ direction: Direction, _ xml: String) throws -> String? {
        try Judge(actions).judge(direction, xml).editedText
    }

    // MARK: Actions that end the run

    @Test func `The first deciding action ends the evaluation`() throws {
        let rules = "KIND: message\nLOG=one\nDROP.\n\nLOG=two\nPASS."
        let dropped = try Judge(rules).judge(.send, Self.sent)
        #expect(dropped.decision == .drop && dropped.hits.map(\.place.line) == [1])
        #expect(dropped.decidedBy?.description == "test.pfw:1")
        let passed = try Judge(rules).judge(.send, "<presence/>")
        #expect(passed.decision == .pass && passed.decidedBy?.line == 5 && passed.actions.map(\.place.line) == [5])
        let untouched = try Judge("KIND: iq\nDROP.").judge(.send, Self.sent)
        #expect(untouched.decision == .pass && untouched.decidedBy == nil && untouched.hits.isEmpty)
    }

    @Test func `RETURN leaves its chain; PASS and DROP leave all chains`() throws {
        func lines(_ last: String) throws -> [Int] {
            let rules = "JUMP CHAIN=user/a\nLOG=after\n\nLOG=next\n\n::user/a\nLOG=in\n\n\(last)\n\nLOG=end"
            return try Judge(rules).judge(.send, Self.sent).hits.map(\.place.line)
        }
        #expect(try lines("LOG=x") == [1, 7, 9, 11, 4])
        #expect(try lines("RETURN.") == [1, 7, 9, 4])
        #expect(try lines("PASS.") == [1, 7, 9])
        #expect(try lines("DROP.") == [1, 7, 9])
    }

    @Test func `Chains apply to their direction, the handshake chain to elements before the session is open`() throws {
        func chains(_ direction: Direction, _ phase: RulePhase, _ xml: String = Self.sent) throws -> [Int] {
            let judge = try Judge(
                """
                ::both
                LOG=x

                ::send
                LOG=x

                ::recv
                LOG=x

                ::handshake
                LOG=x

                ::preroute
                PASS.

                ::deliver
                LOG=x

                ::deliver_remote
                LOG=x

                ::both
                ELEMENT: {urn:xmpp:sm:3}a
                LOG=x
                """
            )
            judge.context.phase = phase
            return try judge.judge(direction, xml).hits.map(\.place.line)
        }
        // PASS in preroute does not skip deliver_remote, which mod_firewall evaluates later.
        #expect(try chains(.send, .open) == [2, 5, 14, 20])
        #expect(try chains(.recv, .open) == [2, 8, 17])
        #expect(try chains(.send, .binding) == [11] && chains(.recv, .opening) == [11])
        #expect(try chains(.send, .open, "<a xmlns='urn:xmpp:sm:3' h='1'/>") == [23])
    }

    @Test func `A file without a chain line applies to both directions or to the given default chain`() throws {
        #expect(try Judge("DROP.").holds(.send, Self.sent) && Judge("DROP.").holds(.recv, Self.chat))
        let delivered = try Judge("DROP.", chain: "deliver")
        #expect(try !delivered.holds(.send, Self.sent) && delivered.holds(.recv, Self.chat))
    }

    // MARK: Answers

    @Test func `BOUNCE returns a stanza error to the sender`() throws {
        let received = try Judge("BOUNCE=policy-violation (no <b>)").judge(.recv, Self.request)
        #expect(received.decision == .drop && received.remarks.isEmpty)
        #expect(
            received.injected == [
                "send bounce <iq type='error' id='v1' to='romeo@example.net/orchard'><error type='modify'><policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/><text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>no &lt;b></text></error></iq>"
            ]
        )
        let sent = try Judge("BOUNCE=forbidden:cancel").judge(.send, Self.sent)
        #expect(
            sent.injected == [
                "recv bounce <message type='error' id='m2' from='romeo@example.net' to='juliet@example.net/balcony'><error type='cancel'><forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>"
            ]
        )
    }

    @Test(arguments: ["<message type='error'/>", "<iq type='result' id='1'/>", "<iq type='error' id='1'/>"])
    func `BOUNCE and DEFAULT drop an error or an iq result without an answer`(_ xml: String) throws {
        for action in ["BOUNCE.", "DEFAULT."] {
            let verdict = try Judge(action).judge(.recv, xml)
            #expect(verdict.decision == .drop && verdict.injected.isEmpty)
        }
    }

    @Test func `Dropping a request causes a remark, dropping a message does not`() throws {
        #expect(try Judge("DROP.").judge(.recv, Self.request).remarks.map(\.remark) == [.blackhole])
        #expect(try Judge("DROP.").judge(.recv, Self.chat).remarks.isEmpty)
    }

    @Test func `REPLY, COPY, FORWARD and UNSUBSCRIBE SENDER each inject a stanza`() throws {
        let verdict = try Judge(
            "REPLY=Hi $<@from|node>\nCOPY=log@example.org\nFORWARD=admin@example.org\nUNSUBSCRIBE SENDER."
        ).judge(.recv, "<message from='romeo@example.net/o' to='juliet@example.net' id='9'><body>x</body></message>")
        #expect(verdict.decision == .pass)
        #expect(
            verdict.injected == [
                "send reply <message id='9' to='romeo@example.net/o'><body>Hi romeo</body></message>",
                "send copy <message id='9' to='log@example.org'><body>x</body></message>",
                "send forward <message to='admin@example.org'><forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client' to='juliet@example.net' id='9' from='romeo@example.net/o'><body>x</body></message></forwarded></message>",
                "send unsubscribe <presence type='unsubscribed' to='romeo@example.net'/>",
            ]
        )
    }

    @Test func `A REPLY to the client comes from the recipient of its stanza`() throws {
        #expect(
            try Judge("REPLY=later").judge(.send, Self.sent).injected == [
                "recv reply <message type='chat' id='m2' from='romeo@example.net' to='juliet@example.net/balcony'><body>later</body></message>"
            ]
        )
    }

    @Test func `REDIRECT changes the recipient of sent stanzas and forwards received ones`() throws {
        let sent = try Judge("REDIRECT=nurse@example.net").judge(.send, Self.sent)
        #expect(sent.decision == .pass && sent.decidedBy?.line == 1)
        #expect(
            sent.editedText == "<message id='m2' type='chat' to='nurse@example.net'><body>a &amp; b</body></message>"
        )
        let received = try Judge("REDIRECT=nurse@example.net").judge(
            .recv,
            "<message from='r@x'><body>x</body></message>"
        )
        #expect(received.decision == .drop)
        #expect(received.injected == ["send redirect <message to='nurse@example.net'><body>x</body></message>"])
    }

    @Test func `An action with an invalid address is skipped with a remark`() throws {
        let verdict = try Judge("COPY=$<body#>").judge(.send, "<message><body>a@b@c</body></message>")
        #expect(verdict.injected.isEmpty && verdict.remarks.map(\.remark) == [.notHere("\"a@b@c\" is not a JID")])
    }

    // MARK: Edits

    @Test(arguments: [
        ("STRIP=body", "<message to='a@b'><x xmlns='urn:x' k='1'>t<y/></x></message>"),
        ("STRIP=x urn:x", "<message to='a@b'><body>one two</body></message>"),
        ("STRIP=* urn:x", "<message to='a@b'><body>one two</body></message>"),
        ("STRIP=*", "<message to='a@b'><x xmlns='urn:x' k='1'>t<y/></x></message>"),
        ("STRIP=x", nil),
        (
            "INJECT=<z xmlns='urn:z' w='$<@to>'>$<body#></z>",
            "<message to='a@b'><body>one two</body><x xmlns='urn:x' k='1'>t<y/></x><z xmlns='urn:z' w='a@b'>one two</z></message>"
        ),
        ("SET=body#=<$<@to>>", "<message to='a@b'><body>&lt;a@b></body><x xmlns='urn:x' k='1'>t<y/></x></message>"),
        ("SET=@to=c@d", "<message to='c@d'><body>one two</body><x xmlns='urn:x' k='1'>t<y/></x></message>"),
        (
            "SET=@type=chat",
            "<message to='a@b' type='chat'><body>one two</body><x xmlns='urn:x' k='1'>t<y/></x></message>"
        ),
        ("SET={urn:x}x@k=2", "<message to='a@b'><body>one two</body><x xmlns='urn:x' k='2'>t<y/></x></message>"),
        ("SET={urn:x}x#=no", nil),
        (
            "SET=subject#=new",
            "<message to='a@b'><body>one two</body><x xmlns='urn:x' k='1'>t<y/></x><subject>new</subject></message>"
        ),
        (
            "SET={urn:x}x/z/{urn:w}w@a=$<@to>",
            "<message to='a@b'><body>one two</body><x xmlns='urn:x' k='1'>t<y/><z><w xmlns='urn:w' a='a@b'/></z></x></message>"
        ),
        (
            "SET={urn:v}v#=$<@to>",
            "<message to='a@b'><body>one two</body><x xmlns='urn:x' k='1'>t<y/></x><v xmlns='urn:v'>a@b</v></message>"
        ),
        ("SET={urn:v}#=no", nil),
        (
            "SET=body# ~word=[%1%0]%%",
            "<message to='a@b'><body>[oneone]% [twotwo]%</body><x xmlns='urn:x' k='1'>t<y/></x></message>"
        ),
        (
            "SET=@to ~domain=%1@new",
            "<message to='a@new'><body>one two</body><x xmlns='urn:x' k='1'>t<y/></x></message>"
        ),
        ("SET=body# ~domain=x", nil),
        ("REMOVE={urn:x}x/y", "<message to='a@b'><body>one two</body><x xmlns='urn:x' k='1'>t</x></message>"),
        ("REMOVE={urn:x}x@k", "<message to='a@b'><body>one two</body><x xmlns='urn:x'>t<y/></x></message>"),
        ("REMOVE=body#", "<message to='a@b'><body/><x xmlns='urn:x' k='1'>t<y/></x></message>"),
        ("REMOVE=@type", nil), ("REMOVE=subject", nil),
        (
            "REPLACE=body <body xml:lang='de'>zwei</body>",
            "<message to='a@b'><body xml:lang='de'>zwei</body><x xmlns='urn:x' k='1'>t<y/></x></message>"
        ),
        ("REPLACE=<message to='$<@to>'><body>new</body></message>", "<message to='a@b'><body>new</body></message>"),
    ])
    func `An edit changes only the elements and attributes at its path`(_ action: String, _ edited: String?) throws {
        let stanza = "<message to='a@b'><body>one two</body><x xmlns='urn:x' k='1'>t<y/></x></message>"
        let patterns = "%PATTERN word: (%a+)\n%PATTERN domain (regex): ^(\\w+)@.*$\n\n"
        // INJECT, STRIP of an absent element, and SET of an equal text do not change any byte.
        let outcome = try self.edited(patterns + action, .send, stanza)
        #expect(outcome == edited)
    }

    @Test func `An edit applies to every element at its path`() throws {
        let roster =
            "<iq type='result' id='1'><query xmlns='jabber:iq:roster'><item jid='a@old.example'/><item jid='b@old.example'/><item jid='c@other'/></query></iq>"
        let rules = "%PATTERN domain: @old%.example$\n\nSET={jabber:iq:roster}query/item@jid ~domain=@new.example"
        #expect(
            try edited(rules, .recv, roster)
                == "<iq type='result' id='1'><query xmlns='jabber:iq:roster'><item jid='a@new.example'/><item jid='b@new.example'/><item jid='c@other'/></query></iq>"
        )
    }

    @Test func `Conditions after an edit see the edited stanza`() throws {
        let rules =
            "SET=@type=headline\nSET=body#=changed\n\nTYPE: headline\nINSPECT: body#=changed\nPAYLOAD: jabber:client\nLOG=$<body#>"
        let verdict = try Judge(rules).judge(.send, Self.sent)
        #expect(verdict.hits.count == 2 && verdict.actions.map(\.action) == [.log(.info, "changed")])
    }

    @Test(arguments: [
        (
            "SET=@from=paris@example.com",
            "from='paris@example.com' is not the session's JID (juliet@example.net/balcony); the server would close the stream (invalid-from)"
        ),
        ("SET=@to=$<body#>", "the new value of to is not a JID"),
        ("REPLACE=<message from='juliet@example.net' to='$<body#>'/>", "the new value of to is not a JID"),
        ("REPLACE=<presence/>", "an edit must not turn <message> into <presence>"),
        ("INJECT=<x>$<body#>$<body#></x>", "109 bytes, the receiver accepts at most 100"),
    ])
    func `An edit whose result cannot be sent is refused with the reason`(_ actions: String, _ reason: String) throws {
        let judge = try Judge(actions)
        if reason.hasSuffix(" 100") { judge.context.maximumBytes = 100 }
        let verdict = try judge.judge(.send, Self.sent)
        #expect(verdict.remarks.map(\.remark) == [.editRefused(reason)] && verdict.edited == nil)
        #expect(verdict.decision == .pass)
    }

    @Test func `Edits and replies respect the size limit announced by their receiver`() throws {
        let judge = try Judge("INJECT=<x>$<body#>$<body#></x>\nREPLY=$<body#>")
        judge.context.receiverBytes = (server: 100, client: 50)
        var remarks = try judge.judge(.send, Self.sent).remarks.map { "\($0.remark)" }
        #expect(remarks.contains { $0.contains("109 bytes, the receiver accepts at most 100") }, "\(remarks)")
        #expect(remarks.contains { $0.contains("bytes, the receiver accepts at most 50") }, "\(remarks)")
        judge.context.receiverBytes = (server: 109, client: .max)
        remarks = try judge.judge(.send, Self.sent).remarks.map { "\($0.remark)" }
        #expect(remarks.isEmpty, "\(remarks)")
    }

    @Test func `An edit is not refused for its size if the original stanza also exceeds the limit`() throws {
        let judge = try Judge("SET=body#=b")
        judge.context.receiverBytes = (server: 1, client: 1)
        let verdict = try judge.judge(.send, Self.sent)
        #expect(verdict.edited != nil && verdict.remarks.isEmpty)
    }

    @Test func `An edit can set the from attribute to the client's own address, on RECV to any address`() throws {
        #expect(try edited("SET=@from=juliet@example.net", .send, Self.sent) != nil)
        #expect(try edited("SET=@from=paris@example.com", .recv, Self.sent) != nil)
    }

    @Test func `An edit with a character that XML forbids is refused`() throws {
        let judge = try Judge("SET=body#=a\u{1}b")
        let verdict = try judge.judge(.send, Self.sent)
        #expect(
            verdict.edited == nil && verdict.remarks.map(\.remark) == [.editRefused("a character that XML 1.0 forbids")]
        )
    }

    /// Elements that only the receiver of a message can read.
    private static let encrypted = [
        "<encrypted xmlns='eu.siacs.conversations.axolotl'/>", "<encrypted xmlns='urn:xmpp:omemo:1'/>",
        "<encrypted xmlns='urn:xmpp:omemo:2'/>", "<openpgp xmlns='urn:xmpp:openpgp:0'>BASE64</openpgp>",
        "<x xmlns='jabber:x:encrypted'>BASE64</x>", "<x xmlns='jabber:x:signed'>BASE64</x>",
        "<body>?OTR:AAMDJ+MVmSfjFZcAAAAAAQAAAAIA.</body>",
        "<encryption xmlns='urn:xmpp:eme:0' namespace='urn:example:cipher'/>",
    ]

    @Test(arguments: encrypted) func `Editing an end-to-end encrypted stanza causes a remark`(payload: String) throws {
        func copy(_ namespace: String, _ name: String) -> String {
            "<\(name) xmlns='\(namespace)'><forwarded xmlns='urn:xmpp:forward:0'>"
                + "<message xmlns='jabber:client'>\(payload)</message></forwarded></\(name)>"
        }
        for content in [
            payload, copy("urn:xmpp:carbons:2", "sent"), copy("urn:xmpp:carbons:2", "received"),
            copy("urn:xmpp:mam:2", "result"),
        ] {
            let stanza = "<message id='1'>\(content)</message>"
            #expect(try Judge("SET=@id=x").judge(.recv, stanza).remarks.map(\.remark) == [.opaque], "\(stanza)")
        }
    }

    @Test(arguments: [
        "<body>OTR?</body>", "<body>a ?OTR: b</body>", "<subject>?OTR:AAMD</subject>",
        "<devices xmlns='urn:xmpp:omemo:2'/>", "<encrypted xmlns='urn:example'/>",
    ])
    func `An edit of a stanza that only resembles an encrypted one causes no remark`(payload: String) throws {
        #expect(try Judge("SET=@id=x").judge(.recv, "<message id='1'>\(payload)</message>").remarks.isEmpty)
    }

    // MARK: Edits that are refused

    @Test(arguments: [
        ("SET=body#=a\u{1}b", Self.sent), ("SET=@from=paris@example.com", Self.sent),
        ("SET=body# ~slow=x", "<message><body>\(String(repeating: "a", count: 5000))</body></message>"),
        ("REPLACE=<presence/>", Self.sent),
    ])
    func `A stanza with a refused edit passes unchanged, or is dropped with refused_edit = drop`(
        action: String,
        stanza: String
    ) throws {
        let pattern = "%PATTERN slow: .-.-.-.-.-.-b\n"
        let passed = try Judge(pattern + action + "\nLOG=x").judge(.send, stanza)
        #expect(passed.decision == .pass && passed.edited == nil && passed.actions.count == 1, "\(passed)")
        let judge = try Judge(pattern + "@@ refused_edit = drop\n" + action + "\nLOG=x")
        let dropped = try judge.judge(.send, stanza)
        #expect(dropped.decision == .drop && dropped.edited == nil && dropped.actions.isEmpty, "\(dropped)")
        #expect(dropped.decidedBy?.line == 3 && dropped.remarks.count == 1)
    }

    @Test func `refused_edit = drop reports dropped requests and applies only to the rules below it`() throws {
        let judge = try Judge("@@ refused_edit = drop\nSET=@id=a\u{1}b")
        let request = "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>"
        #expect(try judge.judge(.send, request).remarks.map(\.remark).last == .blackhole)
        let other = try Judge("@@ refused_edit = drop\nSET=body#=a & b\nREMOVE=thread").judge(.send, Self.sent)
        #expect(other.decision == .pass && other.edited == nil && other.remarks.isEmpty)
        // A setting applies to the rules below it up to the next setting, but not to the rules of chains that they jump
        // to.
        let text = """
            @@ refused_edit = drop
            JUMP CHAIN=user/edit

            @@ refused_edit = pass
            SET=body#=a\u{1}b

            ::user/edit
            SET=body#=a\u{1}b
            """
        let passed = try Judge(text).judge(.send, Self.sent)
        #expect(passed.decision == .pass && passed.remarks.count == 2)
    }

    @Test func `An edited handshake element keeps its namespace`() throws {
        let judge = try Judge(
            "::handshake\nELEMENT: {http://etherx.jabber.org/streams}features\nREMOVE={http://jabber.org/features/compress}compression"
        )
        judge.context.phase = .opening
        let features =
            "<stream:features><compression xmlns='http://jabber.org/features/compress'><method>zlib</method></compression><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
        #expect(
            try judge.judge(.recv, features).editedText
                == "<features xmlns='http://etherx.jabber.org/streams'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></features>"
        )
    }

    // MARK: Other effects

    @Test func `Actions that do not decide are returned in the order of the rule`() throws {
        let verdict = try Judge(
            """
            DELAY=2s
            DUPLICATE=2
            PAUSE.
            RECORD=off
            LEVEL=warn
            REDACT=body#
            LOG=[debug] $<@to|bare||"x"> $<missing#> $<missing#||"none"> $(session.host)
            STALL=1s
            THROTTLE=2kB
            SLICE=1 (every 7ms)
            TAG TRACE=here
            """
        ).judge(.send, Self.sent)
        #expect(
            verdict.actions.map(\.action) == [
                .delay(2_000_000_000), .duplicate(2), .pause, .record(false), .level(.warn),
                .redact(try StanzaPath("body#").inAnyNamespace),
                .log(.verbose, "romeo@example.net <undefined> none example.net"), .fault(.stall(1_000_000_000)),
                .fault(.throttle(2000)), .fault(.slice(1, every: 7_000_000)),
            ]
        )
        #expect(verdict.tags == ["here"] && verdict.decision == .pass)
    }

    @Test func `A delay with jitter stays within its limits`() throws {
        let judge = try Judge("DELAY=1s (jitter 500ms)")
        var delays: Set<Int64> = []
        for _ in 0..<50 {
            guard case .delay(let delay) = try judge.judge(.send, Self.sent).actions.first?.action else { continue }
            delays.insert(delay)
        }
        #expect(delays.count > 40 && delays.allSatisfy { (1_000_000_000..<1_500_000_000).contains($0) })
    }

    @Test(arguments: [
        ("CUT AFTER=120", Self.sent, RuleFaultAction.cut(after: 120)), ("RESET.", Self.sent, .reset),
        ("HALF CLOSE.", Self.sent, .halfClose),
        ("STREAM ERROR=policy-violation (too much)", Self.sent, .streamError(.policyViolation, text: "too much")),
        (
            "ELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth\nSASL FAILURE=temporary-auth-failure",
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'/>", .saslFailure("temporary-auth-failure")
        ),
        ("ELEMENT: {urn:xmpp:sm:3}a\nLOSE ACK.", "<a xmlns='urn:xmpp:sm:3' h='4'/>", .loseAck),
    ])
    func `A fault action ends the evaluation`(_ rule: String, _ xml: String, _ fault: RuleFaultAction) throws {
        let verdict = try Judge("\(rule)\n\nLOG=next").judge(.send, xml)
        #expect(verdict.decision == .fault(fault) && verdict.hits.count == 1)
    }

    @Test(arguments: [
        "::both\n\nJUMP CHAIN=user/a\n\n::user/a\n\nSASL FAILURE=aborted",
        "::both\n\nJUMP CHAIN=user/a\n\n::user/a\n\nLOSE ACK.",
    ])
    func `A fault action that does not apply to the stanza is skipped with a remark`(_ rules: String) throws {
        let verdict = try Judge(rules).judge(.send, Self.sent)
        #expect(verdict.decision == .pass && verdict.remarks.count == 1)
    }

    @Test func `LOG reads a bracketed word as a level only if it names one`() throws {
        let logs: [(String, Level, String)] = [
            ("[warn] x", .warn, "x"), ("[WARN]x", .warn, "x"), ("[debug]  x", .verbose, "x"),
            ("[firewall-agentes] x", .info, "[firewall-agentes] x"), ("[loud] x", .info, "[loud] x"),
            ("[warn x", .info, "[warn x"),
        ]
        for (text, level, logged) in logs {
            let actions = try Judge("LOG=\(text)").judge(.send, Self.sent).actions.map(\.action)
            #expect(actions == [.log(level, logged)])
        }
    }

    @Test func `DEFAULT passes a stanza before routing, and refuses it in deliver and deliver_remote`() throws {
        #expect(try Judge("::preroute\n\nDEFAULT.\n\nDROP.").judge(.send, Self.sent).decision == .pass)
        let remote = try Judge("::deliver_remote\n\nDEFAULT.").judge(.send, Self.sent)
        #expect(remote.decision == .drop && remote.injected.count == 1)
        #expect(try Judge("::deliver\n\nDEFAULT.").judge(.recv, Self.request).decision == .drop)
    }

    @Test func `An action whose result exceeds the receiver's size limit has no effect`() throws {
        let body = String(repeating: "a", count: 1000)
        let xml = "<message from='romeo@example.net'><body>\(body)</body><a>x</a><a>x</a><a>x</a></message>"
        let grown = String(repeating: "$<body#>", count: 100)
        for action in [
            "SET=body# ~p=\(grown)", "SET=a#=\(grown)", "INJECT=<x>\(grown)</x>", "REPLY=\(grown)",
            "COPY=a@b", "FORWARD=a@b", "REDIRECT=a@b",
        ] {
            let judge = try Judge("%PATTERN p: a\n\n\(action)")
            judge.context.maximumBytes = 500
            let verdict = try judge.judge(.recv, xml)
            #expect(verdict.decision == .pass && verdict.actions.isEmpty && verdict.edited == nil, "\(action)")
            #expect(verdict.remarks.count == 1, "\(action)")
        }
    }

    @Test func `Evaluation stops with a remark if jumps exceed the limit of rules`() throws {
        var file = "JUMP CHAIN=user/c0\nDROP.\n"
        for number in 0..<40 {
            file += "\n::user/c\(number)\nLOG=x\n"
            if number < 39 { file += "JUMP CHAIN=user/c\(number + 1)\n\nJUMP CHAIN=user/c\(number + 1)\n" }
        }
        let verdict = try Judge(file).judge(.send, Self.sent)
        #expect(verdict.remarks.map(\.remark) == [.tooManyRules] && verdict.decision == .pass)
    }
}
