import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRecord

@Suite struct SessionRunnerTests {
    private static let bytes = Array("\(SessionSecretsTests.login)<presence/>".utf8)

    private static func runner() -> SessionRunner {
        SessionRunner(
            Session(
                run: Run(),
                options: SessionOptions(level: .trace),
                tools: SessionTools(run: Run(), redaction: .secrets),
                remote: nil,
                upstream: "",
                at: now
            )
        )
    }

    private static let now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)

    /// The access of a performer to the session while the performer reads the session's memory.
    private enum Step { case change, run, read, input }

    /// Performs the access with the first record.
    private struct Performer: CommandPerformer {
        let runner: SessionRunner
        let step: Step
        var isDone = false

        mutating func receive(_ record: borrowing RedactedRecord, content: Span<UInt8>) {
            guard !isDone else { return }
            isDone = true
            switch step {
            case .change: _ = runner.session.receive(.send, SessionRunnerTests.bytes.span, at: SessionRunnerTests.now)
            case .input: runner.session.handle(.ended(.client, .finished), at: SessionRunnerTests.now)
            case .run:
                var other = self
                runner.run(by: &other)
            case .read: #expect(runner.session.number > 0)
            }
        }

        func forward(_ direction: Direction, _ content: Span<UInt8>) {}
        func perform(_ command: consuming Command) {}
    }

    private static func perform(_ step: Step) {
        let runner = runner()
        var performer = Performer(runner: runner, step: step)
        runner.run(by: &performer)
        #expect(performer.isDone)
    }

    @Test func `Changing a session while a performer reads its memory ends the program`() async {
        // Each of these accesses would free the bytes that the performer reads.
        await #expect(processExitsWith: .failure) { SessionRunnerTests.perform(.change) }
        await #expect(processExitsWith: .failure) { SessionRunnerTests.perform(.input) }
        await #expect(processExitsWith: .failure) { SessionRunnerTests.perform(.run) }
        Self.perform(.read)
    }

    @Test func `Using a session while it is being changed ends the program`() async {
        await #expect(processExitsWith: .failure) {
            func both(_ session: inout Session, _ runner: SessionRunner) {
                runner.session.handle(.ended(.client, .finished), at: SessionRunnerTests.now)
                session.handle(.ended(.server, .finished), at: SessionRunnerTests.now)
            }
            let runner = SessionRunnerTests.runner()
            both(&runner.session, runner)
        }
    }
}
