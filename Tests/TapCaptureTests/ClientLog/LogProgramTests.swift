import Foundation
import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCapture

/// Changes that programs, and the tools around them, make to the items that they print.
struct LogProgramTests {
    /// The whole items of a log, each with the text in front of it.
    private static func fragments(_ log: String) -> [LogFragment] {
        var fragmenter = LogFragmenter()
        for (index, line) in log.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            fragmenter.process(Array(line.utf8), number: index + 1)
        }
        fragmenter.finish()
        return fragmenter.takeEntries().compactMap { if case .fragment(let fragment) = $0 { fragment } else { nil } }
    }

    private static func items(_ log: String) -> [String] {
        fragments(log).flatMap(\.items).filter { $0.state == .whole }.map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    /// The stanzas and the items of the login that the sessions of a log have, each with its direction.
    private static func records(_ log: String) throws -> [(direction: String, xml: String)] {
        let folder = try TemporaryFolder()
        let reader = try RecordReader([try folder.write(log, to: "x.log")])
        var found: [(String, String)] = []
        while let entry = try reader.next() {
            guard case .record(let line) = entry, let xml = line.record.xml, let direction = line.record.direction
            else {
                continue
            }
            found.append((direction == .send ? "SEND" : "RECV", line.content.span.slice(xml).string()))
        }
        return found
    }

    // MARK: Prosody

    private static let prosody = """
        c2s55d0a2b7c8e0          debug\tSending[c2s_unauthed]: <challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>
        c2s55d0a2b7c8e0          debug\tSEND: <challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>cj0=</challenge>
        authverify               debug\tuser romeo
        c2s55d0a2b7c8e0          debug\tRECV: <iq type='get' id='1' to='example.org'><ping xmlns='urn:xmpp:ping'/></iq>
        c2s55d0a2b7c8e0          debug\tReceived[c2s]: <iq type='get' id='1' to='example.org'>
        mod_ping                 debug\tanswering
        c2s55d0a2b7c8e0          debug\tSending[c2s]: <iq type='result' id='1' from='example.org'>
        c2s55d0a2b7c8e0          debug\tSEND: <iq type='result' id='1' from='example.org'/>
        c2s55d0a2b7c8e0          debug\tSending[c2s]: <message from='romeo@example.org'>
        c2s55d0a2b7c8e0          debug\tSEND: <message from='romeo@example.org' to='juliet@example.org/x'><body>hi</body></message>
        """

    @Test(arguments: ["", "prosody-1  | ", "May 01 10:12:01 "])
    func `Prosody's console log with heads of stanzas is read with and without times`(prefix: String) throws {
        let log = Self.prosody.split(separator: "\n").map { prefix + $0 }.joined(separator: "\n")
        let found = try Self.records(log).filter { !$0.xml.contains("stream:stream") }
        #expect(found.map(\.direction) == ["RECV", "SEND", "RECV", "RECV"])
        #expect(found.last?.xml.hasSuffix("<body>hi</body></message>") == true)
    }

    @Test func `The tab at the beginning of further lines in Prosody's log is removed`() {
        let log = """
            May 01 10:12:01 c2s55d0a2b7c8e0\tdebug\tRECV: <message id='1'><body>one
            \t
            \t\ttwo</body></message>
            May 01 10:12:02 c2s55d0a2b7c8e0\tdebug\tRECV: <message id='2'><body>one
            two
            \tthree</body></message>
            """
        #expect(
            Self.items(log) == [
                "<message id='1'><body>one\n\n\ttwo</body></message>",
                "<message id='2'><body>one\ntwo\n\tthree</body></message>",
            ]
        )
        let other = "10:12:01 RECV: <message><body>one\n\ttwo</body></message>"
        #expect(Self.items(other) == ["<message><body>one\n\ttwo</body></message>"])
    }

    // MARK: ejabberd

    private static func ejabberd(_ verb: String, _ xml: String) -> String {
        "2026-11-30 12:45:41.210941+00:00 [notice] <0.582.0> (tcp|<0.582.0>) \(verb) XML on stream = \(xml)\n"
    }

    @Test func `Characters of an Erlang binary are read as bytes`() {
        let log = [
            #"<<"<message id=\"1\"><body>grÃ¼n</body></message>">>"#,
            #"<<"<message id=\"2\"><body>grün</body></message>">>"#,
            #"<<"<message id=\"3\"><body>grÃ¼n 🌹</body></message>">>"#,
            #"<<"<message id=\"4\"><body>grÃ¼n</body></message>"/utf8>>"#,
        ].map { Self.ejabberd("Received", $0) }.joined()
        #expect(
            Self.items(log) == [
                "<message id=\"1\"><body>grün</body></message>", "<message id=\"2\"><body>grün</body></message>",
                "<message id=\"3\"><body>grÃ¼n 🌹</body></message>", "<message id=\"4\"><body>grÃ¼n</body></message>",
            ]
        )
    }

    @Test func `A binary that Erlang prints as numbers is read, also over several lines`() {
        func numbers(_ text: String) -> String {
            var (lines, line) = ([String](), "")
            for (index, byte) in text.utf8.enumerated() {
                line += (index == 0 ? "" : ",") + "\(byte)"
                guard line.utf8.count > 40 else { continue }
                lines.append(line)
                line = ""
            }
            let all = (lines + [line]).joined(separator: "\n").replacing("\n,", with: ",\n            ")
            return "<<\(all)>>"
        }
        let one = "<message id=\"1\"><body>a \\ 🌹 \"rose\"\nü Ã¼</body></message>"
        let two = "<presence id='2'/>"
        let log =
            Self.ejabberd("Received", numbers(one)) + Self.ejabberd("Send", numbers(two))
            + Self.ejabberd("Send", "<<\"<presence id='3'/>\">>")
        #expect(Self.items(log) == [one, two, "<presence id='3'/>"])
        let fragments = Self.fragments(log)
        #expect(fragments.first?.line == 1 && fragments.first?.stamp?.hasDay == true)
        #expect(Set(fragments.map(\.lead.shape)).count == 2)
        // Lists of other numbers are not changed.
        let others =
            "10:12:01 SEND: <presence/>\n10:12:02 <<1,2,3>>\n10:12:03 <<60,\n10:12:04 SEND: <presence id='4'/>\n"
        #expect(Self.items(others) == ["<presence/>", "<presence id='4'/>"])
    }

    // MARK: Python

    @Test func `Items that Python prints with repr are decoded`() {
        let log = #"""
            2026-11-30 12:41:00,021 DEBUG    stream RECV: '<message id="1"><body>one\ntwo \\n \'three\' \xa0\U0001f339</body></message>'
            2026-11-30 12:41:00,022 DEBUG    stream RECV: '<message id="2"><body>one</body></message>'
            2026-11-30 12:41:00,023 DEBUG    stream RECV: <message id="3"><body>C:\new</body></message>
            """#
        #expect(
            Self.items(log) == [
                "<message id=\"1\"><body>one\ntwo \\n 'three' \u{a0}🌹</body></message>",
                "<message id=\"2\"><body>one</body></message>", #"<message id="3"><body>C:\new</body></message>"#,
            ]
        )
        let quoted = #"RECV [12]: '<message id="1"><body>C:\new</body></message>'"#
        #expect(Self.items(quoted) == [#"<message id="1"><body>C:\new</body></message>"#])
    }

    @Test func `A request to enable stream management that slixmpp announces is read once`() throws {
        let log = """
            2026-11-30 12:41:00,021 DEBUG    slixmpp.stream RECV: <presence from="romeo@example.org/x" to="juliet@example.org/y"/>
            2026-11-30 12:41:00,022 DEBUG    slixmpp.sm enabling outgoing SM: <enable xmlns="urn:xmpp:sm:3" resume="true" />
            2026-11-30 12:41:00,022 DEBUG    slixmpp.stream SEND: <enable xmlns="urn:xmpp:sm:3" resume="true" />
            2026-11-30 12:41:00,023 DEBUG    slixmpp.stream RECV: <r xmlns="urn:xmpp:sm:3" />
            2026-11-30 12:41:00,023 DEBUG    slixmpp.stream SEND: <r xmlns="urn:xmpp:sm:3" />
            """
        let found = try Self.records(log).map(\.xml)
        #expect(found.filter { $0.contains("<enable") }.count == 1)
        #expect(found.filter { $0.contains("<r ") }.count == 2)
    }

    @Test(arguments: ["", "Nov 30 12:41:00 host python3[12]: "])
    func `A stanza in a Python traceback is not an item`(prefix: String) {
        let presence = "<presence from=\"room@example.org/x\" to=\"juliet@example.org/y\" type=\"error\"/>"
        let log = """
            2026-11-30 12:41:00,021 DEBUG    slixmpp.stream SEND: <presence to="room@example.org/x"/>
            2026-11-30 12:41:00,022 DEBUG    slixmpp.stream RECV: \(presence)
            2026-11-30 12:41:00,023 ERROR    asyncio Task exception was never retrieved
            future: <Task finished coro=<join() done, defined at muc.py:260> exception=PresenceError(\(presence))>
            Traceback (most recent call last):
            slixmpp.exceptions.PresenceError: \(presence)
            2026-11-30 12:41:00,024 DEBUG    slixmpp.stream SEND: <presence id="last"/>
            """
        let lines = log.split(separator: "\n").map { prefix + $0 }.joined(separator: "\n")
        #expect(
            Self.items(lines) == ["<presence to=\"room@example.org/x\"/>", presence, "<presence id=\"last\"/>"]
        )
    }

    @Test func `Items on lines without times are read after lines with times`() {
        let log = """
            10:12:01 connected: <starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>
            Client: <auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'/>
            Server: <success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>
            Client: <presence id='1'/>
            Server: <presence id='2'/>
            """
        #expect(Self.items(log).count == 5)
    }

    // MARK: Tools around the program

    @Test(arguments: [
        ("Nov 30 12:41:00 host python3[12]: ", "2026-11-30 12:41:00,021 DEBUG    slixmpp.stream "),
        ("python-1  | ", "2026-11-30 12:41:00,021 DEBUG    slixmpp.stream "), ("python-1  | ", "DEBUG    "),
        ("prosody-1  | ", "c2s55d0a2b7c8e0          debug\t"),
    ])
    func `A line of a message's text behind the prefix of a container or journal is not an item`(
        prefix: String,
        front: String
    ) {
        let body = "one\nRECV: &lt;message/&gt;\nSEND: &lt;iq type=&quot;get&quot;/&gt;\nSEND: "
        let message = "<message id=\"1\"><body>\(body)</body></message>"
        let log = [
            "\(front)SEND: <presence id='0'/>", "\(front)RECV: \(message)", "\(front)SEND: <presence id='2'/>",
            "\(front)RECV: <message id='cut'><body>one", "\(front)SEND: <presence id='3'/>",
        ]
        let lines = log.joined(separator: "\n").split(separator: "\n").map { prefix + $0 }.joined(separator: "\n")
        #expect(Self.items(lines) == ["<presence id='0'/>", message, "<presence id='2'/>", "<presence id='3'/>"])
    }

    @Test func `Escapes of rsyslog are decoded in the text of an item`() {
        let front = "Nov 30 12:40:59 host prosody[12]: c2s55d0a2b7c8e0"
        let log = """
            \(front)#011debug#011RECV: <message id='1' name='#012'><body>one#012#011two#012 #012345 a#015</body></message>
            10:12:01 RECV: <message><body>one#012two</body></message>
            2026-11-30T12:40:59.123+01:00 host prosody[12]: c2s55d0a2b7c8e0 debug RECV: <message id='2'><body>a#012b</body></message>
            """
        let items = log.split(separator: "\n").flatMap { Self.items(String($0)) }
        #expect(
            items == [
                "<message id='1' name='#012'><body>one\n\ttwo\n #012345 a\r</body></message>",
                "<message><body>one#012two</body></message>", "<message id='2'><body>a\nb</body></message>",
            ]
        )
        #expect(Self.fragments(log).first?.lead.words.contains(Array("recv".utf8)) == true)
    }

    @Test func `Lines of Docker's JSON log are read as the lines of the program`() throws {
        func entry(_ text: String, _ second: Int, end: String = #"\n"#) -> String {
            let text = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\t", with: "\\t")
            let time = "2026-11-30T12:40:0\(second).123456789Z"
            return #"{"log":"\#(text)\#(end)","stream":"stderr","attrs":{"a":"b"},"time":"\#(time)"}"# + "\n"
        }
        let front = "c2s55d0a2b7c8e0          debug\t"
        let log =
            entry("\(front)RECV: <message id=\"1\"><body>one\\n", 0) + entry("\ttwo", 0) + entry("\t", 0)
            + entry("\tthree</body></message>", 0) + entry("\(front)SEND: <mess", 1, end: "")
            + entry("age id='2'><body>RECV: &lt;iq/&gt;</body></message>", 1)
            + entry("Nov 30 13:40:05 \(front)RECV: <presence/>", 3)
        let fragments = Self.fragments(log)
        #expect(
            Self.items(log) == [
                "<message id=\"1\"><body>one\\n\ntwo\n\nthree</body></message>",
                "<message id='2'><body>RECV: &lt;iq/&gt;</body></message>", "<presence/>",
            ]
        )
        #expect(
            fragments.map { $0.stamp?.time.text.suffix(15) }
                == ["00.123456789Z", "01.123456789Z", "03.123456789Z"].map {
                    Substring("0:\($0)").suffix(15)
                }
        )
        #expect(fragments.allSatisfy { $0.stamp?.hasDay == true && $0.stamp?.hasZone == true })
    }

    // MARK: Times

    private static func times(_ lines: [String], zone: LocalZone = .utc) -> [String] {
        var clock = ClientLogClock(zone: zone)
        return lines.map { String(clock.instant(of: ClientLogStamp(Array("\($0) x".utf8))).time.text.prefix(19)) }
    }

    @Test func `Dates without a year count the days from the first line`() {
        #expect(
            Self.times(["Nov 28 14:00:20", "Nov 28 23:59:59", "Nov 30 09:00:00", "Nov 29 23:00:00", "Dec  1 01:00:00"])
                == [
                    "1970-01-01T14:00:20", "1970-01-01T23:59:59", "1970-01-03T09:00:00", "1970-01-03T09:00:00",
                    "1970-01-04T01:00:00",
                ]
        )
        #expect(
            Self.times(["Dec 31 23:00:00", "Jan  1 01:00:00", "Dec 31 23:59:00", "Jan  1 02:00:00"])
                == ["1970-01-01T23:00:00", "1970-01-02T01:00:00", "1970-01-02T01:00:00", "1970-01-02T02:00:00"]
        )
        #expect(Self.times(["Feb 28 10:00:00", "Mar  1 09:00:00"]).last == "1970-01-02T09:00:00")
        #expect(Self.times(["Feb 29 10:00:00", "Mar  1 09:00:00"]).last == "1970-01-02T09:00:00")
        #expect(Self.times(["Jan  1 10:00:00", "Oct  1 09:00:00"]).last == "1970-10-01T09:00:00")
    }

    @Test func `A time that names less of its date follows the last complete date`() {
        #expect(
            Self.times(
                ["2026-11-30 23:30:00", "Nov 30 23:40:00", "23:50:00", "00:10:00", "Dec  1 00:20:00"],
                zone: .berlin
            ) == [
                "2026-11-30T22:30:00", "2026-11-30T22:40:00", "2026-11-30T22:50:00", "2026-11-30T23:10:00",
                "2026-11-30T23:20:00",
            ]
        )
    }

    @Test func `Times without a zone follow a change of daylight saving time`() {
        // In Berlin, the clock went from 02:00 to 03:00 on 29 March and from 03:00 to 02:00 on 25 October 2026.
        #expect(
            Self.times(
                ["2026-03-28 23:30:00", "23:40:00", "01:59:00", "03:01:00", "Mar 30 12:00:00", "13:00:00"],
                zone: .berlin
            ) == [
                "2026-03-28T22:30:00", "2026-03-28T22:40:00", "2026-03-29T00:59:00", "2026-03-29T01:01:00",
                "2026-03-30T10:00:00", "2026-03-30T11:00:00",
            ]
        )
        for date in ["", "Oct 25 ", "2026-10-25 "] {
            #expect(
                Self.times(
                    ["2026-10-25 01:59:00"]
                        + ["02:00:00", "02:50:00", "02:00:01", "02:50:01", "03:00:00"].map { date + $0 },
                    zone: .berlin
                ) == [
                    "2026-10-24T23:59:00", "2026-10-25T00:00:00", "2026-10-25T00:50:00", "2026-10-25T01:00:01",
                    "2026-10-25T01:50:01", "2026-10-25T02:00:00",
                ],
                "\(date)"
            )
        }
        // Nothing shows that the hour has begun again.
        #expect(
            Self.times(["2026-10-25 02:10:00", "02:40:00", "02:39:59"], zone: .berlin).last == "2026-10-25T00:40:00"
        )
    }

    @Test(arguments: [
        (["Nov 28 14:00:20"], "2026-11-27T23:00:00"), (["Dec  1 00:10:00"], "2026-11-30T23:00:00"),
        // The first line may lack the day that a later line names.
        (["23:59:00", "00:01:00", "Nov 30 00:02:00"], "2026-11-28T23:00:00"),
        // Nothing says which year it is.
        (["Jun  3 14:00:00"], nil),
    ])
    func `A log without years keeps its own days beside a recording`(lines: [String], midnight: String?) throws {
        var clock = ClientLogClock(zone: .berlin)
        for line in lines { _ = clock.instant(of: ClientLogStamp(Array("\(line) x".utf8))) }
        let recording = try #require(Timestamp(rfc3339: "2026-11-30T12:00:00Z"))
        #expect((clock.midnight(near: recording)?.text.prefix(19)).map(String.init) == midnight)
        let newYear = try #require(Timestamp(rfc3339: "2027-01-01T10:00:00Z"))
        var december = ClientLogClock(zone: .utc)
        _ = december.instant(of: ClientLogStamp(Array("Dec 31 23:00:00 x".utf8)))
        #expect(december.midnight(near: newYear) == Timestamp(rfc3339: "2026-12-31T00:00:00Z"))
    }

    @Test(arguments: [
        ("30 Nov 2026 12:00:01", "2026-11-30T12:00:01"), ("30.11.2026 12:00:01", "2026-11-30T12:00:01"),
        ("Nov 30, 2026 12:00:01", "2026-11-30T12:00:01"), ("Nov 3, 2026, 1:00:01 PM", "2026-11-03T13:00:01"),
        ("[30/Nov/2026:12:00:01]", "2026-11-30T12:00:01"), ("30.11.2026, 12:00:01", "2026-11-30T12:00:01"),
        // The order of these numbers is not known.
        ("11/12/2026 12:00:01", "1970-01-01T12:00:01"), ("11.30.2026 12:00:01", "1970-01-01T12:00:01"),
        ("Nov 31 12:00:01", "1970-01-01T12:00:01"),
    ])
    func `Dates with a month's name or with points are read`(text: String, time: String) {
        #expect(Self.times([text]) == [time])
    }

    @Test func `The complete time of a program replaces the time of the journal without a year`() {
        let lines = [
            "Nov 30 12:40:58 host python3[12]: 2026-11-30 12:41:00,021 DEBUG",
            "Nov 30 12:41:01 host systemd[1]: started",
            "Nov 30 12:41:02 host python3[12]: the certificate is valid until 2027-01-01 00:00:00",
            "2026-11-30T12:41:03Z host python3[12]: 2026-11-30 12:00:00 DEBUG",
        ]
        #expect(
            Self.times(lines) == [
                "2026-11-30T12:41:00", "2026-11-30T12:41:01", "2026-11-30T12:41:02", "2026-11-30T12:41:03",
            ]
        )
    }
}
