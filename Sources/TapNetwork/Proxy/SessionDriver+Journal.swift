internal import NIOCore
internal import TapCore

// The journal of sessions that cannot be resumed after a restart: a file, which the event loop does not wait for.
extension SessionDriver {
    /// Adds the session to the journal, on another thread. A crash before that loses the entry.
    func addToJournal(_ mark: [UInt8]) {
        guard let journal = loop.context.journal else { return }
        _ = journal.add(mark, on: loop.eventLoop)
    }

    /// Looks marks up in the journal, and hands the answer to the session. The session may be over by then.
    func searchJournal(_ marks: [[UInt8]]) {
        guard let journal = loop.context.journal else { return }
        journal.search(marks, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] isFound in
            guard let self, stage == .relaying else { return }
            handle(.searchedJournal(marks, isFound: isFound))
        }
    }
}
