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
        let file = PageFile(report, of: paths.map { [$0] }, keys: KeyLog())
        let (page, data) = try Self.data(of: file)
        #expect(!page.contains(attack) && page.contains("&lt;script&gt;alert(1)"))
        #expect(data.contains(#""recorded":"one.log","live":"two.log""#) && data.contains(#""first_view":"report""#))
        #expect(data.contains("hello from one.log") && data.contains("hello from two.log"))
        for text in [page, data] { #expect(!text.contains(folder.path)) }
        // A recording that cannot be read again leaves the report.
        let alone = PageFile(report, of: [["/none"], [paths[1]]], keys: KeyLog())
        let rest = try Self.data(of: alone).data
        #expect(rest.contains(#""causes":[{"#) && !rest.contains("hello from"))
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
