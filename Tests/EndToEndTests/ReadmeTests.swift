import Foundation
import TapTestKit
import Testing

/// Tests of the statements in the README and the manual.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ReadmeTests {
    private static let lines = Documentation.pages.flatMap(\.lines)

    @Test func `Every flag in the documentation exists`() async throws {
        // The options of all commands, including those that the short help omits.
        let definitions = try await XMPPTapBinary.run(["--experimental-dump-help"])
        #expect(definitions.ending == .exited(0))
        var known = Set(definitions.output.matches(of: /"name" : "([a-z0-9-]+)"/).map { "--\($0.1)" })
        #expect(known.count > 50)
        // The first is a hidden option of the argument parser; the others belong to other programs.
        known.formUnion([
            "--generate-completion-script", "--unix-socket", "--inject-secrets", "--debug", "--logfile", "--print-xmpp",
            "--page",
        ])
        let named = Self.lines.reduce(into: Set<String>()) { $0.formUnion(Self.flags(in: $1)) }
        #expect(named.count > 10)
        #expect(named.subtracting(known) == [])
    }

    @Test(
        "Every jq command in the documentation prints a result",
        .enabled(if: TestProgram.areInstalled(.jq), "jq is missing")
    )
    func questions() async throws {
        let folder = try TemporaryFolder()
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", folder.path(of: "first.xtap")])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        let questions = Self.lines.filter { $0.hasPrefix("$ jq ") }
        #expect(questions.count > 2)
        for question in questions {
            let shell = try ToolProcess(
                "/bin/bash",
                ["-c", "set -o pipefail; cd \"$0\" && \(question.dropFirst(2))", folder.path]
            )
            #expect(try await shell.ending() == .exited(0), "\(question): \(shell.text(of: .standardError))")
            let answer = shell.text(of: .standardOutput)
            #expect(!answer.isEmpty && answer != "null\n", "\(question) gives nothing")
        }
    }

    @Test func `Every transcript in the documentation has a test`() {
        // The beginnings of blocks of commands, settings or code, which contain no output to compare.
        let others = [
            "xmpptap ", "make ", "tcpdump ", "jq ", "(umask", "echo ", "bash ", "SSL_CERT_FILE=", "1$ ", "# tap.conf",
            "systemctl ", "# The server's uptime", "import logging", "# The password files", "nft ", "nmcli ",
            "# /etc/dnsmasq.d", " SOURCES ", "ssl = {", "ca_file: ", "SELECT ", "clients ──→ HAProxy", "global",
        ]
        for page in Documentation.pages {
            for transcript in page.transcripts {
                guard let first = transcript.lines.first(where: { !$0.isEmpty && $0 != "…" }) else {
                    Issue.record("\(page.name): an empty block")
                    continue
                }
                guard transcript.lines.contains(where: { $0.hasPrefix("$ ") }) else {
                    let isClaimed = Documentation.Sample.allCases.contains { sample in
                        !sample.isCommand && transcript.lines.contains(where: sample.begins)
                    }
                    #expect(isClaimed || others.contains(where: first.hasPrefix), "\(page.name): nobody tests \(first)")
                    continue
                }
                for (command, next) in zip(transcript.lines, transcript.lines.dropFirst() + [""])
                where command.hasPrefix("$ ") && !next.isEmpty && !next.hasPrefix("$ ") {
                    let isClaimed = Documentation.Sample.allCases.contains { $0.isCommand && $0.begins(command) }
                    #expect(isClaimed, "\(page.name): nobody tests \(command)")
                }
            }
        }
    }

    @Test func `The README has at most 300 lines, and all links work`() throws {
        let readme = try #require(Documentation.pages.first)
        #expect(readme.text.split(separator: "\n", omittingEmptySubsequences: false).count <= 301)
        for page in Documentation.pages {
            let folder = page.name == "README.md" ? Documentation.root : Documentation.manual
            for link in page.text.matches(of: #/\]\(([^)\s]+)\)/#) {
                let parts = link.1.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                guard !link.1.hasPrefix("http"), let file = parts.first else { continue }
                let path = file.isEmpty ? "\(folder)/\(page.name)" : "\(folder)/\(file)"
                #expect(FileManager.default.fileExists(atPath: path), "\(page.name): no file \(file)")
                guard parts.count > 1 else { continue }
                let headings = Tap.read(path).split(separator: "\n").filter { $0.hasPrefix("#") }.map(Self.anchor)
                #expect(headings.contains(String(parts[1])), "\(page.name): \(link.1): no heading for it")
            }
        }
    }

    @Test func `The pictures in the manual match the program's output`() async throws {
        let folder = try TemporaryFolder()
        let program = try #require(XMPPTapBinary.path)
        let script = "\(Documentation.root)/.ci/pictures"
        let pictures = try ToolProcess("/usr/bin/python3", [script, program, folder.path])
        #expect(try await pictures.ending() == .exited(0), "\(pictures.text(of: .standardError))")
        // Durations differ in length, which changes the position at which a row is cut off.
        func rows(_ path: String) -> [String] { Self.rows(of: path).map { $0.replacing(#/\S*…$/#, with: "…") } }
        let drawn = rows("\(Documentation.manual)/terminal.svg")
        let shown = rows(folder.path(of: "terminal.svg"))
        #expect(drawn.count > 8)
        // A login that takes more than 3 seconds is shown with its steps instead.
        if shown.contains(where: { $0.contains("✓ login") }) {
            let difference = Transcript(lines: drawn).difference(from: shown)
            #expect(difference == nil, "\(difference ?? ""); draw them again with .ci/pictures")
            try Documentation.check(.compact, shown)
        }
        let diagram = Set(Self.rows(of: folder.path(of: "explain.svg")).map(Transcript.shape))
        let labels = Self.rows(of: "\(Documentation.manual)/explain.svg").map(Transcript.shape)
        #expect(labels.count > 20)
        #expect(labels.filter { !diagram.contains($0) } == [], "draw them again with .ci/pictures")
    }

    /// Returns the texts of a picture, one for each `text` element.
    private static func rows(of path: String) -> [String] {
        Tap.read(path).matches(of: #/<text[^>]*>([\s\S]*?)<\/text>/#).map { element in
            element.1.replacing(#/<title>[^<]*<\/title>/#, with: "").replacing(/<[^>]*>/, with: " ").replacing(
                "&lt;",
                with: "<"
            )
            .replacing("&gt;", with: ">").replacing("&quot;", with: "\"").replacing("&#39;", with: "'")
            .replacing("&amp;", with: "&").split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
    }

    /// Returns the anchor that GitHub creates for a heading.
    private static func anchor(_ heading: Substring) -> String {
        String(
            heading.drop { $0 == "#" || $0 == " " }.lowercased().filter {
                $0.isLetter || $0.isNumber || " -".contains($0)
            }
            .replacing(" ", with: "-")
        )
    }

    private static func flags(in text: String) -> Set<String> {
        let pieces = text.components(separatedBy: "--").dropFirst()
        return Set(
            pieces.map { "--" + $0.prefix { $0.isASCII && ($0.isLowercase || $0.isNumber) || $0 == "-" } }.filter {
                $0.contains(where: \.isLetter)
            }
        )
    }
}
