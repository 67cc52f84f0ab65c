internal import NIOCore
internal import TapCore

// The journal of sessions that cannot be resumed after a restart: a file, for which the event loop does not wait.
extension SessionDriver {
    /// Adds the session to the journal. Until then, its commands, its output and its peers' data wait.
    func addToJournal(_ mark: [UInt8]) {
        guard let journal = loop.context.journal else { return }
        isPaused = true
        journal.add(mark, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] in self?.endPause() }
    }

    /// Looks up marks in the journal, and passes the answer to the session. The session may have ended by then.
    func searchJournal(_ marks: [[UInt8]]) {
        guard let journal = loop.context.journal else { return }
        journal.search(marks, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] isFound in
            guard let self, stage == .relaying else { return }
            handle(.searchedJournal(marks, isFound: isFound))
        }
    }
}
