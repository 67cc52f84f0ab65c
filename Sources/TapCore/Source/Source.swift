public import TapRecord

/// Where sessions come from: it yields what happens to them, with the times.
///
/// Sans-IO: whoever owns the file or the socket hands the source what was read, and asks then. Bytes, a recording's records
/// and the ends come out in the order in which they happened; a ``SourceRunner`` has sessions made of them.
public protocol Source {
    /// What happened next; nil until more has been read.
    mutating func next() -> SourceInput?
}

/// Something that happened to one of a source's sessions.
public struct SourceInput: Sendable {
    /// The number of the session, from 1, as the source counts; 0 is none of them.
    public var session: UInt64
    /// When it happened.
    public var at: Run.Instant
    /// What happened.
    public var input: SessionInput

    /// Puts the parts together.
    public init(session: UInt64, at: Run.Instant, _ input: SessionInput) {
        self.session = session
        self.at = at
        self.input = input
    }
}

/// What can happen to a session.
public enum SessionInput: Sendable {
    /// It begins: what its first record says, and the client's address where that is known.
    case began(Record.Beginning, remote: String? = nil)
    /// A step was taken outside its streams.
    case took(LoginStep.Name, LoginStep.Outcome)
    /// Bytes came. `inferred` says why a stream header is among them that was not read: a clause that follows "inferred:".
    case received(Direction, [UInt8], inferred: String? = nil)
    /// A record of a recording comes next, of an item or of anything else: see ``RecordedSession``.
    case recorded(RecordLine)
    /// Nothing more of it was read: whether it went on nobody knows.
    case unrecorded
}
