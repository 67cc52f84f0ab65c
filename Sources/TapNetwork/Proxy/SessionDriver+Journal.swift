internal import NIOCore
internal import TapCore

// The journal of sessions that cannot be resumed after a restart: a file, which the event loop does not wait for.
extension SessionDriver {
    /// Adds the session to the journal. Its commands and its output wait until then, and so does what its peers send.
    func addToJournal(_ mark: [UInt8]) {
        guard let journal = loop.context.journal else { return }
        isPaused = true
        journal.add(mark, on: loop.eventLoop).assumeIsolated().whenSuccess { [weak self] in self?.endPause() }
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
