import Foundation
import TapTestKit
import Testing

/// Tests of `read` with the built program.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ReadTests {
    private let folder = try? TemporaryFolder()

    private static let header =
        #"{"xtap":1,"tool":"xmpptap 0.1.0","time":"2026-11-21T17:22:42.000000000Z","level":"verbose","filter":null,"#
        + #""complete":true,"redaction":"secrets","run":"0a0b"}"#
    private static let writtenHeader = "\(header.dropLast()),\"records_before\":0}"
    private static let records = [
        #"{"sequence":1,"time":"2026-11-21T17:22:42.102000000Z","monotonic":0.102,"level":"info","part":"net","#
            + #""kind":"session","session":1,"message":"hello"}"#,
        #"{"sequence":2,"time":"2026-11-21T17:22:43.102000000Z","monotonic":1.102,"level":"info","part":"session","#
            + #""kind":"stanza","session":2,"direction":"send","leg":"client","epoch":1,"offset":0,"length":11,"#
            + #""chunks":[4],"name":"presence","xml":"<presence/>","later":[1]}"#,
    ]

    private func capture(_ lines: [String], end: String = "\n") throws -> String {
        try #require(folder).write(lines.joined(separator: "\n") + end, to: "hand.xtap")
    }

    @Test func `read shows a capture at any level, one session of it, or the same JSON`() async throws {
        let file = try capture([Self.header] + Self.records)
        let info = try await XMPPTapBinary.run(["read", file])
        #expect(info.ending == .exited(0))
        #expect(info.error.isEmpty)
        #expect(
            info.output
                == "2026-11-21T17:22:42.102Z info [1] net: hello\n2026-11-21T17:22:43.102Z info [2] SEND presence 11 B\n"
        )
        let second = try await XMPPTapBinary.run(["read", file, "--session", "2", "--log", "off,send"])
        #expect(second.output == "2026-11-21T17:22:43.102Z [2] SEND: <presence/>\n")
        let ninth = try await XMPPTapBinary.run(["read", file, "--session", "9"])
        #expect(ninth.ending == .exited(1) && ninth.output.isEmpty)
        #expect(ninth.error == "xmpptap: --session 9: there is no such session; the first is 1, the last 2\n")
        let json = try await XMPPTapBinary.run(
            ["read", "-", "--json"],
            input: ([Self.header] + Self.records).joined(separator: "\n") + "\n"
        )
        #expect(json.ending == .exited(0))
        #expect(json.output.split(separator: "\n").map(String.init) == [Self.writtenHeader] + Self.records)
    }

    @Test func `Lines have the local time with offset, JSON has UTC, and both can be read back`()
        async throws
    {
        let file = try capture([Self.header] + Self.records)
        func read(_ arguments: String...) async throws -> String {
            // An offset of three hours throughout the year.
            try await XMPPTapBinary.run(["read"] + arguments, environment: ["TZ": "EET-3"]).output
        }
        #expect(
            try await read(file)
                == "2026-11-21T20:22:42.102+03:00 info [1] net: hello\n"
                + "2026-11-21T20:22:43.102+03:00 info [2] SEND presence 11 B\n"
        )
        #expect(
            try await read(file, "--format", "compact").split(separator: "\n").prefix(1)
                .allSatisfy { $0.hasPrefix("── 2026-11-21 +03:00 ──") }
        )
        #expect(try await read(file, "--since", "20:22:43").hasPrefix("2026-11-21T20:22:43.102+03:00 info [2]"))
        #expect(try await read(file, "--since", "17:22:43Z").hasPrefix("2026-11-21T20:22:43.102+03:00 info [2]"))
        #expect(try await read(file, "--sessions").contains("  2026-11-21T20:22:42+03:00  "))
        #expect(try await read(file, "--json").contains(#""time":"2026-11-21T17:22:43.102000000Z""#))
        let log = try #require(folder).write(
            "2026-11-21T20:22:43.102+03:00 [2] SEND: <presence/>\n2026-11-21 20:22:44 x\n",
            to: "local.log"
        )
        let again = try await read(log, "--json")
        #expect(again.contains(#""time":"2026-11-21T17:22:43.102000000Z""#), "\(again)")
        #expect(again.contains(#""time":"2026-11-21T17:22:44.000000000Z""#), "\(again)")
    }

    @Test func `A filter whose JID can only be a domain causes a warning`() async throws {
        let file = try capture([Self.header] + Self.records)
        let read = try await XMPPTapBinary.run(["read", file, "--filter", "jid:romeo"])
        #expect(read.ending == .exited(0) && read.output.isEmpty)
        #expect(
            read.error == "xmpptap: warning: filter: jid:romeo means the domain romeo; for an account write "
                + "jid:romeo@DOMAIN or jid:romeo@<*>\n"
        )
        let log = try #require(folder).path(of: "filtered.log")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--log-to", "\(log),filter=with:romeo"])
        #expect(demo.error.contains("filter: with:romeo means the domain romeo"), "\(demo.error)")
    }

    @Test func `explain's exit code tells a failed login from a recording without one`() async throws {
        let folder = try #require(folder)
        func explain(_ log: String) async throws -> ToolProcess.Ending {
            try await XMPPTapBinary.run(["explain", folder.write(log, to: "client.log")]).ending
        }
        let streams = "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'"
        let header = "SEND: <stream:stream \(streams) to='x' version='1.0'>\n"
        let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"
        let offer = "<mechanisms \(sasl)><mechanism>PLAIN</mechanism></mechanisms>"
        let features = "RECV: <stream:features>\(offer)</stream:features>\n"
        let login = "SEND: <auth \(sasl) mechanism='PLAIN'>AGEAYg==</auth>\n"
        #expect(try await explain(header + features) == .exited(3))
        #expect(try await explain(header + features + login) == .exited(3))
        #expect(
            try await explain(header + features + login + "RECV: <failure \(sasl)><not-authorized/></failure>\n")
                == .exited(1)
        )
        let none = try await XMPPTapBinary.run(["explain", try capture([Self.header])])
        #expect(none.ending == .exited(3) && none.error.contains("no sessions found"))
    }

    @Test func `Times select records, and --sessions and --stats summarise them`() async throws {
        let file = try capture([Self.header] + Self.records)
        let late = try await XMPPTapBinary.run(["read", file, "--since", "17:22:43"])
        #expect(late.output == "2026-11-21T17:22:43.102Z info [2] SEND presence 11 B\n" && late.ending == .exited(0))
        let early = try await XMPPTapBinary.run(["read", file, "--until", "2026-11-21T17:22:43Z", "--json"])
        #expect(
            early.output.split(separator: "\n").map(String.init)
                == [Self.writtenHeader.replacing("true", with: "false"), Self.records[0]]
        )
        let none = try await XMPPTapBinary.run(["read", file, "--since", "-10m"])
        #expect(none.output.isEmpty && none.ending == .exited(0))
        let table = try await XMPPTapBinary.run(["read", file, "--sessions"])
        #expect(
            table.output == """
                SESSION  JID  CLIENT  BEGAN                 LASTED  ENDED  SENT  RECEIVED  ERRORS  SLOWEST IQ
                      1  -    -       2026-11-21T17:22:42Z  0 s     -         0         0       0  -
                      2  -    -       2026-11-21T17:22:43Z  0 s     -         1         0       0  -

                """
        )
        let json = try await XMPPTapBinary.run(["read", file, "--sessions", "--json", "--filter", "presence"])
        #expect(json.output.hasPrefix(#"{"session":2,"began":"2026-11-21T17:22:43.102000000Z","duration_ns":0,"#))
        let stats = try await XMPPTapBinary.run(["read", file, "--stats"])
        #expect(
            stats.output == """
                2 records from 2026-11-21T17:22:42Z to 2026-11-21T17:22:43Z

                KIND      SENT  RECEIVED  BYTES  AVERAGE  LARGEST
                presence     1         0   11 B     11 B     11 B

                """
        )
        // When several files are merged, each part names its file.
        let folder = try #require(folder)
        let client = try folder.write("2026-11-21 17:22:42.500 SEND: <presence/>\n", to: "client.log")
        let merged = try await XMPPTapBinary.run(["read", file, client])
        let files = merged.output.matches(of: /^#.*, file (.*)$/.anchorsMatchLineEndings()).map { String($0.1) }
        #expect(files == [client, file], "\(merged)")
        // A file without dates gets the date of the other files, or the next day if its time is after midnight.
        for (time, day) in [("17:22:42.900", 21), ("00:10:00.000", 22)] {
            let timed = try folder.write("\(time) SEND: <presence id='timed'/>\n", to: "timed.log")
            let three = try await XMPPTapBinary.run(["read", timed, file, client, "--json", "--filter", "id:timed"])
            #expect(three.output.contains("\"time\":\"2026-11-\(day)T\(time)"), "\(three)")
        }
        // A session in a log without times has no start time.
        let undated = try folder.write("SEND: <presence/>\n", to: "undated.log")
        let began = try await XMPPTapBinary.run(["read", undated, "--sessions"])
        #expect(began.output.contains(#/\n +1  - +- +- +0 s /#), "\(began)")
        let both = try await XMPPTapBinary.run(["read", file, "--stats", "--sessions"])
        #expect(both.ending == .exited(2) && both.error.contains("choose one of --sessions and --stats"))
    }

    @Test func `A torn last line is skipped with a message, and any other damaged line causes exit code 3`()
        async throws
    {
        let torn = try capture([Self.header, Self.records[0]], end: "\n{\"sequence\":2,\"ti")
        let read = try await XMPPTapBinary.run(["read", torn])
        #expect(read.ending == .exited(0))
        #expect(read.output == "2026-11-21T17:22:42.102Z info [1] net: hello\n")
        #expect(read.error.hasPrefix("xmpptap: line 3 of \(torn) is incomplete: "))
        let damaged = try capture([Self.header, "{\"sequence\":true}", Self.records[0]])
        let rest = try await XMPPTapBinary.run(["read", damaged])
        #expect(rest.ending == .exited(3))
        #expect(rest.output == "2026-11-21T17:22:42.102Z info [1] net: hello\n")
        #expect(rest.error.hasPrefix("xmpptap: line 2 of \(damaged) skipped: "))
        // Of many damaged lines, the first are named and the others are counted.
        let many = try capture([Self.header] + Array(repeating: "{}", count: 20) + [Self.records[0]])
        for arguments in [["read", many], ["explain", many], ["read", many, "--stats"], ["diff", many, many]] {
            let named = try await XMPPTapBinary.run(arguments).error.split(separator: "\n")
            #expect(named.count { $0.contains(" skipped: ") } == (arguments[0] == "diff" ? 32 : 16), "\(named)")
            #expect(named.contains("xmpptap: 4 more lines of \(many) skipped"), "\(named)")
        }
        _ = try capture([Self.header, "{\"sequence\":true}", Self.records[0]])
        // JSON written from incomplete input is not marked as complete.
        let json = try await XMPPTapBinary.run(["read", damaged, "--json"])
        #expect(
            json.output.split(separator: "\n").map(String.init)
                == [Self.writtenHeader, Self.writtenHeader.replacing("true", with: "false"), Self.records[0]]
        )
        // The session becomes ready, so only the damaged line affects the exit code.
        let ready = Self.records[0].replacing("\"message\"", with: "\"code\":\"session-ready\",\"message\"")
        for (lines, end, code) in [
            ([Self.header, ready], "\n", 0), ([Self.header, ready], "\n{\"sequence\":2,\"ti", 0),
            ([Self.header, "{\"sequence\":true}", ready], "\n", 3),
        ] as [([String], String, Int32)] {
            let file = try capture(lines, end: end)
            for arguments in [["read"], ["explain"], ["explain", "--format", "svg"], ["explain", "--subscriptions"]] {
                let run = try await XMPPTapBinary.run([arguments[0], file] + arguments.dropFirst())
                #expect(run.ending == .exited(code), "\(arguments): \(run.error)")
            }
        }
    }

    @Test func `Sessions of several runs stay separate, in JSON and in text`() async throws {
        let folder = try #require(folder)
        func ready(_ minute: Int, _ sequence: Int, session: Int) -> String {
            Self.records[0].replacing("17:22:", with: "17:\(minute):")
                .replacing("\"sequence\":1", with: "\"sequence\":\(sequence)")
                .replacing("\"session\":1", with: "\"session\":\(session)")
                .replacing("\"message\"", with: "\"code\":\"session-ready\",\"message\"")
        }
        func header(_ minute: Int, _ run: String, before: Int, level: String = "verbose", complete: Bool = true)
            -> String
        {
            Self.writtenHeader.replacing("17:22:42.0", with: "17:\(minute):42.0").replacing("0a0b", with: run)
                .replacing("before\":0", with: "before\":\(before)").replacing("verbose", with: level)
                .replacing("\"complete\":true", with: "\"complete\":\(complete)")
        }
        // The parts of the first run enclose another run, which was recorded at a different level.
        let first = [header(10, "aa", before: 0), ready(10, 1, session: 1), ready(11, 2, session: 2)]
        let second = [header(20, "bb", before: 0, level: "info", complete: false), ready(20, 1, session: 1)]
        let third = [
            header(30, "aa", before: 2), ready(30, 3, session: 3),
            Self.records[1].replacing("17:22:", with: "17:30:").replacing("\"sequence\":2", with: "\"sequence\":4"),
        ]
        let files = try [third, second, first].enumerated().map {
            try folder.write($1.joined(separator: "\n") + "\n", to: "part\($0).xtap")
        }
        let json = try await XMPPTapBinary.run(["read", "--json"] + files)
        #expect(json.ending == .exited(0), "\(json.error)")
        #expect(json.error.isEmpty)
        #expect(json.output.split(separator: "\n").map(String.init) == first + second + third)
        let whole = try folder.write(json.output, to: "whole.xtap")
        let (told, again) = (
            try await XMPPTapBinary.run(["explain"] + files), try await XMPPTapBinary.run(["explain", whole])
        )
        #expect(told.ending == .exited(0))
        #expect(told.output == again.output && again.error.isEmpty)
        let heads = told.output.split(separator: "\n").filter { $0.hasPrefix("session ") }.map {
            $0.prefix { $0 != "," }
        }
        #expect(heads == ["session 1 of run 1", "session 2 of run 1", "session 1 of run 2", "session 3 of run 1"])
        // With one session selected, `records_before` counts only the records shown.
        let one = try await XMPPTapBinary.run(["read", whole, "--json", "--session", "3"])
        #expect(
            one.output.split(separator: "\n").map(String.init) == [
                header(10, "aa", before: 0, complete: false), second[0], header(30, "aa", before: 0, complete: false),
                third[1],
            ]
        )
        let text = try await XMPPTapBinary.run(["read", whole])
        #expect(
            text.output.split(separator: "\n").map(String.init) == [
                "2026-11-21T17:10:42.102Z info [1] net: hello", "2026-11-21T17:11:42.102Z info [2] net: hello",
                "# 2026-11-21T17:20:42.000Z xmpptap 0.1.0 log info", "2026-11-21T17:20:42.102Z info [1] net: hello",
                "# 2026-11-21T17:30:42.000Z xmpptap 0.1.0 log info", "2026-11-21T17:30:42.102Z info [3] net: hello",
                "2026-11-21T17:30:43.102Z info [2] SEND presence 11 B",
            ]
        )
    }

    @Test func `A drawing says how many sessions are not drawn`() async throws {
        let sessions = (1...53).map { number in
            Self.records[0].replacing("\"session\":1", with: "\"session\":\(number)")
                .replacing("\"message\"", with: "\"code\":\"session-ready\",\"message\"")
        }
        let file = try capture([Self.header] + sessions)
        let note = "50 of 53 sessions are drawn; choose others with --session"
        let some = try await XMPPTapBinary.run(["explain", file, "--format", "svg"])
        #expect(some.ending == .exited(0))
        #expect(some.error == "xmpptap: \(note)\n")
        #expect(some.output.contains(note))
        #expect(some.output.components(separatedBy: ">session ").count == 51)
        let all = try await XMPPTapBinary.run(
            ["explain", file, "--format", "svg"] + (1...53).flatMap { ["--session", "\($0)"] }
        )
        #expect(all.error.isEmpty)
        #expect(all.output.components(separatedBy: ">session ").count == 54)
        // An HTML page draws only what is in view, and therefore contains all sessions.
        let page = try await XMPPTapBinary.run(["explain", file, "--format", "html"])
        #expect(page.ending == .exited(0))
        #expect(page.error.isEmpty)
        #expect(!page.output.contains("sessions are drawn"))
        for session in 1...53 { #expect(page.output.contains("session \(session), ")) }
        // If one of the selected sessions does not exist, the exit code reports it even if the others exist.
        let missing = try await XMPPTapBinary.run(["explain", file, "--session", "1", "--session", "99"])
        #expect(missing.ending == .exited(1))
        #expect(missing.error.contains("--session 99: there is no such session"))
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "script is missing"))
    func `On a terminal, a long text is cut, with a hint how to see it whole`() async throws {
        let long = Self.records[1].replacing("<presence/>", with: "<presence>" + String(repeating: "x", count: 5000))
        let file = try capture([Self.header, long])
        let path = try #require(XMPPTapBinary.path)
        let script = try ToolProcess("/usr/bin/script", ["-qec", "\(path) read \(file) --format text", "/dev/null"])
        #expect(try await script.ending() == .exited(0))
        #expect(script.text(of: .standardOutput).contains(" kB cut here; redirect to a file to see it whole … "))
    }

    @Test func `A missing part is reported, and JSON made from the rest is marked incomplete`() async throws {
        let file = try capture(["\(Self.header.dropLast()),\"records_before\":1}", Self.records[1]])
        let read = try await XMPPTapBinary.run(["read", file, "--json"])
        #expect(read.ending == .exited(0))
        let told =
            "xmpptap: 1 record is missing before \(file): in a file of the run that was not named, or that no longer exists\n"
        #expect(read.error == told)
        #expect(read.output.hasPrefix(Self.writtenHeader.replacing("true", with: "false") + "\n"))
        #expect(try await XMPPTapBinary.run(["explain", file]).error.hasPrefix(told))
    }

    @Test func `Records of two sessions in swapped order do not count as lost`() async throws {
        let swapped = [Self.header, Self.records[1], Self.records[0]]
        let file = try capture(swapped)
        let read = try await XMPPTapBinary.run(["read", file])
        #expect(read.ending == .exited(0))
        #expect(read.error.isEmpty, "\(read.error)")
        #expect(
            read.output
                == "2026-11-21T17:22:43.102Z info [2] SEND presence 11 B\n2026-11-21T17:22:42.102Z info [1] net: hello\n"
        )
        let json = try await XMPPTapBinary.run(["read", file, "--json"])
        #expect(json.error.isEmpty)
        #expect(
            json.output.split(separator: "\n").map(String.init) == [Self.writtenHeader] + swapped.dropFirst(),
            "still complete, nothing added"
        )
        let first = try await XMPPTapBinary.run(["read", file, "--session", "1"])
        #expect(first.output == "2026-11-21T17:22:42.102Z info [1] net: hello\n")
    }

    @Test func `read says that a recording at info has no XML`() async throws {
        let file = try capture([Self.header.replacing("verbose", with: "info"), Self.records[0]])
        let read = try await XMPPTapBinary.run(["read", file, "--log", "verbose"])
        #expect(read.ending == .exited(0))
        #expect(
            read.error == "xmpptap: \(file): recorded at info; records of more detailed levels are missing\n"
        )
    }

    @Test func `A file in an unknown format is named, with exit code 3`() async throws {
        let folder = try #require(folder)
        for (name, text, message) in [
            ("other.txt", "hello\n", " is neither a log or capture of xmpptap nor a log of a client or server "),
            ("empty", "", " contains no records yet"),
            ("tap.log", "2026-11-21T17:22:42.102Z info [1] net: hello\n", " is a text log without the XML of items; "),
            (
                "newer.xtap", Self.header.replacing("\"xtap\":1", with: "\"xtap\":9") + "\n",
                " was written by a newer xmpptap"
            ),
        ] {
            let file = try folder.write(text, to: name)
            let read = try await XMPPTapBinary.run(["read", file])
            #expect(read.ending == .exited(3))
            #expect(read.error.hasPrefix("xmpptap: \(file)\(message)"), "\(read.error)")
            #expect(read.output.isEmpty)
        }
        // gzip files are read from a file and from a pipe, and the suggested command for bzip2 works.
        let path = try #require(XMPPTapBinary.path)
        let file = try capture([Self.header] + Self.records)
        let log = try await XMPPTapBinary.run(["read", file]).output
        #expect(log.hasPrefix("2026-11-21T17:22:42.102Z info [1] net: hello\n"))
        let shell = try ToolProcess(
            "/bin/bash",
            [
                "-c",
                """
                gzip -k "$1"; "$0" read "$1.gz"; cat "$1.gz" | "$0" read -
                bzip2 "$1"; "$0" read "$1.bz2"; echo $?; bzip2 -dc "$1.bz2" | "$0" read -
                """,
                path, file,
            ]
        )
        #expect(try await shell.ending() == .exited(0))
        #expect(shell.text(of: .standardOutput) == "\(log)\(log)3\n\(log)")
        #expect(
            shell.text(of: .standardError).contains(" is compressed (bzip2); unpack it first, as in bzip2 -dc FILE | ")
        )
        let missing = try await XMPPTapBinary.run(["read", "/nowhere.xtap"])
        #expect(missing.ending == .exited(3))
        #expect(missing.error == "xmpptap: cannot open /nowhere.xtap: No such file or directory\n")
        let nothing = try await XMPPTapBinary.run(["read"])
        #expect(nothing.ending == .exited(2))
        #expect(nothing.error == "xmpptap: missing expected argument '<file> ...'; see 'xmpptap read --help'\n")
    }

    @Test func `--follow waits for the first records of a file`() async throws {
        let file = try capture([])
        let read = try XMPPTapBinary(["read", file, "--follow", "--filter", "session:2"])
        _ = try await read.process.line(of: .standardError) { $0.contains("has no records or stanzas yet") }
        _ = try capture([Self.header] + Self.records)
        _ = try await read.process.line(of: .standardOutput) {
            $0 == "2026-11-21T17:22:43.102Z info [2] SEND presence 11 B"
        }
        read.process.signal(SIGINT)
        #expect(try await read.process.ending() == .exited(0))
    }

    @Test func `--follow ends by Ctrl-C while a client's log shows no stanza`() async throws {
        let file = try capture(["DEBUG    Loaded Plugin: XEP-0030"])
        let read = try XMPPTapBinary(["read", file, "--follow"])
        _ = try await read.process.line(of: .standardError) { $0.contains("has no records or stanzas yet") }
        read.process.signal(SIGINT)
        #expect(try await read.process.ending() == .exited(0))
        #expect(read.process.text(of: .standardOutput).isEmpty)
    }

    @Test func `--follow shows a growing capture across its rotation until Ctrl-C`() async throws {
        let file = try capture([Self.header])
        let read = try XMPPTapBinary(["read", file, "--follow", "--filter", "session:2"])
        func waits(for line: String) async throws {
            _ = try await read.process.line(of: .standardOutput) { $0 == line }
        }
        func append(_ lines: [String]) throws {
            let handle = try #require(FileHandle(forWritingAtPath: file))
            try handle.seekToEnd()
            try handle.write(contentsOf: Data(lines.map { "\($0)\n" }.joined().utf8))
            try handle.close()
        }
        try append(Self.records)
        try await waits(for: "2026-11-21T17:22:43.102Z info [2] SEND presence 11 B")
        // Records written to the old file before the new one exists are shown too.
        let third = Self.records[1].replacing("\"sequence\":2", with: "\"sequence\":3").replacing(":43.", with: ":44.")
        let fourth = Self.records[1].replacing("\"sequence\":2", with: "\"sequence\":4").replacing(":43.", with: ":45.")
        try append([third])
        try FileManager.default.moveItem(atPath: file, toPath: "\(file).1")
        _ = try capture(["\(Self.header.dropLast()),\"records_before\":3}", fourth])
        try await waits(for: "2026-11-21T17:22:45.102Z info [2] SEND presence 11 B")
        read.process.signal(SIGINT)
        #expect(try await read.process.ending() == .exited(0))
        #expect(read.process.text(of: .standardError).isEmpty)
        #expect(
            read.process.lines(of: .standardOutput).filter { !$0.hasPrefix("#") }
                == (43...45).map { "2026-11-21T17:22:\($0).102Z info [2] SEND presence 11 B" }
        )
    }

    @Test func `read ends without an error when its reader closes the pipe`() async throws {
        let path = try #require(XMPPTapBinary.path)
        let file = try capture([Self.header] + Array(repeating: Self.records[0], count: 20_000))
        let shell = try ToolProcess(
            "/bin/bash",
            ["-c", "\"$0\" read \"$1\" | head -1; echo ${PIPESTATUS[0]}", path, file]
        )
        #expect(try await shell.ending() == .exited(0))
        #expect(shell.text(of: .standardOutput) == "2026-11-21T17:22:42.102Z info [1] net: hello\n0\n")
        #expect(shell.text(of: .standardError).isEmpty)
    }

    @Test func `A read from the network is logged with its size once`() async throws {
        let demo = try await XMPPTapBinary.run(["demo", "--log", "trace"])
        let chunk = try #require(demo.output.split(separator: "\n").first { $0.contains("] SEND chunk ") })
        #expect(chunk.wholeMatch(of: /.* SEND chunk [0-9]+ B at 0/) != nil, "\(chunk)")
    }

    @Test func `Reading the capture of a session gives the same log as the live one`() async throws {
        let folder = try #require(folder)
        let demo = try await XMPPTapBinary.run([
            "demo", "--log", "off", "--log-to", "\(folder.path(of: "live.log")),verbose", "--capture",
            folder.path(of: "demo.xtap"),
        ])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        let read = try await XMPPTapBinary.run(["read", folder.path(of: "demo.xtap"), "--log", "verbose"])
        #expect(read.ending == .exited(0), "\(read.error)")
        let live = folder.read("live.log").split(separator: "\n").dropFirst().map(String.init)
        #expect(live.count > 20)
        #expect(read.output.split(separator: "\n").map(String.init) == live)
        let romeo = try await XMPPTapBinary.run([
            "read", folder.path(of: "demo.xtap"), "--log", "off,jid:romeo@localhost=verbose",
        ])
        let login = try #require(live.firstIndex { $0.contains(" [1 ~romeo] SEND: <auth ") })
        #expect(romeo.output.split(separator: "\n").map(String.init) == Array(live[login...]))
    }

    @Test(.enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set"))
    func `Packets from a pipe are shown before the pipe is closed`() async throws {
        let path = try #require(XMPPTapBinary.path)
        let packets = try #require(Corpus.folder).appending(path: "pcap/ndpi-jabber.pcap").path
        let shell = try ToolProcess(
            "/bin/sh",
            ["-c", "(cat \"$1\"; sleep 60) | \"$0\" read - --log info", path, packets]
        )
        _ = try await shell.line(of: .standardOutput, within: .seconds(40)) { $0.contains("RECV") }
        #expect(shell.isRunning)
        shell.signal(SIGKILL)
    }
}
