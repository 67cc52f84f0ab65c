import Foundation
import TapTestKit
import Testing

/// Tests of `xmpptap convert` to logs, packets and pages, and of reading them again.
@Suite(.timeLimit(.minutes(3)), .serialized, .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ConvertTests {
    /// Returns the XML of the stanzas of session 1 from `read`.
    private static func stanzas(_ file: String) async throws -> [String] {
        let read = try await XMPPTapBinary.run(["read", file, "--json"])
        try #require(read.ending == .exited(0), "\(read.error)")
        return try read.output.split(separator: "\n").compactMap { line in
            let record = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return record?["kind"] as? String == "stanza" ? record?["xml"] as? String : nil
        }
    }

    @Test func `converting a capture loses no stanza, and existing files are not overwritten`() async throws {
        let folder = try TemporaryFolder()
        let capture = folder.path(of: "talk.xtap")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", capture])
        try #require(demo.ending == .exited(0), "\(demo.error)")
        let stanzas = try await Self.stanzas(capture)
        #expect(stanzas.count > 8)
        let compressed = ["xtap.gz", "xtap.zst", "pcapng.gz", "html.gz"]
        for ending in ["jsonl", "pcapng", "log", "html"] + compressed {
            let output = folder.path(of: "out.\(ending)")
            let made = try await XMPPTapBinary.run(["convert", capture, output])
            #expect(made.ending == .exited(0) && made.error.isEmpty && made.output.isEmpty, "\(ending): \(made.error)")
            let again = try await XMPPTapBinary.run(["convert", capture, output])
            #expect(again.ending == .exited(2) && again.error.contains("out.\(ending) exists already"))
        }
        for ending in ["pcapng"] + compressed.dropLast() {
            #expect(try await Self.stanzas(folder.path(of: "out.\(ending)")) == stanzas, "\(ending)")
        }
        let same = try await XMPPTapBinary.run([
            "diff", folder.path(of: "out.xtap.gz"), folder.path(of: "out.xtap.zst"),
        ])
        #expect(same.ending == .exited(0), "\(same.output)\(same.error)")
        #expect(folder.read("out.jsonl") == folder.read("talk.xtap"))
        let (log, page) = (folder.read("out.log"), folder.read("out.html"))
        for stanza in stanzas { #expect(log.contains(stanza)) }
        #expect(page.hasPrefix("<!DOCTYPE html>") && page.contains("romeo@localhost/demo"))

        // Converts packets to a capture and replaces an existing file. A session that does not exist gives no output.
        let back = folder.path(of: "out.jsonl")
        let packets = folder.path(of: "out.pcapng")
        let replaced = try await XMPPTapBinary.run(["convert", packets, back, "--overwrite"])
        #expect(replaced.ending == .exited(0), "\(replaced.error)")
        #expect(try await Self.stanzas(back) == stanzas)
        let other = try await XMPPTapBinary.run(["convert", capture, folder.path(of: "o.pcapng"), "--session", "9"])
        #expect(other.ending == .exited(1) && other.error.contains("--session 9: there is no such session"))
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        let plain = ["o.pcapng", "out.html", "out.jsonl", "out.log", "out.pcapng", "talk.xtap"]
        #expect(names == (plain + compressed.map { "out.\($0)" }).sorted())
    }

    @Test
    func `convert reports missing XML, refuses unreadable input, and skips damaged lines`()
        async throws
    {
        let folder = try TemporaryFolder()
        let log = folder.path(of: "info.jsonl")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--log-to", "\(log),format=json,info"])
        try #require(demo.ending == .exited(0), "\(demo.error)")
        let packets = try await XMPPTapBinary.run(["convert", log, folder.path(of: "a.pcapng")])
        #expect(packets.ending == .exited(1) && packets.error.contains("the recording lacks their XML"))

        let damaged = try folder.write(folder.read("info.jsonl") + "{\"sequence\":1}\n", to: "damaged.jsonl")
        let kept = try await XMPPTapBinary.run(["convert", damaged, folder.path(of: "b.log")])
        #expect(kept.ending == .exited(3) && !folder.read("b.log").isEmpty)

        let text = try folder.write("nothing\n", to: "a.txt")
        for ending in ["xtap", "log", "pcapng", "html"] {
            let refused = try await XMPPTapBinary.run(["convert", text, folder.path(of: "c.\(ending)")])
            #expect(refused.ending == .exited(3), "\(ending): \(refused.error)")
        }
        // With a limit on the file size, the message names the given file, and no partial file is left.
        let path = try #require(XMPPTapBinary.path)
        let full = folder.path(of: "full.xtap")
        let limited = try ToolProcess(
            "/bin/sh",
            ["-c", "ulimit -S -f 1; exec \"$0\" convert \"$1\" \"$2\"", path, log, full]
        )
        #expect(try await limited.ending() == .exited(3))
        #expect(limited.text(of: .standardError) == "xmpptap: cannot write \(full): File too large\n")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names == ["a.pcapng", "a.txt", "b.log", "damaged.jsonl", "info.jsonl"])
    }
}
