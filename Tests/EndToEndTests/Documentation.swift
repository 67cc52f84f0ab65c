import Foundation
import Testing

/// The README and the pages of the manual. Tests compare the samples in them with the program's output.
enum Documentation {
    /// The path of the repository.
    static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized.path

    /// The path of the manual's folder.
    static let manual = "\(root)/Sources/xmpptap/Manual"

    /// A page and its text.
    struct Page: Sendable {
        let name: String
        let text: String

        var lines: [String] { text.split(separator: "\n").map(String.init) }
        var transcripts: [Transcript] { Transcript.all(in: text) }
    }

    /// The pages, with the README first.
    static let pages: [Page] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: manual)) ?? []
        return [Page(name: "README.md", text: Tap.read("\(root)/README.md"))]
            + names.filter { $0.hasSuffix(".md") }.sorted().map { Page(name: $0, text: Tap.read("\(manual)/\($0)")) }
    }()

    /// A sample that a test compares with the program. The raw value is the beginning of one of its lines; if that line
    /// is a command, its output follows it.
    enum Sample: String, CaseIterable {
        case doctor = "ok    OpenSSL"
        case builtInServer = "$ xmpptap proxy\n"
        case account = "$ xmpptap proxy juliet@example.org"
        case firstSession = "2026-11-21T11:30:25.382Z info [1] net:"
        case firstCapture = "$ xmpptap read first.xtap"
        case jq = "$ jq "
        case rulesCheck = "$ xmpptap rules check"
        case rulesRun = "$ xmpptap rules run filters/no-typing.pfw first.xtap"
        case insideTLS = "2026-11-21T19:16:30.701Z info"
        case insideTLSRead = "2026-11-21T19:16:30.767Z [1 juliet"
        case compact = "── 1 · romeo@localhost/demo"
        case subscription = "2026-11-21T12:37:51.939Z info"
        case avatar = "2026-11-21T12:37:51.999Z info"
        case room = "2026-11-21T12:37:52.011Z info"
        case wrongPassword = "$ xmpptap explain wrong.xtap"
        case diagnosis = "2026-11-21T18:30:03.383Z error"
        case profanityLog = "$ xmpptap explain profanity.log"
        case probe = "$ xmpptap probe juliet@localhost"
        case replay = "$ xmpptap replay talk.xtap"
        case scriptExport = "$ xmpptap convert archive.xtap"
        case diff = "$ xmpptap diff yesterday.xtap"
        case changed = "$ xmpptap proxy --upstream localhost:5322 --rules filters/block"
        case refused = "$ xmpptap proxy --upstream localhost:5322 --rules filters/refuse"
        case discovery = "2026-11-21T14:56:24.632Z info"
        case federation = "  failed at sasl: b.test refused"
        case dialback = "2026-11-21T14:57:52.410Z info"
        case pseudonyms = "$ xmpptap proxy --redact metadata"
        case sessions = "$ xmpptap sessions"
        case inject = "$ xmpptap inject --session 2 --to client"
        case injectRequest = "$ echo '<iq"
        case ping = "$ xmpptap ping --jid"
        case level = "$ xmpptap level verbose"
        case search = "$ xmpptap search contract --store"
        case stats = "$ xmpptap stats audit.sqlite"
        case curl = "$ curl -s --unix-socket"
        // The settings that the test of the first session takes from the page.
        case prosody = "c2s_ports"
        // The contents of a file that the test of replay writes.
        case accounts = "$ cat accounts.txt"

        /// Returns whether the sample begins with this line.
        func begins(_ line: String) -> Bool { "\(line)\n".hasPrefix(rawValue) }

        var isCommand: Bool { rawValue.hasPrefix("$ ") }
    }

    /// Returns the transcripts of a sample on all pages. For a command, they contain the lines after it.
    static func transcripts(_ sample: Sample) throws -> [Transcript] {
        let found = pages.flatMap(\.transcripts).compactMap { transcript -> Transcript? in
            guard let start = transcript.lines.firstIndex(where: sample.begins) else { return nil }
            guard sample.isCommand else { return transcript }
            let rest = transcript.lines[(start + 1)...]
            return Transcript(
                lines: Array(rest.prefix { !$0.hasPrefix("$ ") }.reversed().drop(while: \.isEmpty).reversed())
            )
        }
        try #require(!found.isEmpty, "no page has a transcript of \(sample.rawValue)")
        return found
    }

    /// Compares a sample, on each page that contains it, with the printed lines.
    static func check(
        _ sample: Sample,
        _ printed: [String],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        // These lines depend on the machine: whether a port is free, and whether IPv6 is available.
        func isOfMachine(_ line: String) -> Bool {
            line.hasPrefix("listening on [::1]") || line.hasPrefix("ok    xmpptap ")
                || line.contains(" port 15222 ") && !line.hasPrefix("point")
        }
        for transcript in try transcripts(sample) {
            let told = Transcript(lines: transcript.lines.filter { !isOfMachine($0) })
            let difference = told.difference(from: printed.filter { !isOfMachine($0) })
            #expect(
                difference == nil,
                "\(difference ?? "")\n\n\(printed.joined(separator: "\n"))",
                sourceLocation: sourceLocation
            )
        }
    }

    /// Compares a sample of several sessions with a log. The lines of each session must be in order; lines of different
    /// sessions may be interleaved in any way.
    static func check(
        _ sample: Sample,
        sessionsOf log: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let printed = log.split(separator: "\n").map(String.init)
        for transcript in try transcripts(sample) {
            let sessions = Dictionary(grouping: transcript.lines.filter { $0 != "…" }) { line in
                line.split(separator: " ").first { $0.hasPrefix("[") } ?? ""
            }
            for lines in sessions.values {
                let told = Transcript(lines: ["…"] + lines.flatMap { [$0, "…"] })
                let difference = told.difference(from: printed)
                #expect(difference == nil, "\(difference ?? "")\n\n\(log)", sourceLocation: sourceLocation)
            }
        }
    }
}
