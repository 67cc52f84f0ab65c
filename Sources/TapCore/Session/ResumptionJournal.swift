/// A persistent list of the sessions (XEP-0198 §5) that can be resumed only with the counts in xmpptap's memory.
///
/// A session is added when the stanza counts of its two ends begin to differ. If the counts in memory are lost, as
/// after a restart, the session must not be resumed. Any other session can be resumed, because the counts of both ends
/// are equal.
///
/// Sessions access the journal by ``Command/addToJournal(_:)`` and ``Command/searchJournal(_:)``. ``add(_:)`` and
/// ``found(of:)`` may block on file access, so an event loop must not call them.
public protocol ResumptionJournal: Sendable {
    /// Returns a digest of a session's id; nil if it cannot be computed. Does not block.
    func mark(of session: [UInt8]) -> [UInt8]?

    /// Adds sessions by their marks.
    func add(_ marks: [[UInt8]])

    /// Returns the marks that were added, by this process or another one.
    func found(of marks: [[UInt8]]) -> Set<[UInt8]>

    /// Whether some added marks are not stored yet. Does not block.
    var hasUnwrittenMarks: Bool { get }

    /// Tries again to store the marks that are not stored yet. May block on file access, as ``add(_:)`` may.
    func writeAgain()
}

extension ResumptionJournal {
    /// False by default, for a journal whose ``add(_:)`` stores all marks.
    package var hasUnwrittenMarks: Bool { false }

    /// Does nothing by default.
    package func writeAgain() {}
}
