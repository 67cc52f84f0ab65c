public import TapRecord

extension SourceInput {
    /// Begins a session that another program observes.
    ///
    /// - Parameters:
    ///   - session: Its number, from 1.
    ///   - at: When the client connected.
    ///   - remote: The client's address, as `HOST:PORT`; nil if it is unknown.
    public static func began(session: UInt64, at: Run.Instant, remote: String? = nil) -> SourceInput {
        SourceInput(session: session, at: at, .began(.otherProgram, remote: remote))
    }

    /// Connects a session to its server, which has this address. Bytes of the client are not decoded before.
    public static func connected(to server: String, session: UInt64, at: Run.Instant) -> SourceInput {
        SourceInput(session: session, at: at, .input(.connected(server)))
    }

    /// Passes bytes of a direction to a session, in the order in which both directions were read.
    public static func received(
        _ direction: Direction,
        _ bytes: [UInt8],
        session: UInt64,
        at: Run.Instant
    ) -> SourceInput {
        SourceInput(session: session, at: at, .received(direction, bytes))
    }

    /// Ends a session: its connections are closed.
    public static func closed(session: UInt64, at: Run.Instant) -> SourceInput {
        SourceInput(session: session, at: at, .input(.closed))
    }
}
