package import TapCore
package import TapNetwork
package import TapRecord
package import TapRules

/// The parts of a running proxy that the control service uses.
package struct ControlContext: Sendable {
    /// The sessions of the proxy.
    package var sessions: SessionDirectory
    /// The counters of the proxy.
    package var metrics: ProxyMetrics
    /// The dispatcher of the proxy's records.
    package var dispatcher: RecordDispatcher
    /// The clock of the proxy's run.
    package var clock: RunClock
    /// The identifier of the run, which is a part of the ids of live records.
    package var run: String
    /// Version of the program.
    package var version: String
    /// Maximum size of an item in bytes.
    package var itemLimit: Int
    /// The log whose level can be changed; nil if there is none.
    package var log: (any ControlledLog)?
    /// Returns the figures of the logs for the metrics.
    package var logs: @Sendable () -> [LogFigures] = { [] }
    /// Returns the number of redacted secrets in records, by kind.
    package var redactions: @Sendable () -> [SecretKind: UInt64] = { [:] }
    /// Returns the durations of issuing certificates.
    package var mintTimes: @Sendable () -> DurationHistogram = { DurationHistogram() }
    /// The rule files; nil if there are none.
    package var rules: ControlledRules?

    package init(
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
package protocol ControlledLog: Sendable {
    /// The current log specification.
    var spec: LogSpec { get }
    /// Changes the specification from the next record on.
    func change(_ change: (inout LogSpec) -> Void)
}

/// Figures of a log.
package struct LogFigures: Sendable {
    /// The path or name of the log.
    package var name: String
    /// Number of records written.
    package var written: UInt64
    /// Number of records dropped.
    package var dropped: UInt64
    /// Age of the oldest record that waits to be written, in nanoseconds; 0 if none waits.
    package var lag: Int64
    /// The figures of records on their way to a server; nil for a file.
    package var delivery: DeliveryFigures?

    /// Creates the figures of a log.
    package init(
        name: String,
        written: UInt64,
        dropped: UInt64,
        lag: Int64 = 0,
        delivery: DeliveryFigures? = nil
    ) {
        self.name = name
        self.written = written
        self.dropped = dropped
        self.lag = lag
        self.delivery = delivery
    }
}

/// Figures of records that wait in files until a server has confirmed them.
package struct DeliveryFigures: Sendable {
    /// Number of bytes that wait.
    package var bytes: Int64
    /// The time at which the oldest record was seen that no server has confirmed; nil if none waits.
    package var oldest: Timestamp?
    /// Number of batches that a server has confirmed, and of attempts that failed.
    package var batches: UInt64
    package var retries: UInt64
    /// Number of stanzas confirmed, refused by a server, and dropped by a full spool.
    package var sent: UInt64
    package var rejected: UInt64
    package var dropped: UInt64

    package init(
        bytes: Int64,
        oldest: Timestamp?,
        batches: UInt64,
        retries: UInt64,
        sent: UInt64,
        rejected: UInt64,
        dropped: UInt64
    ) {
        (self.bytes, self.oldest, self.batches, self.retries) = (bytes, oldest, batches, retries)
        (self.sent, self.rejected, self.dropped) = (sent, rejected, dropped)
    }
}

/// The rule files of a proxy.
package struct ControlledRules: Sendable {
    /// The files, in order.
    package var files: [String]
    /// Returns the rules with their numbers of hits.
    package var statuses: @Sendable () -> [RuleStatus]
    /// Switches the rule at a place on or off; returns false if there is none.
    package var set: @Sendable (_ place: RulePlace, _ isOn: Bool) -> Bool
    /// Reloads the files. Throws ``RuleSet/LoadError`` if they are invalid; the old rules are kept then.
    package var reload: @Sendable () throws -> Void

    /// Creates a description of rules that are read from files.
    package init(
        files: [String],
        statuses: @escaping @Sendable () -> [RuleStatus],
        set: @escaping @Sendable (_ place: RulePlace, _ isOn: Bool) -> Bool,
        reload: @escaping @Sendable () throws -> Void
    ) {
        self.files = files
        self.statuses = statuses
        self.set = set
        self.reload = reload
    }
}
