public import TapRecord

extension SourceInput {
    /// Returns the input that begins a session which another program observes.
    ///
    /// - Parameters:
    ///   - session: The number of the session, from 1.
    ///   - at: The time at which the client connected.
    ///   - remote: The client's address, `HOST:PORT`; nil if unknown.
    public static func began(session: UInt64, at: Run.Instant, remote: String? = nil) -> SourceInput {
        SourceInput(session: session, at: at, .began(.otherProgram, remote: remote))
    }

    /// Returns the input that connects a session to the server at this address. Bytes of the client are not decoded
    /// before it.
    public static func connected(to server: String, session: UInt64, at: Run.Instant) -> SourceInput {
        SourceInput(session: session, at: at, .input(.connected(server)))
    }

    /// Returns the input with bytes of a direction. Pass the bytes of both directions in the order in which they were
    /// read.
    public static func received(
        _ direction: Direction,
        _ bytes: [UInt8],
        session: UInt64,
        at: Run.Instant
    ) -> SourceInput {
        SourceInput(session: session, at: at, .received(direction, bytes))
    }

    /// Returns the input that ends a session, because its connections are closed.
    public static func closed(session: UInt64, at: Run.Instant) -> SourceInput {
        SourceInput(session: session, at: at, .input(.closed))
    }
}
