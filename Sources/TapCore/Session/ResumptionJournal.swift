/// A persistent list of the sessions that can be resumed (XEP-0198 §5) only with counts that xmpptap keeps in memory.
///
/// A session is added when its ends begin to count differently. If the counts are lost, as after a restart, it must not
/// be resumed; any other session can be, since both ends count the same.
///
/// Sessions use it by ``Command/addToJournal(_:)`` and ``Command/searchJournal(_:)``. ``add(_:)`` and ``found(of:)``
/// may block on a file: an event loop must not call them.
public protocol ResumptionJournal: Sendable {
    /// Returns a digest of a session's id; nil if it cannot be computed. Does not block.
    func mark(of session: [UInt8]) -> [UInt8]?

    /// Adds sessions by their marks.
    func add(_ marks: [[UInt8]])

    /// Returns those of the marks that were added, by this process or another.
    func found(of marks: [[UInt8]]) -> Set<[UInt8]>

    /// Whether marks were added that are not stored yet. Does not block.
    var hasUnwrittenMarks: Bool { get }

    /// Tries again to store the marks that are not. May wait for a file, as ``add(_:)``.
    func writeAgain()
}

extension ResumptionJournal {
    /// False: ``add(_:)`` stores all marks.
    package var hasUnwrittenMarks: Bool { false }

    /// Does nothing.
    package func writeAgain() {}
}
