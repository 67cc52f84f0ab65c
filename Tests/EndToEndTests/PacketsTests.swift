import Foundation
import TapTestKit
import Testing

/// Tests of tcpdump and `xmpptap sniff` while two real clients talk through the intercepting proxy and Prosody.
@Suite(
    .timeLimit(.minutes(3)),
    .serialized,
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .tcpdump, .editcap, .openssl), "a program is missing")
)
struct PacketsTests {
    private let folder: TemporaryFolder
    private var keys: String { folder.path(of: "keys") }
    private var packets: String { folder.path(of: "night.pcap") }
    private var ownPackets: String { folder.path(of: "own.pcapng") }

    /// The recordings of one conversation.
    private struct Talk {
        /// The proxy's own log.
        var log: [LogRecord]
        /// The records of two `sniff` runs: `live` had the proxy's key log while it was written, and `late` received it
        /// at the end.
        var live: [LogRecord]
        var late: [LogRecord]
        /// The last line that the `live` run printed.
        var closing: String
    }

    init() throws { folder = try TemporaryFolder() }

    /// Returns the stanzas and elements of a session in one direction. Elements are compared only by name, because
    /// those of a login may differ between the two legs.
    private static func items(_ records: [LogRecord], of remote: String, _ direction: String) -> [String] {
        let session = records.first { $0.remote == remote }?.session
        let items = records.filter { $0.session == session && $0.direction == direction }
        return items.filter { $0.kind == "stanza" || $0.kind == "element" }.map {
            "\($0.name ?? "") \($0.kind == "stanza" ? $0.xml ?? "" : "")"
        }
    }

    private func records(_ arguments: [String], of file: String? = nil) async throws -> [LogRecord] {
        let read = try await XMPPTapBinary.run(["read", file ?? packets, "--json", "--log", "verbose"] + arguments)
        #expect(read.ending == .exited(0), "\(read.error)")
        return try LogRecord.all(in: folder.write(read.output, to: "read.json"))
    }

    private func sniff(_ ports: [UInt16], keys: String, _ arguments: [String] = []) async throws -> XMPPTapBinary {
        let sniff = try XMPPTapBinary(
            ["sniff", "-i", "lo", "--keylog", keys, "--json", "--log", "verbose"]
                + ports.flatMap { ["--port", "\($0)"] }
                + arguments
        )
        _ = try await sniff.process.line(of: .standardError) { $0.hasPrefix("capturing on lo") }
        return sniff
    }

    /// Ends `sniff` with SIGTERM, and returns its records.
    private func records(of sniff: XMPPTapBinary) async throws -> [LogRecord] {
        #expect(try await sniff.process.terminate() == .exited(0), "\(sniff.process.text(of: .standardError))")
        return try LogRecord.all(in: folder.write(sniff.process.text(of: .standardOutput), to: "sniff.json"))
    }

    /// Runs the conversation, and records its packets meanwhile.
    private func talk(version: String) async throws -> Talk {
        let scene = try await InterceptScene(
            version: version,
            arguments: ["--keylog", keys]
        )
        let capture = try ToolProcess(
            TestProgram.tcpdump.rawValue,
            [
                "-i", "lo", "-w", packets, "--immediate-mode", "-U", "-Z", "root", "-s", "0",
                "tcp and (\(scene.tap.ports.map { "port \($0)" }.joined(separator: " or ")))",
            ]
        )
        _ = try await capture.line(of: .standardError) { $0.contains("listening on lo") }
        let live = try await sniff(
            scene.tap.ports,
            keys: keys,
            [
                "--write", ownPackets, "--embed-keys", "--capture", folder.path(of: "soft.xtap"), "--capture-when",
                "body:soft",
            ]
                + ["--before", "0", "--after", "0"]
        )
        let late = try await sniff(scene.tap.ports, keys: folder.path(of: "late"))
        // With TLS 1.2, slixmpp would use channel binding, which fails because the server has a different TLS
        // connection.
        let mechanism = version == "1_2" ? ["--mechanism", "PLAIN"] : []
        func client(_ account: Account, _ port: UInt16, _ script: ScriptedClient.Script, _ option: String) throws
            -> ScriptedClient
        {
            try ScriptedClient(
                .slixmpp,
                as: account,
                port: port,
                startTLS: true,
                script,
                options: ["--ca", scene.authority, option] + mechanism
            )
        }
        let juliet = try client(.juliet, scene.tap.port, .init(reply: "Wherefore art thou", receive: 2), "--resume")
        try await juliet.event("ready")
        let lines = [(to: Account.juliet, body: "But, soft!"), (to: Account.juliet, body: "what light <&> 🌹")]
        try await client(.romeo, scene.directPort, .init(ping: true, send: lines, receive: 2), "--direct").finish()
        try await juliet.finish()
        try await scene.stop()
        try await capture.terminate()
        _ = try folder.write(folder.read("keys"), to: "late")
        return try await Talk(
            log: scene.tap.records(),
            live: records(of: live),
            late: records(of: late),
            closing: live.process.lines(of: .standardError).last ?? ""
        )
    }

    @Test("Packets decrypted with the proxy's key log have the same items as its log", arguments: ["1_3", "1_2"])
    func keyLog(version: String) async throws {
        let talk = try await talk(version: version)
        let log = talk.log
        let found = try await records(["--keylog", keys])
        let remotes = Set(log.filter { $0.kind == "session" }.compactMap(\.remote))
        #expect(remotes.count == 3)
        #expect(log.count { $0.name == "message" } == 8)
        for remote in remotes {
            for direction in ["send", "recv"] {
                for other in [found, talk.live, talk.late] {
                    #expect(Self.items(other, of: remote, direction) == Self.items(log, of: remote, direction))
                }
            }
        }
        // The options of the command that reads the packets decide what is redacted.
        func shows(_ records: [LogRecord], _ text: String) -> Bool {
            records.contains { $0.xml?.contains(text) == true || $0.jid?.contains(text) == true }
        }
        #expect(shows(found, "what light") && shows(found, "[redacted:sasl-"))
        for (flags, hidden) in [
            (["--redact", "bodies"], ["what light", "But, soft!"]),
            (["--redact", "metadata"], ["what light", "romeo"]), (["--no-redact"], ["[redacted:"]),
        ] {
            let others = try await records(["--keylog", keys] + flags)
            // Bytes after the end of a stream have one record for each read if they are not redacted, so they are not
            // compared.
            func events(_ records: [LogRecord]) -> [String] {
                records.filter { $0.kind != "bytes" }.map {
                    "\($0.session ?? 0) \($0.kind) \($0.code ?? "") \($0.name ?? "") \($0.direction ?? "")"
                }
            }
            #expect(events(others) == events(found), "\(flags)")
            #expect(others.count { $0.name == "message" } == 8, "\(flags)")
            for text in hidden { #expect(!shows(others, text), "\(flags): \(text)") }
        }
        let stored = try await XMPPTapBinary.run(["read", folder.path(of: "soft.xtap"), "--redact", "bodies"])
        #expect(stored.ending == .exited(2) && stored.error.contains("a capture is redacted when it is recorded"))
        // The capture of the matches contains the matching stanza and the login of its session, with the same records
        // as the output.
        let place = folder.path(of: "soft.xtap")
        #expect(talk.closing.hasPrefix("capture \(place), ") && talk.closing.hasSuffix("xmpptap explain \(place)"))
        let soft = folder.read("soft.xtap").split(separator: "\n")
        #expect(soft.first?.contains(#""when":"body:soft","before":0,"after":0,"complete":false"#) == true)
        let kept = try LogRecord.all(in: folder.path(of: "soft.xtap"))
        let shown = Dictionary(talk.live.map { ($0.sequence, $0) }) { first, _ in first }
        #expect(kept.contains { $0.name == "message" && $0.xml?.contains("But, soft!") == true })
        #expect(!kept.contains { $0.xml?.contains("what light") == true })
        #expect(kept.contains { $0.code == "session-ended" } && kept.contains { $0.code == "records-omitted" })
        for record in kept where !["records-omitted", "capture-ended"].contains(record.code) {
            #expect(shown[record.sequence]?.xml == record.xml && shown[record.sequence]?.code == record.code)
        }
        // The packets that `sniff` recorded need no key log, because the file contains the TLS secrets.
        let rights = try FileManager.default.attributesOfItem(atPath: ownPackets)[.posixPermissions] as? Int
        #expect(rights == 0o600)
        #expect(try await records([], of: ownPackets).count { $0.code == "tls-decrypted" } == 3)
        #expect(found.count { $0.code == "tls-decrypted" } == 3)
        let steps = found.compactMap { $0.details?.step.map { "\($0) " } }
        #expect(steps.count { $0 == "ready " } == 3, "\(steps)")
        let explained = try await XMPPTapBinary.run(["explain", packets, "--keylog", keys])
        #expect(explained.ending == .exited(0) && !explained.output.contains("not decrypted"), "\(explained)")

        // Without the secrets, each session is listed with the reason why it is not decrypted.
        let closed = try await records([])
        #expect(Set(closed.compactMap(\.remote)) == remotes)
        #expect(!closed.contains { $0.name == "message" })
        #expect(closed.count { $0.code == "no-secret" && $0.message == "not decrypted: no key log was given" } == 3)
        #expect(!closed.contains { $0.message?.contains("passed through") == true })
        // `explain` and the overviews report the same reason, and which packets were not read.
        let undecrypted = "TLS is not decrypted, because there are no secrets for it; add --keylog FILE"
        for command in [["explain"], ["read", "--sessions"], ["read", "--stats"]] {
            let text = try await XMPPTapBinary.run(command + [packets]).error
            #expect(text.contains("xmpptap: sessions 1, 2, 3: \(undecrypted)"), "\(command): \(text)")
        }
        let one = try await XMPPTapBinary.run(["explain", packets, "--session", "2"])
        #expect(one.error.contains("xmpptap: session 2: \(undecrypted)"), "\(one.error)")
        for (change, words) in [
            (["-s", "96"], "packets cut short; capture whole packets, as tcpdump -s 0 does"),
            (["-T", "user0"], "of link type 147, which is not supported"),
        ] {
            let changed = folder.path(of: "changed.pcap")
            let edit = try ToolProcess(TestProgram.editcap.rawValue, ["-F", "pcap"] + change + [packets, changed])
            try #expect(await edit.ending() == .exited(0), "\(edit.text(of: .standardError))")
            let text = try await XMPPTapBinary.run(["explain", changed]).error
            #expect(text.contains(words), "\(text)")
        }
        // With the secrets of one connection, the other connections are reported with the reason.
        let lines = folder.read("keys").split(separator: "\n")
        var decrypted = 0
        for random in Set(lines.compactMap { $0.split(separator: " ").dropFirst().first }) {
            let own = lines.filter { $0.contains(random) }.joined(separator: "\n") + "\n"
            let some = try await records(["--keylog", folder.write(own, to: "some")])
            let readable = some.count { $0.code == "tls-decrypted" }
            decrypted += readable
            #expect(some.count { $0.code == "no-secret" } == 3 - readable)
        }
        #expect(decrypted == 3)

        // The recording itself contains the secrets.
        let own = folder.path(of: "secrets.pcapng")
        let edit = try ToolProcess(TestProgram.editcap.rawValue, ["--inject-secrets", "tls,\(keys)", packets, own])
        try #expect(await edit.ending() == .exited(0), "\(edit.text(of: .standardError))")
        #expect(try await records([], of: own).count { $0.code == "tls-decrypted" } == 3)
        // The capture began during the first connection's TLS: that connection cannot be decrypted, and the program
        // names it.
        let late = folder.path(of: "late.pcap")
        let cut = try ToolProcess(TestProgram.editcap.rawValue, ["-F", "pcap", packets, late, "1-24"])
        try #expect(await cut.ending() == .exited(0), "\(cut.text(of: .standardError))")
        let rest = try await records(["--keylog", keys], of: late)
        #expect(rest.count { $0.code == "tls-decrypted" } == 2)
        // The capture began during the first connection before TLS: the TLS data is decrypted completely.
        func stanzas(_ records: [LogRecord]) -> [String: [String?]] {
            Dictionary(grouping: records.filter { $0.kind == "stanza" }) { "\($0.remote ?? "") \($0.direction ?? "")" }
                .mapValues { $0.map(\.xml) }
        }
        for count in [1, 3, 4, 5, 6] {
            let part = folder.path(of: "part.pcap")
            let cut = try ToolProcess(TestProgram.editcap.rawValue, ["-F", "pcap", packets, part, "1-\(count)"])
            try #expect(await cut.ending() == .exited(0), "\(cut.text(of: .standardError))")
            let read = try await records(["--keylog", keys], of: part)
            #expect(read.count { $0.code == "tls-decrypted" } == 3, "\(count)")
            #expect(stanzas(read) == stanzas(found), "\(count)")
            #expect(read.compactMap { $0.details?.step }.count { $0 == "ready" } == 3, "\(count)")
            #expect(!read.contains { $0.code == "bytes-missed" || $0.code == "unexpected-restart" }, "\(count)")
        }
        let last = rest.last?.message
        #expect(last?.hasSuffix("1 TCP connection without XMPP") == true, "\(last ?? "")")
    }

    @Test(
        "Without the right to capture, sniff and doctor say how to get it",
        .enabled(if: TestProgram.setpriv.isInstalled)
    )
    func withoutRight() async throws {
        let binary = try #require(XMPPTapBinary.path)
        func run(_ arguments: [String]) async throws -> (ending: ToolProcess.Ending, text: String) {
            let process = try ToolProcess(
                TestProgram.setpriv.rawValue,
                (getuid() == 0 ? ["--bounding-set", "-net_raw"] : ["--no-new-privs"]) + [binary] + arguments
            )
            return try await (process.ending(), process.text(of: .standardOutput) + process.text(of: .standardError))
        }
        let sniff = try await run(["sniff", "-i", "lo"])
        let advice = "this user may not capture packets; run xmpptap as root, or give it the right: sudo setcap"
        #expect(sniff.ending == .exited(4) && sniff.text.hasPrefix("xmpptap: cannot capture on lo: \(advice)"))
        let doctor = try await run(["doctor"])
        #expect(doctor.text.contains("note  packets      \(advice)"), "\(doctor.text)")
        let other = try await XMPPTapBinary.run(["sniff", "-i", "nowhere0"])
        #expect(other.ending == .exited(4) && other.error.contains("there is no such interface"), "\(other)")
        let alone = try await XMPPTapBinary.run(["sniff", "-i", "lo", "--embed-keys"])
        #expect(alone.ending == .exited(2))
    }
}
