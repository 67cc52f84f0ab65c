public import TapCore
public import TapNetwork
public import TapRecord

/// The parts of a running proxy that the control service uses.
public struct ControlContext: Sendable {
    /// Its sessions.
    public var sessions: SessionDirectory
    /// Its counters.
    public var metrics: ProxyMetrics
    /// Its records.
    public var dispatcher: RecordDispatcher
    /// The clock of its run.
    public var clock: RunClock
    /// The identifier of its run, in the ids of live records.
    public var run: String
    /// Name and version of the program.
    public var version: String
    /// Bytes that an item may have.
    public var itemLimit: Int
    /// The log whose level can be changed; nil where there is none.
    public var log: (any ControlledLog)?
    /// The logs as the metrics show them.
    public var logs: @Sendable () -> [LogFigures] = { [] }
    /// Placeholders of secrets in its records, by kind.
    public var redactions: @Sendable () -> [SecretKind: UInt64] = { [:] }
    /// How long its certificates took to make.
    public var mintTimes: @Sendable () -> DurationHistogram = { DurationHistogram() }
    /// Its rule files; nil where it has none.
    public var rules: ControlledRules?

    /// The parts of a proxy.
    public init(
        sessions: SessionDirectory,
        metrics: ProxyMetrics,
        dispatcher: RecordDispatcher,
        clock: RunClock,
        run: String,
        version: String,
        itemLimit: Int,
        log: (any ControlledLog)?
    ) {
        self.sessions = sessions
        self.metrics = metrics
        self.dispatcher = dispatcher
        self.clock = clock
        self.run = run
        self.version = version
        self.itemLimit = itemLimit
        self.log = log
    }
}

/// A log whose level can be changed while the program runs.
public protocol ControlledLog: Sendable {
    /// What it shows.
    var spec: LogSpec { get }
    /// Changes what it shows, from the next record on.
    func change(_ change: (inout LogSpec) -> Void)
}

/// What a log has written.
public struct LogFigures: Sendable {
    /// Its path or name.
    public var name: String
    /// Records written.
    public var written: UInt64
    /// Records dropped.
    public var dropped: UInt64
    /// Nanoseconds that the oldest record waits to be written; 0 where none does.
    public var lag: Int64

    /// The figures of a log.
    public init(name: String, written: UInt64, dropped: UInt64, lag: Int64 = 0) {
        self.name = name
        self.written = written
        self.dropped = dropped
        self.lag = lag
    }
}

/// The rule files of a proxy.
public struct ControlledRules: Sendable {
    /// The files, in order.
    public var files: [String]
    /// The rules, and how often each was hit.
    public var hits: @Sendable () -> [(place: RulePlace, hits: UInt64)]
    /// Reads the files again. Throws ``RuleSet/LoadError``; the old rules then stay.
    public var reload: @Sendable () throws -> Void

    /// Rules that are read from files.
    public init(
        files: [String],
        hits: @escaping @Sendable () -> [(place: RulePlace, hits: UInt64)],
        reload: @escaping @Sendable () throws -> Void
    ) {
        self.files = files
        self.hits = hits
        self.reload = reload
    }
}
