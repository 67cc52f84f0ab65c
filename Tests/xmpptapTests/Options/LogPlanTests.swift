import TapCapture
import TapRecord
import TapRules
import Testing

@testable import xmpptap

struct LogPlanTests {
    private let terminal = Surroundings(isTerminal: true, wantsColour: true)
    private let pipe = Surroundings(isTerminal: false, wantsColour: true)

    @Test func `The default form is rows on a terminal, and lines at info elsewhere`() throws {
        let rows = try LogPlan(LogRequest(), in: terminal)
        #expect(rows.logs.map(\.form) == [.compact])
        #expect(rows.logs.map(\.spec) == [LogSpec(level: .info)])
        let shown = try LogPlan(LogRequest(form: .text), in: terminal)
        #expect(
            shown.logs == [
                LogPlan.Log(
                    path: nil,
                    form: .text,
                    spec: LogSpec(level: .info, send: true, receive: true),
                    isTerminal: true,
                    isColoured: true,
                    flag: "--log"
                )
            ]
        )
        let piped = try LogPlan(LogRequest(), in: pipe)
        #expect(piped.logs == [LogPlan.Log(path: nil, form: .text, spec: LogSpec(level: .info), flag: "--log")])
    }

    @Test func `--bodies applies to standard output only, and contradicts redaction of bodies`() throws {
        let request = LogRequest(showsBodies: true, logTo: [LogDestination(path: "a")])
        #expect(try LogPlan(request, in: terminal).logs.map(\.showsBodies) == [true, false])
        for policy in [RedactionPolicy.bodies, .metadata] {
            #expect(throws: Failure.self) { try LogPlan(LogRequest(showsBodies: true, redact: policy), in: terminal) }
        }
        #expect(throws: Never.self) { try LogPlan(LogRequest(showsBodies: true, redact: .secrets), in: terminal) }
        // Rows on a terminal show them by default, and nothing else does.
        for (form, isAsked, surroundings, isShown) in [
            (nil, nil, terminal, true), (nil, false, terminal, false), (.text, nil, terminal, false),
            (nil, nil, pipe, false), (.compact, nil, pipe, false),
        ] as [(LogDestination.Form?, Bool?, Surroundings, Bool)] {
            let request = LogRequest(form: form, showsBodies: isAsked, logTo: [LogDestination(path: "a")])
            #expect(try LogPlan(request, in: surroundings).logs.map(\.showsBodies) == [isShown, false])
        }
        #expect(throws: Never.self) { try LogPlan(LogRequest(redact: .bodies), in: terminal) }
    }

    @Test func `Each log has its own form and level, and --log off disables the default log`() throws {
        let request = LogRequest(
            log: LogSpec(level: .off),
            logTo: [
                LogDestination(path: "a"), LogDestination(path: "b", form: .json, spec: LogSpec(level: .trace)),
            ],
            capture: "c.xtap"
        )
        let plan = try LogPlan(request, in: terminal)
        #expect(plan.logs.map(\.path) == ["a", "b", "c.xtap"])
        #expect(plan.logs.map(\.form) == [.text, .json, .json])
        #expect(plan.logs.map(\.isComplete) == [false, true, true])
        #expect(plan.logs.map(\.flag) == ["--log-to", "--log-to", "--capture"])
        #expect(plan.logs.allSatisfy { !$0.isTerminal && !$0.isColoured })
        #expect(plan.rotateSize == 100_000_000)
        #expect(plan.rotateKeep == nil)
    }

    @Test func `Logs have no colours if they are disabled, or in JSON`() throws {
        let plain = Surroundings(isTerminal: true, wantsColour: false)
        #expect(try LogPlan(LogRequest(), in: plain).logs.map(\.isColoured) == [false])
        let json = LogRequest(logTo: [LogDestination(path: "-", form: .json)])
        #expect(try LogPlan(json, in: terminal).logs.map(\.isColoured) == [false])
    }

    @Test func `A JSON log is complete only if it has all records up to verbose`() throws {
        func isComplete(_ spec: String) throws -> Bool {
            LogPlan.Log(path: "x", form: .json, spec: try LogSpec(spec)).isComplete
        }
        #expect(try isComplete("verbose"))
        #expect(try isComplete("trace"))
        #expect(try !isComplete("info,send,recv"))
        #expect(try !isComplete("verbose,tls=warn"))
        #expect(try !isComplete("verbose,session:2=off"))
        #expect(try !isComplete("verbose,jid:a@example.org=info"))
    }

    @Test func `A filter applies to one log, which is incomplete with it`() throws {
        let filter = try RecordFilter("message")
        let request = LogRequest(
            filter: filter,
            logTo: [LogDestination(path: "a", form: .json, spec: LogSpec(level: .verbose), filter: filter)],
            capture: "c.xtap,filter=iq or type:chat,normal"
        )
        let plan = try LogPlan(request, in: pipe)
        #expect(plan.logs.map(\.path) == [nil, "a", "c.xtap"])
        #expect(plan.logs.map(\.filter?.text) == ["message", "message", "iq or type:chat,normal"])
        #expect(plan.logs.map(\.isComplete) == [false, false, false])
        for request in [
            LogRequest(log: LogSpec(level: .off), filter: filter),
            LogRequest(filter: filter, logTo: [LogDestination(path: "-")]),
        ] {
            #expect(
                refusal { try LogPlan(request, in: pipe) }
                    == "--filter applies to standard output, which has no log; use --log-to PATH,filter=EXPRESSION"
            )
        }
        #expect(
            refusal { try LogPlan(LogRequest(capture: "c,filter=("), in: pipe) }
                == "--capture: filter=: column 2: the filter ends here; expected a condition such as message"
        )
    }

    @Test func `A log on standard output replaces the default one, and only one is allowed`() throws {
        let output = LogDestination(path: "-", form: .json, spec: LogSpec(level: .verbose))
        let plan = try LogPlan(LogRequest(logTo: [output]), in: pipe)
        #expect(plan.logs == [LogPlan.Log(path: nil, form: .json, spec: LogSpec(level: .verbose))])
        let off = LogRequest(log: LogSpec(level: .off), logTo: [output])
        #expect(try LogPlan(off, in: pipe).logs.count == 1)

        let message = "--log-to -: standard output can have one log only; leave --log out, or write to a file"
        #expect(refusal { try LogPlan(LogRequest(log: LogSpec(level: .info), logTo: [output]), in: pipe) } == message)
        #expect(refusal { try LogPlan(LogRequest(logTo: [output, output]), in: pipe) } == message)
    }

    @Test func `Two logs in one file are refused, but a device accepts several`() throws {
        let log = LogDestination(path: "d.xtap")
        #expect(
            refusal { try LogPlan(LogRequest(logTo: [log], capture: "./d.xtap"), in: pipe) }
                == "--capture: ./d.xtap is also the file of --log-to; use a separate file for each log"
        )
        #expect(
            refusal { try LogPlan(LogRequest(logTo: [log, log]), in: pipe) }
                == "--log-to: d.xtap is also the file of --log-to; use a separate file for each log"
        )
        let device = LogDestination(path: "/dev/null")
        #expect(try LogPlan(LogRequest(logTo: [log, device, device], capture: "e.xtap"), in: pipe).logs.count == 5)
    }

    @Test func `--capture refuses standard output`() {
        #expect(
            refusal { try LogPlan(LogRequest(capture: "-"), in: pipe) }
                == "--capture needs a file; for standard output use --log-to -,format=json,verbose"
        )
    }

    @Test func `--log-required needs a log`() throws {
        #expect(
            refusal { try LogPlan(LogRequest(log: LogSpec(level: .off), isRequired: true), in: pipe) }
                == "--log-required needs a log; add --log-to or --capture"
        )
        #expect(try LogPlan(LogRequest(isRequired: true), in: pipe).isRequired)
    }

    @Test func `Ten rotated files of a log and all of a capture are kept by default`() throws {
        func keep(_ flag: String, _ count: Int?) throws -> Int? {
            let plan = try LogPlan(
                LogRequest(logTo: [LogDestination("tap.log")], capture: "x.xtap", rotateKeep: count),
                in: pipe
            )
            let log = try #require(plan.logs.first { $0.flag == flag })
            return OpenLogs.configuration(log, of: plan).writer.rotation?.keep
        }
        #expect(try keep("--log-to", nil) == 10)
        #expect(try keep("--capture", nil) == .max)
        #expect(try keep("--capture", 3) == 3)
        #expect(try keep("--log-to", 3) == 3)
    }

    @Test func `Size 0 disables rotation, and secrets are shown only on request`() throws {
        let plan = try LogPlan(LogRequest(rotateSize: ByteSize(bytes: 0), showsSecrets: true), in: pipe)
        #expect(plan.rotateSize == nil)
        #expect(plan.redaction == .none)
        #expect(try LogPlan(LogRequest(), in: pipe).redaction == .secrets)
        #expect(try LogPlan(LogRequest(redact: .metadata), in: pipe).redaction == .metadata)
    }

    @Test func `--redact and --no-redact contradict each other`() {
        #expect(
            refusal { try LogPlan(LogRequest(redact: .bodies, showsSecrets: true), in: pipe) }
                == "--redact bodies and --no-redact contradict each other; leave one out"
        )
        for word in ["none", "body", ""] {
            #expect(refusal { try RedactionPolicy.typed(word) }.contains("choose one of secrets, bodies, metadata"))
        }
    }
}
