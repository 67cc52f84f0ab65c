import TapCore
import Testing

@testable import xmpptap

struct ReadPlanTests {
    private func plan(
        recorded: String,
        isComplete: Bool = true,
        log: LogSpec? = nil,
        isJSON: Bool = false,
        sessions: Set<UInt64> = [],
        isTerminal: Bool = false
    ) -> ReadPlan {
        ReadPlan(
            files: ["a.xtap", "b.xtap"],
            log: log,
            isJSON: isJSON,
            sessions: sessions,
            header: RecordHeader(
                tool: "xmpptap 1",
                time: Timestamp(nanoseconds: 0),
                level: recorded,
                isComplete: isComplete,
                redaction: .secrets,
                run: "r"
            ),
            in: LogPlan.Surroundings(isTerminal: isTerminal, wantsColour: true)
        )
    }

    @Test func `Text shows what the log shows where nothing is said`() {
        #expect(plan(recorded: "verbose").output.spec == LogSpec(level: .info))
        #expect(
            plan(recorded: "verbose", isTerminal: true).output.spec == LogSpec(level: .info, send: true, receive: true)
        )
        #expect(plan(recorded: "verbose", isTerminal: true).output.isColoured)
        #expect(!plan(recorded: "verbose", isJSON: true, isTerminal: true).output.isColoured)
    }

    @Test func `JSON shows all there is, and is complete only if the file is and nothing is left out`() {
        #expect(plan(recorded: "verbose", isJSON: true).output.spec == LogSpec(level: .verbose))
        #expect(plan(recorded: "verbose", isJSON: true).isComplete)
        #expect(!plan(recorded: "verbose", isComplete: false, isJSON: true).isComplete)
        #expect(!plan(recorded: "verbose", isJSON: true, sessions: [1]).isComplete)
        #expect(!plan(recorded: "verbose", log: LogSpec(level: .info), isJSON: true).isComplete)
        #expect(plan(recorded: "of a later version", isJSON: true).output.spec == LogSpec(level: .trace))
    }

    @Test func `What was never recorded cannot be shown, and that is said`() {
        #expect(
            plan(recorded: "info", log: LogSpec(level: .verbose)).note
                == "a.xtap, b.xtap: recorded at info, so what lies beyond is not there to be shown"
        )
        #expect(plan(recorded: "info,send", log: LogSpec(level: .verbose)).note == nil)
        #expect(plan(recorded: "verbose", log: LogSpec(level: .verbose)).note == nil)
        #expect(plan(recorded: "verbose").note == nil)
        #expect(plan(recorded: "info", isTerminal: true).note != nil)
    }
}
