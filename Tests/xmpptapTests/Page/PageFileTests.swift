import Foundation
import TapCapture
import TapRecord
import TapReplay
import TapSecurity
import TapTestKit
import Testing

@testable import xmpptap

/// A page that is a file, which may be passed on.
struct PageFileTests {
    private static func header(_ run: String, _ redaction: String, before: Int = 0) -> String {
        #"{"xtap":1,"tool":"test","time":"2026-11-29T10:00:00Z","level":"verbose","filter":null,"complete":false,"redaction":"\#(redaction)","run":"\#(run)","records_before":\#(before)}"#
    }

    private static let record =
        #"{"sequence":1,"time":"2026-11-29T10:00:01.000000000Z","monotonic":1.5,"level":"info","kind":"note","session":3,"message":"hello"}"#

    /// Returns the answers and records in the page of files.
    private static func data(of paths: [String], sessions: Set<UInt64> = []) throws -> (page: String, data: String) {
        let file = PageFile(of: paths, sessions: sessions, view: .records)
        let reader = try RecordReader(paths)
        while let entry = try reader.next() { file.add(entry) }
        return try data(of: file)
    }

    private static func data(of file: PageFile) throws -> (page: String, data: String) {
        let page = try file.drawn()
        let base64 = try #require(page.firstMatch(of: #/id="data">([^<]*)</#)?.1)
        let packed = try #require(Data(base64Encoded: String(base64)))
        let bytes = Compression.gzip.contents(of: Array(packed), limit: 1 << 20)
        return (page, String(decoding: bytes, as: UTF8.self))
    }

    @Test func `a page names files without their folders, and the redaction of all files`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.write(
            [Self.header("a", "secrets"), Self.record, "{\"sequence\":", Self.header("a", "secrets", before: 9)]
                .joined(separator: "\n") + "\n",
            to: "today.log"
        )
        let second = try folder.write(Self.header("b", "none") + "\n" + Self.record + "\n", to: "other.log")
        let (page, data) = try Self.data(of: [first, second])
        #expect(data.contains(#""files":["today.log","other.log"]"#))
        #expect(data.contains(#""title":"today.log, other.log""#))
        #expect(data.contains(#""redaction":"none, secrets""#))
        // Remarks on damaged lines and on gaps name files, too.
        #expect(data.contains("line 3 of today.log is incomplete"))
        #expect(data.contains("missing before line 4 of today.log"))
        for text in [page, data] { #expect(!text.contains(folder.path(of: ""))) }
        #expect(!data.contains("/today.log"))
    }

    @Test func `a report is text in the page, with the records of both sides and without their folders`() throws {
        let folder = try TemporaryFolder()
        let paths = try ["one.log", "two.log"].map { name in
            let text = Self.record.replacing("hello", with: "hello from \(name)")
            return try folder.write(Self.header(name, "secrets") + "\n" + text + "\n", to: name)
        }
        let attack = "</noscript><script>alert(1)</script>"
        var report = DivergenceReport(command: "diff", recorded: paths[0], live: paths[1], failingClasses: [.behaviour])
        let divergence = Divergence(
            .behaviour,
            .changed,
            recorded: Divergence.Item(session: 3, sequence: 1, at: 0, direction: .recv, text: attack),
            live: nil,
            message: attack
        )
        report.add(DivergenceReport.Case(name: attack, divergences: [divergence]))
        let file = PageFile(report, of: paths.map { Self.whole($0) }, keys: KeyLog())
        let (page, data) = try Self.data(of: file)
        #expect(!page.contains(attack) && page.contains("&lt;script&gt;alert(1)"))
        #expect(data.contains(#""recorded":"one.log","live":"two.log""#) && data.contains(#""first_view":"report""#))
        #expect(data.contains("hello from one.log") && data.contains("hello from two.log"))
        for text in [page, data] { #expect(!text.contains(folder.path)) }
        // A recording that cannot be read again leaves the report.
        let alone = PageFile(report, of: [Self.whole("/tmp/none"), Self.whole(paths[1])], keys: KeyLog())
        let rest = try Self.data(of: alone).data
        #expect(rest.contains(#""causes":[{"#) && !rest.contains("hello from") && !rest.contains("/tmp"))
        #expect(rest.contains("This page has no records: the records are left out, because none cannot be read again."))
    }

    private static func whole(_ path: String) -> PageFile.Recording {
        PageFile.Recording(files: [path], sessions: [])
    }

    /// A report without differences.
    private static let report = DivergenceReport(command: "diff", recorded: "a", live: "b", failingClasses: [])

    @Test func `a report has only the records of the compared sessions`() throws {
        let folder = try TemporaryFolder()
        let paths = try ["one.log", "two.log"].map { name in
            let records = (1...3).map { session in
                Self.record.replacing("\"session\":3", with: "\"session\":\(session)")
                    .replacing("hello", with: "session \(session) of \(name)")
            }
            return try folder.write(
                ([Self.header(name, "secrets")] + records).joined(separator: "\n") + "\n",
                to: name
            )
        }
        let sides = [
            PageFile.Recording(files: [paths[0]], sessions: [1]), PageFile.Recording(files: [paths[1]], sessions: [3]),
        ]
        let data = try Self.data(of: PageFile(Self.report, of: sides, keys: KeyLog())).data
        let found = data.matches(of: #/"message":"(session \d of \w+\.log)"/#).map { String($0.1) }
        #expect(found == ["session 1 of one.log", "session 3 of two.log"])
        // Both sides are sessions of one file.
        let same = [1, 2].map { PageFile.Recording(files: [paths[0]], sessions: [$0]) }
        let pair = try Self.data(of: PageFile(Self.report, of: same, keys: KeyLog())).data
        #expect(pair.contains("session 1 of") && pair.contains("session 2 of") && !pair.contains("session 3 of"))
    }

    @Test func `a recording that is compared with itself, or with its copy, is counted once in each session`() throws {
        let folder = try TemporaryFolder()
        let text = Self.header("a", "secrets") + "\n" + Self.record + "\n"
        let (path, copy) = (try folder.write(text, to: "a.log"), try folder.write(text, to: "copy.log"))
        func sessions(_ paths: [String]) throws -> [String] {
            let file = PageFile(Self.report, of: paths.map { Self.whole($0) }, keys: KeyLog())
            #expect(file.omission == nil)
            let data = try Self.data(of: file).data
            return data.matches(of: #/"session":(\d+),[^{]*?"records":(\d+)/#).map { "\($0.1): \($0.2)" }
        }
        #expect(try sessions([path, path]) == ["3: 1"])
        #expect(try sessions([path, copy]) == ["3: 1", "20000003: 1"])
    }

    @Test func `a report without records, because they are too large, says so`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "large.log")
        let long = Self.record.replacing("hello", with: String(repeating: "x", count: 1 << 20))
        let lines = [Self.header("a", "secrets")] + Array(repeating: long, count: 52)
        try (lines.joined(separator: "\n") + "\n").write(toFile: path, atomically: true, encoding: .utf8)
        let file = PageFile(Self.report, of: [Self.whole(path), Self.whole("/tmp/other")], keys: KeyLog())
        let omission = try #require(file.omission)
        #expect(omission.contains("larger than 50 MiB") && omission.contains("--session"))
        let data = try Self.data(of: file).data
        #expect(data.contains(#""trouble":"This page has no records: the records are larger than 50 MiB"#))
        #expect(data.contains(#""end":0"#))
    }

    @Test func `a page has only the records of the chosen sessions`() throws {
        let folder = try TemporaryFolder()
        let other = Self.record.replacing("\"session\":3", with: "\"session\":4").replacing("hello", with: "goodbye")
        let path = try folder.write(
            [Self.header("a", "secrets"), Self.record, other].joined(separator: "\n") + "\n",
            to: "today.log"
        )
        let data = try Self.data(of: [path], sessions: [4]).data
        #expect(data.contains("goodbye") && !data.contains("hello"))
    }
}
