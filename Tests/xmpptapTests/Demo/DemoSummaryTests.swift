import TapTestKit
import Testing

@testable import TapNetwork
@testable import xmpptap

struct DemoSummaryTests {
    @Test func `The summary has each step with its duration, and the next command`() {
        let steps = [
            DemoStep(title: "stream", detail: "localhost", time: 0.0034),
            DemoStep(title: "login", detail: "SCRAM-SHA-256", time: 0.0154),
            DemoStep(title: "ping", detail: "answered", time: 1.2),
        ]
        #expect(
            DemoSummary.lines(steps).prefix(7) == [
                "",
                "Steps of the client, and how long each took:",
                "   3.4 ms  stream  localhost",
                "    12 ms  login   SCRAM-SHA-256",
                "    1.2 s  ping    answered",
                "A complete session through xmpptap in 1.2 s.",
                "",
            ]
        )
    }

    @Test func `Long details are wrapped on a terminal only`() {
        let detail =
            "TLS 1.3, TLS_AES_256_GCM_SHA384; certificate for localhost, issued by xmpptap CA for localhost 0a1b2c3d"
        let steps = [DemoStep(title: "tls", detail: detail, time: 0.0034)]
        #expect(DemoSummary.lines(steps).contains("   3.4 ms  tls  \(detail)"))
        let rows = DemoSummary.lines(steps, style: OutputStyle(width: 60)).dropFirst(2).prefix { !$0.hasPrefix("A ") }
        #expect(rows.count == 3 && rows.allSatisfy { $0.count <= 60 }, "\(rows)")
        #expect(rows.joined(separator: " ").split(separator: " ").joined(separator: " ") == "3.4 ms tls \(detail)")
    }

    @Test func `The commands for the user's own client and server can be parsed`() throws {
        let lines = DemoSummary.lines([]).filter { $0.hasPrefix("  xmpptap ") }
        // Without the file that is written.
        let commands: [[String]] = lines.map { command in
            command.prefix { $0 != ">" }.split(separator: " ").dropFirst().map(String.init)
        }
        #expect(commands.count == 2)
        for command in commands { _ = try Invocation.command(command) }
    }

    @Test(arguments: [
        ("xmpptap", "xmpptap"), ("/usr/bin/xmpptap", "xmpptap"), (nil, "xmpptap"),
        (".build/release/xmpptap", ".build/release/xmpptap"), ("./my xmpptap", #""./my xmpptap""#),
    ])
    func `The suggested commands name the program as the user called it`(word: String?, program: String) {
        #expect(DemoSummary.program(called: word) == program)
        #expect(DemoSummary.lines([], program: program).contains("  \(program) proxy USER@DOMAIN"))
    }
}
