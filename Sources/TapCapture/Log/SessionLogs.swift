internal import Synchronization
package import TapRecord

/// A log for each session, which ends with it. Records of no session are in none of them.
package final class SessionLogs: LogOutput {
    /// Opens the log of a session, without waiting for the file system; nil if that fails: then the session has none.
    package typealias Opening = @Sendable (_ session: UInt64) -> LogSink?

    /// The least severe level that any of the logs shows.
    package let level: Level
    private let open: Opening
    /// The name of the file of a session that has bound a JID.
    private let name: (@Sendable (_ session: UInt64, _ jid: String) -> String)?
    private let state = Mutex(State())

    private struct State {
        var logs: [UInt64: Log] = [:]
        /// Logs that were ended and may still be writing.
        var finished: [LogSink] = []
        var counters = RecordWriter.Counters()
    }

    private struct Log {
        let sink: LogSink?
        /// Whether it has the name of its JID.
        var isNamed = false
    }

    /// Logs of this level; `name` gives their files other names once a JID is known.
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

    /// Whether one of the logs has no room for more.
    package var isCongested: Bool {
        state.withLock { $0.logs.values.contains { $0.sink?.isCongested == true } }
    }

    /// What all of them have written and dropped so far.
    package var counters: RecordWriter.Counters {
        state.withLock { state in
            var counters = state.counters
            for sink in state.logs.values.compactMap(\.sink) + state.finished { counters.add(sink.counters) }
            return counters
        }
    }

    /// Goes on in new files where somebody moved them away.
    package func reopen() {
        state.withLock { for log in $0.logs.values { log.sink?.reopen() } }
    }

    /// Writes everything and ends all logs; gives what was dropped in the whole life of them.
    package func close(within time: Duration = .seconds(10), removingUnused: Bool = false) -> RecordWriter.Loss {
        let (sinks, before) = state.withLock { state in
            // They count on as those that have ended before.
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
