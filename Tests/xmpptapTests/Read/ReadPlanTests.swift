import TapRecord
import TapRules
import Testing

@testable import xmpptap

struct ReadPlanTests {
    private func header(_ level: String, isComplete: Bool = true) -> RecordHeader {
        RecordHeader(
            tool: "xmpptap 1",
            time: Timestamp(nanoseconds: 0),
            level: level,
            isComplete: isComplete,
            redaction: .secrets,
            run: "r"
        )
    }

    private func plan(
        recorded: String,
        log: LogSpec? = nil,
        filter: String? = nil,
        isJSON: Bool = false,
        sessions: Set<UInt64> = [],
        isTerminal: Bool = false
    ) -> ReadPlan {
        ReadPlan(
            files: ["a.xtap", "b.xtap"],
            log: log,
            filter: filter.flatMap { try? RecordFilter($0) },
            form: isJSON ? .json : .text,
            sessions: sessions,
            header: header(recorded),
            in: Surroundings(isTerminal: isTerminal, wantsColour: true)
        )
    }

    @Test func `read shows text at the log's default level`() {
        #expect(plan(recorded: "verbose").output.spec == LogSpec(level: .info))
        #expect(
            plan(recorded: "verbose", isTerminal: true).output.spec == LogSpec(level: .info, send: true, receive: true)
        )
        #expect(plan(recorded: "verbose", isTerminal: true).output.isColoured)
        #expect(!plan(recorded: "verbose", isJSON: true, isTerminal: true).output.isColoured)
    }

    @Test func `JSON has all records by default, and its header names their level`() {
        let all = plan(recorded: "info", isJSON: true)
        #expect(all.output.spec == LogSpec(level: .trace))
        for level in ["info", "verbose", "warn,send", "of a later version"] {
            #expect(all.header(of: header(level), isWhole: true).level == level)
        }
        let some = plan(recorded: "verbose", log: LogSpec(level: .info, send: true), isJSON: true)
        #expect(some.header(of: header("verbose"), isWhole: true).level == "info,send")
        #expect(some.header(of: header("warn"), isWhole: true).level == "warn", "no more than there is")
    }

    @Test func `Filtered output is incomplete, and its header has the filter`() throws {
        let plan = plan(recorded: "verbose", filter: "message", isJSON: true)
        var shown = plan.header(of: header("verbose"), isWhole: true)
        #expect(!shown.isComplete && shown.filter == "message")
        var filtered = header("verbose", isComplete: false)
        filtered.filter = "send or recv"
        shown = plan.header(of: filtered, isWhole: true)
        #expect(
            try shown.filter == "(send or recv) and (message)" && RecordFilter(shown.filter ?? "").readsXML == false
        )
        #expect(self.plan(recorded: "info", filter: "message").note == nil)
        #expect(self.plan(recorded: "verbose", filter: "body:x").note == nil)
        #expect(
            self.plan(recorded: "info", filter: "body:x").note
                == "--filter: a.xtap, b.xtap: recorded at info, so without the XML of stanzas; record with --capture or --log verbose"
        )
    }

    @Test func `JSON is complete only if the file is complete and nothing is omitted`() {
        func isComplete(_ plan: ReadPlan, _ header: RecordHeader? = nil, isWhole: Bool = true) -> Bool {
            plan.header(of: header ?? self.header("verbose"), isWhole: isWhole).isComplete
        }
        #expect(isComplete(plan(recorded: "verbose", isJSON: true)))
        #expect(isComplete(plan(recorded: "info", isJSON: true)), "each part for itself")
        #expect(!isComplete(plan(recorded: "verbose", isJSON: true), header("verbose", isComplete: false)))
        #expect(!isComplete(plan(recorded: "verbose", isJSON: true), isWhole: false))
        #expect(!isComplete(plan(recorded: "verbose", isJSON: true, sessions: [1])))
        #expect(!isComplete(plan(recorded: "verbose", log: LogSpec(level: .info), isJSON: true)))
    }

    @Test func `A note says that the requested level was not recorded`() {
        #expect(
            plan(recorded: "info", log: LogSpec(level: .verbose)).note
                == "a.xtap, b.xtap: recorded at info; records of more detailed levels are missing"
        )
        #expect(plan(recorded: "info,send", log: LogSpec(level: .verbose)).note == nil)
        #expect(plan(recorded: "verbose", log: LogSpec(level: .verbose)).note == nil)
        #expect(plan(recorded: "verbose").note == nil)
        #expect(plan(recorded: "info", isTerminal: true).note != nil)
        #expect(plan(recorded: "info", isJSON: true).note == nil)
    }
}
