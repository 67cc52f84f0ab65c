public import TapCore
public import TapNetwork
public import TapRecord

/// What the control service acts on: the parts of a running proxy.
public struct ControlContext: Sendable {
    /// Its sessions.
    public var sessions: SessionDirectory
    /// Its counters.
    public var metrics: ProxyMetrics
    /// Its records.
    public var dispatcher: RecordDispatcher
    /// The clock of its run.
    public var clock: RunClock
    /// The word of its run, in the ids of live records.
    public var run: String
    /// Name and version of the program.
    public var version: String
    /// Bytes that an item may have.
    public var itemLimit: Int
    /// The log whose level can be changed; nil where there is none.
    public var log: (any ControlledLog)?

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
