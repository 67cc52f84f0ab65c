import TapRecord
import Testing

@testable import TapRules

/// Tests `--filter`: the records that match an expression, and the messages for invalid expressions.
struct RecordFilterTests {
    private static func line(_ number: Int, _ fields: String) throws -> RecordLine {
        let json =
            #"{"sequence":\#(number),"time":"2026-11-22T10:00:00.000000000Z","monotonic":1.5,"part":"session","#
            + fields.replacing("\n", with: "") + "}"
        return try RecordLine(json: Array(json.utf8).span.bytes)
    }

    /// A login, stanzas of three sessions, and records that are not items.
    private static let lines: [RecordLine] = {
        let juliet = #""session":1,"jid":"juliet@example.org/b","remote":"192.0.2.7:5000","level":"info","#
        let fields = [
            #""level":"info","kind":"session","session":1,"remote":"192.0.2.7:5000","code":"session-began""#,
            #"""
            "level":"verbose","part":"sasl","kind":"element","session":1,"user":"juliet","domain":"example.org",
            "direction":"send","length":90,"name":"auth",
            "xml":"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AA</auth>"
            """#,
            #"""
            "level":"info","kind":"stanza","session":1,"jid":"juliet@example.org/b","direction":"recv","length":100,
            "name":"iq","type":"result","id":"b1","payload":"{urn:ietf:params:xml:ns:xmpp-bind}bind",
            "xml":"<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"
            """#,
            juliet
                + #"""
                "kind":"stanza","direction":"send","length":120,"name":"message","type":"chat","to":"romeo@example.net",
                "id":"m1","payload":"body","xml":"<message type='chat' to='romeo@example.net' id='m1'>
                <body>Hello, Romeo</body><subject>night</subject><x xmlns='jabber:x:oob'/></message>"
                """#,
            juliet
                + #"""
                "kind":"stanza","direction":"recv","length":20000,"name":"message","from":"romeo@example.net/o",
                "to":"juliet@example.org/b","payload":"{urn:x}note",
                "xml":"<message from='romeo@example.net/o' to='juliet@example.org/b'><note xmlns='urn:x'/></message>"
                """#,
            juliet
                + #"""
                "kind":"stanza","direction":"recv","length":60,"name":"presence","from":"paris@example.com/p",
                "xml":"<presence from='paris@example.com/p'><status>away</status></presence>"
                """#,
            juliet
                + #"""
                "kind":"stanza","direction":"recv","length":70,"name":"iq","type":"get","id":"p1","from":"example.org",
                "payload":"{urn:xmpp:ping}ping",
                "xml":"<iq type='get' id='p1' from='example.org'><ping xmlns='urn:xmpp:ping'/></iq>"
                """#,
            juliet
                + #"""
                "kind":"stanza","direction":"send","length":40,"name":"iq","type":"result","id":"p1","to":"example.org",
                "answers":7,"round_trip":2.5,"xml":"<iq type='result' id='p1' to='example.org'/>"
                """#,
            juliet
                + #"""
                "kind":"element","direction":"send","length":26,"name":"r","xml":"<r xmlns='urn:xmpp:sm:3'/>"
                """#,
            #""level":"warn","kind":"note","session":1,"jid":"juliet@example.org/b","code":"no-tls""#,
            #"""
            "level":"info","kind":"stanza","session":2,"jid":"nurse@example.org/n","direction":"send","length":80,
            "name":"message","to":"romeo@example.net","origin":"tap","action":"dropped",
            "rule":"filters/no-typing.pfw:42","xml":"<message to='romeo@example.net'><body>a (b) \"c\"</body></message>"
            """#,
            #""level":"error","kind":"error","part":"sasl","session":3,"user":"tybalt","domain":"example.org","code":"login-failed","condition":"not-authorized","details":{"cause":"unknown-user"}"#,
            #""level":"verbose","kind":"whitespace","session":1,"jid":"juliet@example.org/b","direction":"send","length":1"#,
            // A record as in a log at level info: without XML.
            juliet
                + #""kind":"stanza","direction":"recv","length":99,"name":"message","from":"romeo@example.net/o","payload":"body""#,
            #""level":"info","kind":"note","part":"net","session":0,"code":"listening""#,
        ]
        return fields.enumerated().compactMap { try? line($0 + 1, $1) }
    }()

    /// Returns the numbers of the records that match an expression.
    private static func shown(_ text: String) throws -> [UInt64] {
        let filter = try RecordFilter(text)
        return lines.filter { filter.matches($0.record, content: $0.content.span) }.map(\.record.sequence)
    }

    @Test(
        arguments: [
            ("body:\"hello\"", ["hello"]), ("body~\"hello\"", ["hello"]), ("body~\"a+hello\"", nil),
            ("body~\"hello (you|me)\"", ["hello "]), ("body~\"(?i)hello\"", nil), ("body:\"a<b & so on\"", [" so on"]),
            ("message and body:\"hello\" and id:a17", ["hello"]), ("not body:\"hello\"", nil),
            ("body:\"hello\" or code:login-failed", ["hello", "login-failed"]), ("body:\"hello\" or message", nil),
            ("condition:item-not-found", ["item-not-found"]), ("payload:{urn:xmpp:ping}ping", ["ping"]),
            ("xml:\"ab\"", nil), ("with:juliet@example.org", nil),
        ] as [(String, [String]?)]
    )
    func `a filter derives the literals that a matching line must contain`(filter: String, literals: [String]?) throws {
        let found = try RecordFilter(filter).literals
        #expect(found?.map { String(decoding: $0, as: UTF8.self) } == literals)
    }

    @Test func `All records of the example are read`() { #expect(Self.lines.count == 15) }

    @Test(
        "An expression shows the records that meet it",
        arguments: [
            ("message", [4, 5, 11, 14]), ("presence", [6]), ("iq", [3, 7, 8]), ("nonza", [2, 9]),
            ("stanza", [3, 4, 5, 6, 7, 8, 11, 14]), ("send", [2, 4, 8, 9, 11, 13]), ("SEND", [2, 4, 8, 9, 11, 13]),
            ("recv", [3, 5, 6, 7, 14]), ("direction:recv", [3, 5, 6, 7, 14]),
            ("message and send", [4, 11]), ("presence or nonza", [2, 6, 9]),
            ("not (stanza or nonza)", [1, 10, 12, 13, 15]),
            ("message and not send", [5, 14]), ("presence or message and send", [4, 6, 11]),
            ("(presence or message) and send", [4, 11]), ("not not presence", [6]),
            ("NOT stanza AND send", [2, 9, 13]),
            ("kind:message,presence", [4, 5, 6, 11, 14]), ("kind:note,error", [10, 12, 15]), ("kind:whitespace", [13]),
            ("kind:session,nonza", [1, 2, 9]),
            ("type:chat", [4]), ("type:normal", [5, 11, 14]), ("type:result,get", [3, 7, 8]), ("type:available", [6]),
            ("with:romeo@example.net", [4, 5, 11, 14]), ("with:<*>@example.com", [6]),
            ("from:romeo@example.net", [5, 14]), ("to:romeo@example.net", [4, 11]), ("to:romeo@example.net/o", []),
            ("from:juliet@example.org", [3, 4, 8]), ("to:juliet@example.org", [3, 5, 6, 7, 14]),
            ("from:juliet@example.org/b", [4, 8]), ("from-exactly:romeo@example.net/o", [5, 14]),
            ("to-exactly:juliet@example.org/b", [3, 5, 6, 7, 14]), ("from-full-jid", [4, 5, 6, 8, 11, 14]),
            ("to-self", [3, 6, 7, 14]), ("message and to_self", [14]),
            ("payload:{urn:xmpp:ping}ping", [7]), ("payload:urn:xmpp:ping", [7]), ("payload:{urn:xmpp:ping}*", [7]),
            ("payload:{urn:x}note", [5]), ("payload:urn:x", [5]), ("payload:{urn:y}note", []),
            ("payload:{jabber:x:oob}x", [4]), ("payload:body", []), ("payload:{jabber:client}subject", [4]),
            ("inspect:{jabber:x:oob}x", [4]), ("inspect:'body#=Hello, Romeo'", [4]), ("inspect:@mechanism=PLAIN", [2]),
            ("element:{urn:xmpp:sm:3}r", [9]), ("element:r", [9]), ("element:{urn:xmpp:sm:3}*", [9]),
            ("element:{jabber:client}presence", [6]), ("element:{urn:xmpp:sm:2}r", []),
            ("id:p1", [7, 8]), ("id:p", []),
            ("body:Romeo", [4]), ("body~Hello", [4]), ("body~\"(?i)hello, \\w+\"", [4]), ("body=\"Hello, Romeo\"", [4]),
            ("body=Hello", []), ("body~(b|Hello)", [4, 11]), ("(body~(b|x))", [11]), ("body:'\"c\"'", [11]),
            ("body: \"a (b)\"", [11]), ("body ~ 'Hello' and id:m1", [4]), ("subject=night", [4]), ("status:away", [6]),
            ("thread:x", []), ("xml:mechanism", [2]), ("xml~\"type='get'\"", [7]),
            ("session:1", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14]), ("session:2,3", [11, 12]),
            ("session:nurse@example.org", [11]), ("jid:juliet@example.org", [2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14]),
            ("jid:juliet@example.org/b and nonza", [9]), ("jid:tybalt@example.org", [12]),
            ("jid:<*>@example.org and error", []),
            ("phase:handshake", [1, 2, 3, 12]), ("phase:open and nonza", [9]),
            ("origin:tap", [11]), ("origin:peer and message", [4, 5, 14]),
            ("size>10kB", [5]), ("size: > 10kB", [5]), ("size:>=20000", [5]), ("size < 30", [9, 13]), ("size=26", [9]),
            ("round-trip>2s", [8]), ("round-trip:<2s", []), ("ROUND_TRIP > 2s", [8]),
            ("from-ip:192.0.2.7 and message", [4]), ("from-subnet:192.0.2.0/24 and iq", [8]),
            ("level:warn", [10, 12]), ("level:error", [12]), ("message and send or level:warn", [4, 10, 11, 12]),
            ("part:sasl", [2, 12]), ("part:sasl,net", [2, 12, 15]), ("code:login-failed,no-tls", [10, 12]),
            ("code:unknown-user", [12]), ("code:no-tls,unknown-user", [10, 12]), ("code:unknown", []),
            ("condition:not-authorized", [12]), ("condition:item-not-found,not-authorized", [12]),
            ("condition:not", []),
            ("action:dropped", [11]), ("rule:no-typing.pfw", [11]), ("rule:no-typing.pfw:5", []),
            ("rule:no-typing.pfw:42", [11]), ("rule:no-typing.pfw:4", []), ("rule:typing", [11]),
            ("not with:romeo@example.net", [1, 2, 3, 6, 7, 8, 9, 10, 12, 13, 15]),
            (
                "message and (with:romeo@example.net or not payload:{urn:xmpp:ping}ping) and body~\"Hello\"", [4]
            ),
        ] as [(String, [UInt64])]
    )
    func matching(text: String, numbers: [UInt64]) throws {
        if text.hasSuffix(" and error") {
            #expect(throws: FilterFault.self) { try RecordFilter(text) }
        } else {
            #expect(try Self.shown(text) == numbers)
        }
    }

    @Test(
        "A wrong expression is told with its column, what was expected and the nearest word",
        arguments: [
            ("", "column 1: the filter is empty; expected a condition such as message"),
            ("   ", "column 4: the filter is empty; expected a condition such as message"),
            (
                "mesage",
                "column 1: unknown condition \"mesage\"; expected a condition such as message, type:chat or body~\"hello\"; did you mean \"message\"?"
            ),
            (
                "message and wiht:a@b.c",
                "column 13: unknown condition \"wiht\"; expected a condition such as message, type:chat or body~\"hello\"; did you mean \"with\"?"
            ),
            ("message with:a@b.c", "column 9: unexpected \"with:a@b.c\"; expected and, or, \")\" or the end"),
            ("message && iq", "column 9: unexpected \"&&\"; expected and, or, \")\" or the end; did you mean \"and\"?"),
            ("message || iq", "column 9: unexpected \"||\"; expected and, or, \")\" or the end; did you mean \"or\"?"),
            (
                "message adn iq",
                "column 9: unexpected \"adn\"; expected and, or, \")\" or the end; did you mean \"and\"?"
            ),
            (
                "!iq",
                "column 1: \"!\" instead of a condition; expected a condition such as message or type:chat; did you mean \"not\"?"
            ),
            ("message and", "column 12: the filter ends here; expected a condition such as message"),
            ("not", "column 4: the filter ends here; expected a condition such as message"),
            (
                "or iq",
                "column 1: unknown condition \"or\"; expected a condition such as message, type:chat or body~\"hello\""
            ),
            ("(message", "column 1: \"(\" without \")\""),
            ("message)", "column 8: \")\" without \"(\""),
            ("()", "column 2: \")\" instead of a condition; expected a condition such as message or type:chat"),
            ("(message iq)", "column 10: unexpected \"iq)\"; expected and, or, \")\" or the end"),
            ("type", "column 5: type without a value; expected type:chat"),
            ("type:", "column 6: type without a value; expected type:chat"),
            ("type=chat", "column 5: \"=\" after type; expected type:chat"),
            ("type:caht", "column 6: \"caht\" is not a type of a stanza; did you mean \"chat\"?"),
            ("message:chat", "column 8: message takes no value; expected message alone"),
            (
                "kind:stanzas",
                "column 6: \"stanzas\" is not a kind; expected message, presence, iq, nonza, stanza, session, declaration, stream-open, whitespace, stream-close, tls, bytes, note, error, chunk, frame; did you mean \"stanza\"?"
            ),
            ("level:warning", "column 7: \"warning\" is not a valid level; expected error, warn, info, verbose, trace"),
            (
                "part:sals",
                "column 6: \"sals\" is not a part; expected session, sasl, tls, rules, inject, net, capture, replay, control; did you mean \"sasl\"?"
            ),
            ("phase:binding", "column 7: \"binding\" is not a valid phase of a filter; expected handshake, open"),
            ("body", "column 5: body without a value; expected body:\"text\", body=\"text\" or body~\"pattern\""),
            ("body>x", "column 5: \">\" after body; expected body:\"text\", body=\"text\" or body~\"pattern\""),
            ("body~\"hello", "column 6: \" is not closed"),
            ("body~\"\"", "column 7: the text is empty"),
            ("body~\"a(b\"", "column 8: the regular expression is wrong: \"(\" without \")\""),
            ("body~\"(a)\\1\"", "column 10: the regular expression is wrong: back references are not supported"),
            ("xml=x", "column 4: \"=\" after xml; expected xml:\"text\" or xml~\"pattern\""),
            ("size", "column 5: size without a value; expected size>10kB"),
            ("size:10kB", "column 6: missing comparison; expected >, <, >=, <= or ="),
            ("size>10xB", "column 6: \"xB\" is not a unit of size; expected B, kB, MB, KiB or MiB"),
            ("round-trip>2", "column 12: a duration without a unit; expected ms, s, min or h, as in 500ms"),
            ("with:a@@b", "column 6: \"a@@b\" is not a JID: domain part: U+0040 at byte 0 is not allowed there"),
            ("session:0", "column 9: \"0\" is not a number of a session; expected a whole number from 1"),
            (
                "element:urn:xmpp:sm:3",
                "column 9: \"urn:xmpp:sm:3\" is not an element name; expected {namespace}name, {namespace}* or name"
            ),
            (
                "payload:{urn:x",
                "column 9: \"{urn:x\" is not a path: \"{\" without \"}\"; expected a path, as in {urn:xmpp:ping}ping or body#"
            ),
            (
                "inspect:body=x",
                "column 9: \"body\" is an element, not a text; append # for the text of the element, or @name for an attribute"
            ),
            (
                "from-ip:1.2.3",
                "column 9: \"1.2.3\" is not an IP address; expected one as in 192.0.2.7; FROM SUBNET takes networks"
            ),
            ("limit:calm", "column 1: limit is not a condition of filters; filters do not count"),
            (
                "check-list:bad",
                "column 1: check-list is not a condition of filters; filters have no definitions; with:<*>@example.org compares domains"
            ),
            ("in-roster", "column 1: in-roster is not a condition of filters; filters do not know the roster"),
            ("time:8:00-9:00", "column 1: time is not a condition of filters; filters do not know the local time"),
            ("from-admin", "column 1: from-admin is not a condition of filters; only the server knows administrators"),
            ("code:,", "column 6: the list is empty"),
            ("body~\"a\"b", "column 9: unexpected \"b\"; expected and, or, \")\" or the end"),
            ("message\u{1B}[31m", "column 8: unexpected \"\\u{1b}[31m\"; expected and, or, \")\" or the end"),
        ]
    )
    func refusing(text: String, message: String) {
        do throws(FilterFault) {
            _ = try RecordFilter(text)
            Issue.record("accepted: \(text)")
        } catch {
            #expect(error.description == message)
        }
    }

    @Test func `A filter address without a domain is valid and causes a warning`() throws {
        let filter = try RecordFilter("message and (jid:romeo or not with:Juliet-2)")
        #expect(
            filter.warnings == [
                "jid:romeo means the domain romeo; for an account write jid:romeo@DOMAIN or jid:romeo@<*>",
                "with:Juliet-2 means the domain Juliet-2; for an account write with:Juliet-2@DOMAIN or with:Juliet-2@<*>",
            ]
        )
        for text in ["jid:romeo@<*>", "jid:romeo@x", "from:localhost", "to:example.net", "type:chat", "with:<*>@x"] {
            #expect(try RecordFilter(text).warnings.isEmpty, "\(text)")
        }
        #expect(try Self.shown("jid:juliet@<*>") == Self.shown("jid:juliet@example.org"))
    }

    @Test func `A filter nested deeper than the limit is refused`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "(", count: depth) + "message" + String(repeating: ")", count: depth)
        }
        #expect(try Self.shown(nested(RecordFilter.maximumDepth - 1)) == [4, 5, 11, 14])
        for text in [nested(RecordFilter.maximumDepth), String(repeating: "not ", count: 100_000) + "iq"] {
            #expect(throws: FilterFault.self) { try RecordFilter(text) }
        }
    }

    @Test func `A condition with an aborted pattern does not match, negated or not`() throws {
        let hard = "with:<<" + String(repeating: "a*", count: 30) + "[bc]>>@example.net"
        let long = String(repeating: "a", count: 300)
        let line = try Self.line(
            1,
            #""level":"info","kind":"stanza","direction":"recv","name":"message","from":"\#(long)@example.net","session":1"#
        )
        for text in [hard, "not \(hard)"] {
            #expect(try !RecordFilter(text).matches(line.record, content: line.content.span))
        }
        #expect(try RecordFilter("message or \(hard)").matches(line.record, content: line.content.span))
    }

    @Test(
        "A condition of filters says what the same condition of rules says",
        arguments: [
            ("KIND: message", "message"), ("TYPE: chat, normal", "type:chat,normal"),
            ("PAYLOAD: urn:xmpp:ping", "payload:urn:xmpp:ping"), ("WITH: <*>@example.net", "with:<*>@example.net"),
            ("FROM: romeo@example.net", "from:romeo@example.net"),
            ("TO EXACTLY: juliet@example.org/b", "to-exactly:juliet@example.org/b"),
            ("INSPECT: body#/=Romeo", "body:Romeo"), ("INSPECT: body#~~=(?i)hello", "body~(?i)hello"),
            ("FROM FULL JID?", "from-full-jid"), ("NOT FROM FULL JID?", "not from-full-jid"), ("TO SELF?", "to-self"),
            ("DIRECTION: recv", "recv"), ("ROUND TRIP: > 2s", "round-trip>2s"), ("ORIGIN: tap", "origin:tap"),
        ]
    )
    func likeRules(rule: String, text: String) throws {
        var run = RuleDryRun(try RuleSet([RuleSource(name: "x", text: "\(rule)\nLOG=x\n")])) { _ in RuleLocalTime() }
        // The records that a dry run can evaluate: stanzas of an open session, with their XML. Stanzas that xmpptap
        // sends are evaluated only by rules that test the origin.
        let items = Self.lines.filter {
            $0.record.kind == .stanza && $0.record.xml != nil && $0.record.sequence > 3
                && ($0.record.origin == .peer || rule.hasPrefix("ORIGIN"))
        }
        let hits = items.filter { run.evaluate($0) != nil }.map(\.record.sequence)
        let numbers = Set(items.map(\.record.sequence))
        #expect(try Self.shown(text).filter(numbers.contains) == hits)
    }
}
