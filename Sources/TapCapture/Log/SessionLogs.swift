internal import Synchronization
package import TapRecord

/// Writes a log for each session, and closes it when the session ends. Records without a session are not logged.
package final class SessionLogs: LogOutput {
    /// Opens the log of a session without waiting for the file system; returns nil if that fails, so that the session
    /// has no log.
    package typealias Opening = @Sendable (_ session: UInt64) -> LogSink?

    /// The least severe level that any of the logs shows.
    package let level: Level
    private let open: Opening
    /// Returns the file name for a session that has bound a JID; nil if files are not renamed.
    private let name: (@Sendable (_ session: UInt64, _ jid: String) -> String)?
    private let state = Mutex(State())

    private struct State {
        var logs: [UInt64: Log] = [:]
        /// Logs that were closed but may still be writing.
        var finished: [LogSink] = []
        var counters = RecordWriter.Counters()
    }

    private struct Log {
        let sink: LogSink?
        /// Whether the file was renamed after the session's JID.
        var isNamed = false
    }

    /// Creates logs of this level. `name` returns the new name of a session's file when its JID is known.
    package init(level: Level, open: @escaping Opening, name: (@Sendable (UInt64, String) -> String)? = nil) {
        self.level = level
        self.open = open
        self.name = name
    }

    /// Writes a record to the log of its session.
    package func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        let session = redacted.record.session
        guard session != 0 else { return }
        let jid = redacted.record.jid
        let isEnd = redacted.record.code == Record.Code.sessionEnded
        let sink = state.withLock { state in
            let log = state.logs[session] ?? Log(sink: open(session))
            var named = log
            if let jid, !log.isNamed, let name {
                log.sink?.rename(to: name(session, jid))
                named.isNamed = true
            }
            state.logs[session] = isEnd ? nil : named
            return log.sink
        }
        sink?.write(redacted, content: content)
        guard isEnd, let sink else { return }
        sink.finish()
        state.withLock { state in
            state.finished.append(sink)
            state.finished.removeAll { sink in
                guard sink.isFinished else { return false }
                state.counters.add(sink.counters)
                return true
            }
        }
    }

    /// Whether so many bytes are pending in one of the logs that the sources should stop reading.
    package var isCongested: Bool {
        state.withLock { $0.logs.values.contains { $0.sink?.isCongested == true } }
    }

    /// The numbers of records that all logs have written and dropped so far.
    package var counters: RecordWriter.Counters {
        state.withLock { state in
            var counters = state.counters
            for sink in state.logs.values.compactMap(\.sink) + state.finished { counters.add(sink.counters) }
            return counters
        }
    }

    /// Continues in new files after the old ones were moved.
    package func reopen() {
        state.withLock { for log in $0.logs.values { log.sink?.reopen() } }
    }

    /// Writes everything and closes all logs, and waits at most `time` for each. Returns the total loss of all logs,
    /// including those closed before.
    package func close(within time: Duration = .seconds(10), removingUnused: Bool = false) -> RecordWriter.Loss {
        let (sinks, before) = state.withLock { state in
            // Keep the open logs among the finished ones, so that `counters` still includes them.
            state.finished += state.logs.values.compactMap(\.sink)
            state.logs = [:]
            return (state.finished, state.counters.dropped)
        }
        for sink in sinks { sink.finish() }
        var loss = before
        for sink in sinks { loss.add(sink.close(within: time, removingUnused: removingUnused)) }
        return loss
    }
}
