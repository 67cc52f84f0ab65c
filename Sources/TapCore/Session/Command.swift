public import TapRecord

/// What a session asks its driver to do. Commands come in order and are performed in order, at once.
public enum Command: Sendable {
    /// Writes ``Session/content`` to the leg on which `direction` leaves.
    case forward(Direction)
    /// Writes bytes of the proxy's own to a leg.
    case send(Leg, [UInt8])
    /// A step of the TLS that is terminated here.
    indirect case tls(TLSCommand)
    /// Hands a record to the sinks, with ``Session/content`` beside it.
    case record(RedactedRecord)
    /// A step of a login that takes long: it is to be performed elsewhere and handed to ``SessionInput/computed(_:)``. The
    /// session looks at nothing that comes until then.
    case compute(SlowStep)
    /// What has become of the injected stanza that has this number: see ``SessionInput/inject(_:)``.
    case injected(UInt64, InjectionOutcome)
    /// The session with this number is still connected, and this one resumes it: it is to be told by
    /// ``SessionInput/displaced(by:)``, and this one by ``SessionInput/displaces`` when that is done, or where there is no
    /// such session any more.
    case displace(UInt64)
    /// Whether the leg may be read from now on; told when it changes. At the beginning both may.
    case read(Leg, Bool)
    /// What is written to the leg from now on goes out in this shape, in order, and so does its end; nil ends that behind
    /// what waits.
    case shape(Leg, LinkShape?)
    /// Sends no more on the leg: a FIN, after all that was written before.
    case finish(Leg)
    /// Ends both legs, after all that was written before. `reset` passes a reset on as a reset.
    case close(reset: Bool)
}

/// How the bytes of a leg came to an end.
public enum LegEnd: Sendable, Hashable {
    /// The peer sends no more (FIN).
    case finished
    /// The connection was reset (RST).
    case reset
    /// The connection failed otherwise; words of the operating system.
    case failed(String)
}

/// What a driver does with the bytes of a read, told by ``Session/receive(_:_:at:)``.
public enum Disposition: Sendable, Hashable {
    /// Pass the read on as it is, now; the session only watches.
    case relay
    /// Keep nothing: the session has the bytes and says by ``Command/forward(_:)`` what goes on.
    case keep
}

/// Commands that wait for the driver, in order.
struct CommandQueue: ~Copyable {
    private var commands: [Command] = []
    private var head = 0

    var isEmpty: Bool { head == commands.count }

    /// The direction that the next command forwards.
    var forwarded: Direction? {
        @inline(__always) get {
            if case .forward(let direction) = commands[head] { direction } else { nil }
        }
    }

    @inline(__always)
    mutating func append(_ command: consuming Command) {
        if commands.count == 2 { commands.reserveCapacity(8) }
        commands.append(consume command)
    }

    /// Takes the next command out rather than copying it: a record has many texts to be counted once more. There must be
    /// one.
    @inline(__always)
    mutating func take() -> Command {
        guard head + 1 < commands.count else {
            // Most events have one.
            let command = commands.removeLast()
            if head > 0 {
                // A login's last events have many, and the room for them would stay with the session.
                commands.removeAll(keepingCapacity: commands.capacity <= 3)
                head = 0
            }
            return command
        }
        var command = Command.finish(.client)
        swap(&command, &commands[head])
        head += 1
        return command
    }
}
