import Foundation
import TapRecord
import TapTestKit
import Testing

/// Tests that no output of the program contains a secret, whatever the log settings and the course of the session.
@Suite(.timeLimit(.minutes(5)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct SecretsTests {
    private static let search = SecretSearch(
        secrets: SecretCatalogue.items.flatMap(\.secrets) + [password],
        besideTimes: true
    )
    /// The password with which ``Conversations/plainLogin`` logs in.
    private static let password = Array("R0m30myr0m30".utf8)
    private static let levels = ["error", "warn", "info", "verbose", "trace"]
    private static let forms = ["json", "text", "pretty"]

    /// All output of a run, with a name for each part.
    private typealias Outputs = [(name: String, text: String)]

    @Test func `No log, capture or message has a secret, and a placeholder replaces each`() async throws {
        let outputs = try await run([])
        #expect(outputs.count == 31)
        for (name, text) in outputs {
            let leaks = Self.search.leaks(in: text)
            #expect(leaks.isEmpty, "\(name): \(leaks.count) leaks, as \(leaks.prefix(5))")
        }
        // Each output that shows items contains a placeholder for every kind of secret in the catalogue.
        let whole = outputs.filter { $0.name.contains("verbose") || $0.name.contains("trace") || $0.name == "capture" }
        #expect(whole.count == 14)
        for (name, text) in whole {
            let missing = Self.kinds.filter { kind in
                // Some placeholders include the size of the secret: `[redacted:omemo-key-18#1]`.
                let name = "[redacted:\(kind.rawValue)"
                return !text.contains("\(name)#") && !(1...64).contains { text.contains("\(name)-\($0)#") }
            }
            #expect(missing.isEmpty, "\(name) has no placeholder of \(missing)")
        }
        let trace = try #require(outputs.first { $0.name == "trace.json" })
        // The sessions took the intended paths: data read in pieces, items that are too large or incomplete, data that
        // is not XML, and an open session.
        for word in [
            #""kind":"chunk""#, #""truncated":true"#, #""code":"torn""#, #""code":"not-xml""#,
            #""code":"session-ready""#,
        ] {
            #expect(trace.text.contains(word), "there is no \(word)")
        }
    }

    @Test func `Without redaction, every secret of the test data appears in the outputs`() async throws {
        let outputs = try await run(["--no-redact"])
        let placeholders = outputs.filter { $0.text.contains("[redacted:") }.map(\.name)
        #expect(placeholders.isEmpty)
        for name in ["verbose.json", "verbose.text", "capture", "read verbose", "read verbose --json"] {
            let output = try #require(outputs.first { $0.name == name })
            let found = Self.search.secrets(in: Array(output.text.utf8))
            for item in SecretCatalogue.items {
                #expect(
                    item.secrets.contains { found.contains(String(decoding: $0, as: UTF8.self)) },
                    "\(name) has nothing of \(item)"
                )
            }
            #expect(found.contains(String(decoding: Self.password, as: UTF8.self)))
        }
    }

    /// The kinds of secret in the catalogue: all except whole items and content.
    private static let kinds = SecretKind.allCases.filter { $0 != .item && !$0.isContent }

    @Test(
        "--redact bodies hides texts, and --redact metadata also hides identities",
        arguments: ["secrets", "bodies", "metadata"]
    )
    func policies(policy: String) async throws {
        let outputs = try await run(["--redact", policy])
        let hidden = policy == "secrets" ? [] : SecretCatalogue.texts.flatMap(\.secrets)
        let names = SecretCatalogue.people.flatMap(\.secrets) + ["juliet", "romeo@", "balcony"].map { Array($0.utf8) }
        let search = SecretSearch(
            secrets: SecretCatalogue.items.flatMap(\.secrets) + hidden + (policy == "metadata" ? names : []),
            besideTimes: true
        )
        for (name, text) in outputs {
            let leaks = search.leaks(in: text)
            #expect(leaks.isEmpty, "\(name): \(leaks.count) leaks, as \(leaks.prefix(5))")
        }
        let capture = try #require(outputs.first { $0.name == "capture" }?.text)
        #expect(capture.hasPrefix("{") && capture.contains("\"redaction\":\"\(policy)\""))
        // Content that the policy does not hide is present.
        let shown = SecretSearch(secrets: policy == "secrets" ? SecretCatalogue.texts.flatMap(\.secrets) : names)
        if policy != "metadata" { #expect(!shown.leaks(in: capture).isEmpty) }
        #expect(capture.contains("[redacted:text-") == (policy != "secrets"))
        #expect(capture.contains("anon-") == (policy == "metadata"))
        // The story is still complete.
        let story = try #require(outputs.first { $0.name == "info.text" }?.text)
        for words in ["session: ready as ", "pending in", "body ", "contact", "RECV presence"] {
            #expect(story.contains(words), "no \(words)")
        }
    }

    // MARK: A run

    /// Plays the sessions through a proxy that logs at all levels and in all formats, and reads its capture in all
    /// ways. Returns all outputs.
    private func run(_ flags: [String]) async throws -> Outputs {
        let folder = try TemporaryFolder()
        let listener = try RawListener()
        var arguments = ["--tls", "passthrough", "--log", "trace", "--capture", folder.path(of: "capture")] + flags
        arguments += ["--store", folder.path(of: "store"), "--store-xml", "--store-avatars"]
        for level in Self.levels {
            for form in Self.forms {
                arguments += ["--log-to", "\(folder.path(of: "\(level).\(form)")),format=\(form),\(level)"]
            }
        }
        let proxy = try XMPPTapBinary(proxyTo: listener.port, arguments)
        let port = try await proxy.port()
        // The proxy's first connection only checks whether the server accepts connections.
        try await listener.accept().close()
        for play in SecretSessions.all {
            let client = try RawConnection(port: port)
            try await play(client, listener.accept())
        }
        let deadline = ContinuousClock.now + .seconds(20)
        let end = "\"session-ended\""
        while folder.read("info.json").components(separatedBy: end).count <= SecretSessions.all.count {
            guard ContinuousClock.now < deadline else { throw proxy.process.failure("sessions go on") }
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(try await proxy.process.terminate() == .exited(0))

        var outputs: Outputs = [("capture", folder.read("capture"))]
        for level in Self.levels {
            for form in Self.forms { outputs.append(("\(level).\(form)", folder.read("\(level).\(form)"))) }
        }
        outputs.append(("standard output, trace", proxy.process.text(of: .standardOutput)))
        outputs.append(("standard error", proxy.process.text(of: .standardError)))
        let store = try Data(contentsOf: URL(filePath: folder.path(of: "store")))
        #expect(store.starts(with: Data("SQLite format 3".utf8)) && store.count > 50_000)
        // The schema contains this word of a secret as the name of a column.
        let text = String(decoding: store, as: UTF8.self)
        outputs.append(
            ("store", text.replacing("first INTEGER", with: "").replacing("(run, first, reason)", with: ""))
        )
        for level in Self.levels {
            for json in [[], ["--json"]] {
                let command = ["read", folder.path(of: "capture"), "--log", level] + json
                let read = try await XMPPTapBinary.run(command)
                #expect(read.ending == .exited(0), "\(read.error)")
                let name = (["read", level] + json).joined(separator: " ")
                outputs.append((name, read.output + read.error))
            }
        }
        for json in [[], ["--json"]] {
            let read = try await XMPPTapBinary.run(["read", folder.path(of: "trace.json"), "--log", "trace"] + json)
            let name = (["read trace.json"] + json).joined(separator: " ")
            outputs.append((name, read.output + read.error))
        }
        for (name, text) in outputs where name != "standard error" { #expect(!text.isEmpty, "\(name) is empty") }
        return outputs
    }
}
