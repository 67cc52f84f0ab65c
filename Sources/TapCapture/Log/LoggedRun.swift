public import TapCore
public import TapRecord

/// What every log of a run says of it.
public struct LoggedRun: Sendable {
    /// Name and version of the program.
    public var tool: String
    /// A random word that all files of the run share, and no other run has.
    public var word: String
    /// What is hidden.
    public var redaction: RedactionPolicy
    /// Numbers the records.
    public var run: Run
    /// Reads both clocks.
    public var now: @Sendable () -> Run.Instant

    /// A run of these properties.
    public init(
        tool: String,
        word: String,
        redaction: RedactionPolicy,
        run: Run,
        now: @escaping @Sendable () -> Run.Instant
    ) {
        self.tool = tool
        self.word = word
        self.redaction = redaction
        self.run = run
        self.now = now
    }
}
