internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapRecord

/// Shows an inspection on the terminal of this process.
struct TerminalInspector: Sendable {
    private let inspection: Inspection
    private let messages: TerminalMessages
    private let held: HeldStanzas?
    private let stopped = TerminalLoop.StopFlag()

    /// - Parameters:
    ///   - messages: The lines for standard error.
    ///   - held: The held stanzas of a running proxy; nil for files.
    init(_ inspection: Inspection, messages: TerminalMessages, held: HeldStanzas? = nil) {
        self.inspection = inspection
        self.messages = messages
        self.held = held
    }

    /// Refuses to run without a terminal.
    ///
    /// - Parameter instead: What to use without one.
    static func check(instead: String) throws(Failure) {
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
            throw .usage("--tui needs a terminal on standard input and output; without one, use \(instead)")
        }
        guard let kind = Console.environment("TERM"), kind != "dumb" else {
            throw .usage(
                "--tui needs a terminal that can move its cursor, but TERM is not set, or dumb; use \(instead)"
            )
        }
    }

    /// Shows the inspection until the user quits, the terminal is gone, or ``stop()`` is called.
    ///
    /// - Parameter endsProgram: Whether signals that end the program end the inspector; if not, another part handles them.
    func run(endsProgram: Bool) async -> TerminalLoop.Ending {
        let notices = TerminalMode.openPipe()
        guard notices >= 0 else { return .failed("no pipe can be opened: \(String(cString: strerror(errno)))") }
        TerminalMode.installHandlers(endsProgram: endsProgram)
        let before = messages.newest.count
        Console.silenceStandardError(true)
        let ending = await withCheckedContinuation { (continuation: CheckedContinuation<TerminalLoop.Ending, Never>) in
            let error = WorkerThread.start(named: "tui") { [self] in
                let inspector = Inspector(inspection, messages: messages, held: held, zone: .system)
                let loop = TerminalLoop(
                    inspector,
                    held,
                    messages,
                    isLive: inspection.subject.isLive,
                    notices: notices,
                    stopped: stopped
                )
                continuation.resume(returning: loop.run())
            }
            if error != 0 {
                continuation.resume(returning: .failed("no thread can be started: \(String(cString: strerror(error)))"))
            }
        }
        Console.silenceStandardError(false)
        // These lines were not written to the terminal meanwhile.
        for line in messages.lines(after: before) { Console.printStandardError(escaped: line) }
        return ending
    }

    /// Ends ``run(endsProgram:)`` soon.
    func stop() { stopped.set() }
}
