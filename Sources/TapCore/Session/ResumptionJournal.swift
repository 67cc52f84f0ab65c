/// Outlives the program: which sessions can be resumed (XEP-0198 §5) only with counts that xmpptap keeps in memory.
///
/// A session is in it from the moment at which its ends count differently. Where the counts are lost, as at a restart, it
/// must not be resumed; any other session can, since both ends count the same.
public protocol ResumptionJournal: Sendable {
    /// What stands for a session, and does not show its id; nil where it cannot be computed.
    func mark(of session: [UInt8]) -> [UInt8]?

    /// Notes a session by its mark.
    func add(_ mark: [UInt8])

    /// Whether a session was noted, by this process or another.
    func contains(_ mark: [UInt8]) -> Bool
}
