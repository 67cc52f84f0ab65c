import TapRecord
import TapTestKit
import Testing
import XMPPCore

@Suite struct LogSpecTests {
    private func message(_ text: String) -> String? {
        do throws(LogSpecError) {
            _ = try LogSpec(text)
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `a log specification has levels, directions, parts, sessions and JIDs`() throws {
        let spec = try LogSpec(
            "warn, send ,recv,tls=trace,sasl=off,session:12=verbose,jid:Romeo@Example.org=info,jid:a@b/c%2Cd=x=trace"
        )
        #expect(spec.level == .warn)
        #expect(spec.showsSend && spec.showsReceive)
        #expect(spec.parts == [.tls: .trace, .sasl: .off])
        #expect(spec.sessions == [12: .verbose])
        #expect(spec.jids.map(\.jid) == [JID("romeo@example.org"), JID("a@b/c,d=x")])
        #expect(spec.jids.map(\.level) == [.info, .trace])
    }

    @Test func `the level can be omitted`() throws {
        #expect(try LogSpec("send").level == nil)
        #expect(LogFilter(try LogSpec("send")).level(of: .session) == .info)
    }

    @Test(arguments: Level.allCases)
    func `each level is a word of the specification`(level: Level) throws {
        #expect(try LogSpec(level.name).level == level)
        #expect(try LogSpec("control=\(level.name)").parts == [.control: level])
    }

    @Test(arguments: [
        "info", "off", "send", "recv", "verbose,send,recv",
        "info,session=off,sasl=trace,tls=trace,session:1=off,session:20=warn",
        "jid:example.org=trace,jid:a@b=off,jid:a@b/x,y=info".replacing(",y", with: "%2Cy"),
        "jid:a%252C@b=warn", "jid:50%@b/%252c%2525%20=trace",
    ])
    func `a specification is printed in the form that it is parsed from`(text: String) throws {
        let spec = try LogSpec(text)
        #expect(spec.description == text)
        #expect(try LogSpec(spec.description) == spec)
    }

    @Test func `random specifications are parsed from their printed form`() throws {
        var random = SeededGenerator(seed: 7)
        let letters = Array("ab%2C5,=c")
        for _ in 0..<500 {
            let resource = String((0..<8).map { _ in letters[Int.random(in: letters.indices, using: &random)] })
            let jid = try JID(local: "a", domain: "example.org", resource: resource)
            let encoded = resource.replacing("%", with: "%25").replacing(",", with: "%2C")
            let spec = try LogSpec("info,jid:a@example.org/\(encoded)=trace")
            #expect(spec.jids.first?.jid == jid)
            #expect(try LogSpec(spec.description) == spec)
        }
    }

    @Test(arguments: [
        ("verbos", #""verbos" at column 1 is not part of a log specification; did you mean "verbose"?"#),
        ("info,Sned", #""Sned" at column 6 is not part of a log specification; did you mean "send"?"#),
        (
            "info, everything",
            #""everything" at column 7 is not part of a log specification; use a level (off, error, warn, info, verbose, trace), "#
                + "send, recv, PART=LEVEL, session:N=LEVEL or jid:JID=LEVEL"
        ),
        ("INFO", #""INFO" at column 1 is not part of a log specification; did you mean "info"?"#),
        ("tsl=info", #""tsl=info" at column 1 is not a part; did you mean "tls"?"#),
        (
            "database=info",
            #""database=info" at column 1 is not a part; the parts are session, sasl, tls, rules, inject, net, capture, "#
                + "replay, control"
        ),
        (
            "tls=debug",
            #""tls=debug" at column 1 is not a level; the levels are off, error, warn, info, verbose, trace"#
        ),
        ("tls=infos", #""tls=infos" at column 1 is not a level; did you mean "info"?"#),
        ("tls=", #""tls=" at column 1 is not a level; the levels are off, error, warn, info, verbose, trace"#),
        (
            "info,tls",
            #""tls" at column 6 has no level; write "tls=LEVEL" with one of off, error, warn, info, verbose, trace"#
        ),
        (
            "session:3",
            #""session:3" at column 1 has no level; write "session:3=LEVEL" with one of "#
                + "off, error, warn, info, verbose, trace"
        ),
        (
            "session:x=info",
            #""session:x=info" at column 1 is not a session; sessions are numbered from 1, as in session:3=verbose"#
        ),
        (
            "session:0=info",
            #""session:0=info" at column 1 is not a session; sessions are numbered from 1, as in session:3=verbose"#
        ),
        (
            "session:+1=info",
            #""session:+1=info" at column 1 is not a session; sessions are numbered from 1, as in session:3=verbose"#
        ),
        ("info,warn", #""warn" at column 6 is a second level after "info"; leave one out"#),
        ("send,recv,send", #""send" at column 11 is repeated; leave one out"#),
        ("tls=info,tls=warn", #""tls=warn" at column 10 is repeated; leave one out"#),
        ("jid:A@b=info,jid:a@b=warn", #""jid:a@b=warn" at column 14 is repeated; leave one out"#),
        ("session:1=info,session:1=info", #""session:1=info" at column 16 is repeated; leave one out"#),
        (
            "info,,send",
            "an empty word at column 6; a log specification is a comma-separated list of a level "
                + "(off, error, warn, info, verbose, trace), send, recv, PART=LEVEL, session:N=LEVEL or jid:JID=LEVEL"
        ),
        (
            "\u{1B}[2J",
            #""\u{1b}[2J" at column 1 is not part of a log specification; use a level "#
                + "(off, error, warn, info, verbose, trace), send, recv, PART=LEVEL, session:N=LEVEL or jid:JID=LEVEL"
        ),
    ])
    func `a mistake is reported with its column and a suggestion`(text: String, expected: String) {
        #expect(message(text) == expected)
    }

    @Test func `an invalid JID is refused with the reason`() {
        let text = message("info,jid:@example.org=trace") ?? ""
        #expect(text.hasPrefix(#""jid:@example.org=trace" at column 6 is not a JID ("#))
        #expect(text.hasSuffix("; write a comma in a JID as %2C"))
        #expect(message("")?.hasPrefix("an empty word at column 1;") == true)
    }
}

@Suite struct LogFilterTests {
    private func record(
        _ level: Level,
        _ part: Part = .session,
        session: UInt64 = 1,
        jid: String? = nil,
        direction: Direction? = nil
    ) -> Record {
        var record = Record(
            sequence: 1,
            time: Timestamp(nanoseconds: 0),
            monotonic: 0,
            kind: .stanza,
            level: level,
            part: part
        )
        record.session = session
        record.jid = jid
        record.direction = direction
        record.xml = direction == nil ? nil : ByteRange(0, 1)
        return record
    }

    private func shown(_ spec: String, _ record: Record) throws -> LogFilter.Shown {
        LogFilter(try LogSpec(spec)).shown(of: record)
    }

    @Test func `a level shows its own records and more severe ones`() throws {
        for asked in Level.allCases {
            for level in Level.allCases where level != .off {
                #expect(try shown(asked.name, record(level)).contains(.summary) == (level <= asked))
            }
        }
        #expect(try shown("trace", record(.off)) == [])
    }

    @Test func `send and recv show items in addition to the level`() throws {
        let sent = record(.info, direction: .send)
        let received = record(.info, direction: .recv)
        #expect(try shown("info", sent) == .summary)
        #expect(try shown("warn,send", sent) == .xml)
        #expect(try shown("warn,send", received) == [])
        #expect(try shown("info,send,recv", received) == [.summary, .xml])
        #expect(try shown("verbose", sent) == [.summary, .xml])
        #expect(try shown("off,recv", received) == .xml)
        // A record without XML has no SEND line.
        #expect(try shown("verbose", record(.info)) == .summary)
    }

    @Test func `a part can have a different level`() throws {
        #expect(try shown("warn,tls=trace", record(.trace, .tls)) == .summary)
        #expect(try shown("warn,tls=trace", record(.info, .sasl)) == [])
        #expect(try shown("info,send,sasl=off", record(.info, .sasl, direction: .send)) == [])
        #expect(try shown("info,sasl=verbose", record(.info, .sasl, direction: .send)) == [.summary, .xml])
        #expect(try shown("info,send,sasl=error", record(.info, .sasl, direction: .send)) == .xml)
    }

    @Test func `the most specific word decides`() throws {
        let spec =
            "info,tls=error,jid:romeo@example.org=verbose,jid:romeo@example.org/phone=warn,"
            + "jid:example.org=off,session:7=trace"
        func level(_ session: UInt64, _ jid: String?, _ part: Part = .tls) throws -> Level {
            LogFilter(try LogSpec(spec)).level(of: part, session: session, jid: jid)
        }
        #expect(try level(1, nil) == .error)
        #expect(try level(1, nil, .net) == .info)
        #expect(try level(1, "romeo@example.org/desk") == .verbose)
        #expect(try level(1, "Romeo@EXAMPLE.org/phone") == .warn)
        #expect(try level(1, "juliet@example.org/x") == .off)
        #expect(try level(1, "juliet@example.com/x") == .error)
        #expect(try level(1, "not a jid@@") == .error)
        #expect(try level(7, "juliet@example.org/x") == .trace)
        // A server may bind an invalid JID.
        #expect(try level(1, "♚@Example.org/x") == .off)
        #expect(try level(1, "ROMEO@example.org/\u{378}") == .verbose)
    }

    @Test func `before a JID is bound, the user name and the domain of the login count`() throws {
        func level(_ user: String?, _ domain: String?, _ spec: String) throws -> Level {
            var record = record(.info)
            (record.user, record.domain) = (user, domain)
            let filter = LogFilter(try LogSpec(spec))
            return try #require(
                [Level.trace, .verbose, .info, .off].first { level in
                    record.level = level
                    return level == .off || filter.shown(of: record).contains(.summary)
                }
            )
        }
        let romeo = "off,jid:romeo@example.org=verbose"
        #expect(try level("romeo", "example.org", romeo) == .verbose)
        #expect(try level("Romeo", "EXAMPLE.org", romeo) == .verbose)
        #expect(try level("romeo@example.org", "example.org", romeo) == .verbose)
        #expect(try level("romeo@example.org", nil, romeo) == .verbose)
        #expect(try level("juliet", "example.org", romeo) == .off)
        #expect(try level("romeo", "example.com", romeo) == .off)
        #expect(try level("romeo", nil, romeo) == .off)
        #expect(try level(nil, "example.org", romeo) == .off)
        #expect(try level(nil, nil, romeo) == .off)
        #expect(try level(nil, "example.org", "off,jid:example.org=info") == .info)
        #expect(try level("romeo", "example.org", "off,jid:example.org=info") == .info)
        // A resource that is not bound yet does not match.
        #expect(try level("romeo", "example.org", "off,jid:romeo@example.org/phone=info") == .off)
    }

    @Test func `the level of a filter is the highest that it can show`() throws {
        #expect(LogFilter(try LogSpec("warn")).level == .warn)
        #expect(LogFilter(try LogSpec("warn,send")).level == .verbose)
        #expect(LogFilter(try LogSpec("warn,session:3=trace")).level == .trace)
        #expect(LogFilter(try LogSpec("off")).level == .off)
        #expect(LogFilter(LogSpec()).level == .info)
    }
}
