internal import NIOCore
internal import TapCore

// The journal of sessions that cannot be resumed after a restart. It is a file; the event loop does not wait for it.
extension SessionDriver {
    /// Adds the session to the journal. Until this is done, the session's commands and output, and data from its peers,
    /// are delayed.
    func addToJournal(_ mark: [UInt8]) {
        guard let journal = loop.context.journal else { return }
        isPaused = true
        journal.add(mark, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] in self?.endPause() }
    }

    /// Searches marks in the journal, and passes the answer to the session, unless it has ended.
    func searchJournal(_ marks: [[UInt8]]) {
        guard let journal = loop.context.journal else { return }
        journal.search(marks, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] isFound in
            guard let self, stage == .relaying else { return }
            handle(.searchedJournal(marks, isFound: isFound))
        }
    }
}
