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
    /// What a source can have.
    public enum Kind: Sendable {
        /// A session begins: what its first record says, and the client's address where that is known.
        case began(Record.Beginning, remote: String? = nil)
        /// Bytes came. `inferred` says why a stream header is among them that was not read: a clause that follows
        /// "inferred:".
        case received(Direction, [UInt8], inferred: String? = nil)
        /// A record of a recording comes next, of an item or of anything else: see ``RecordedSession``.
        case recorded(RecordLine)
        /// What else happened to the session.
        case input(SessionInput)
    }

    /// The number of the session, from 1, as the source counts; 0 is none of them.
    public var session: UInt64
    /// When it happened.
    public var at: Run.Instant
    /// What happened.
    public var kind: Kind

    /// Puts the parts together.
    public init(session: UInt64, at: Run.Instant, _ kind: Kind) {
        self.session = session
        self.at = at
        self.kind = kind
    }
}
