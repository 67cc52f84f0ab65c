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
    /// The session with this number is still connected, and this one resumes it. The driver sends it
    /// ``SessionInput/displaced(by:)``, and this one ``SessionInput/displaces`` when that is done, or where there is no
    /// such session any more.
    case displace(UInt64)
    /// Whether to read the leg from now on; sent when it changes. At the beginning both legs are read.
    case read(Leg, Bool)
    /// What is written to the leg from now on goes out in this shape, in order, and so does its end; nil ends that behind
    /// what waits.
    case shape(Leg, LinkShape?)
    /// Sends no more on the leg: a FIN, after all that was written before.
    case finish(Leg)
    /// Ends both legs, after all that was written before. `reset` passes a reset on as a reset.
    case close(reset: Bool)

    var isForward: Bool { if case .forward = self { true } else { false } }
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

/// What a driver does with the bytes of a read: the result of ``Session/receive(_:_:at:)``.
public enum Disposition: Sendable, Hashable {
    /// Pass the read on as it is, now; the session only watches.
    case relay
    /// Keep nothing: the session has the bytes and says by ``Command/forward(_:)`` what goes on.
    case keep
}

/// Commands that wait for the driver, in order.
struct CommandQueue: ~Copyable {
    private var waiting: [Waiting] = []
    private var head = 0

    private struct Waiting {
        var command: Command
        /// The direction that it forwards. To look at a command in place the compiler copies it, and a record has many texts
        /// to be counted once more.
        var forwarded: Direction?
    }

    var isEmpty: Bool { head == waiting.count }

    /// The direction that the next command forwards.
    var forwarded: Direction? {
        @inline(__always) get { waiting[head].forwarded }
    }

    /// - Parameter forwarded: The direction of a ``Command/forward(_:)``, which no other command has.
    @inline(__always)
    mutating func append(_ command: consuming Command, forwarding forwarded: Direction? = nil) {
        if waiting.count == 2 { waiting.reserveCapacity(8) }
        waiting.append(Waiting(command: command, forwarded: forwarded))
    }

    /// Takes the next command out rather than copying it: a record has many texts to be counted once more. There must be
    /// one.
    @inline(__always)
    mutating func take() -> Command {
        guard head + 1 < waiting.count else {
            // Most events have one.
            let last = waiting.removeLast()
            if head > 0 {
                // A login's last events have many, and the room for them would stay with the session.
                waiting.removeAll(keepingCapacity: waiting.capacity <= 3)
                head = 0
            }
            return last.command
        }
        var command = Command.finish(.client)
        swap(&command, &waiting[head].command)
        head += 1
        return command
    }
}
