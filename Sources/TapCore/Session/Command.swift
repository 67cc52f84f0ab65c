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
    /// Adds this session to the ``ResumptionJournal`` by its mark. Until that is done, the driver performs none of the session's
    /// later commands and flushes nothing: a crash must not leave peers that count differently and a journal that lacks the
    /// session.
    case addToJournal([UInt8])
    /// Looks marks up in the ``ResumptionJournal``. The answer is ``SessionInput/searchedJournal(_:isFound:)``; bytes of
    /// the client wait until then.
    case searchJournal([[UInt8]])
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

    /// Whether it is neither a record nor forwards.
    fileprivate var isOther: Bool {
        switch self {
        case .record, .forward: false
        default: true
        }
    }
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
///
/// Records stand apart: they are large, and moved only where they are put in and taken out.
struct CommandQueue: ~Copyable {
    /// What the next command is.
    enum Kind: UInt8 { case record, send, recv, other }

    /// The first of those that wait, two bits each, the next one lowest.
    private var first: UInt64 = 0
    private var firstCount: UInt64 = 0
    /// Those behind them: a login's last events have many.
    private var later: [Kind] = []
    /// Records, and the commands that are neither records nor forward.
    let records = WaitingRecords()
    private var commands: [Command] = []
    private var nextCommand = 0

    var isEmpty: Bool { firstCount == 0 }

    @inline(__always)
    private mutating func append(_ kind: Kind) {
        guard firstCount < 32, later.isEmpty else { return later.append(kind) }
        first |= UInt64(kind.rawValue) &<< (2 &* firstCount)
        firstCount &+= 1
    }

    /// Appends what the redactor makes of a record.
    ///
    /// - Parameter domain: The domain at which names of users are meant.
    @inline(__always)
    mutating func append(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        records.append(record, by: redactor, at: domain)
        append(.record)
    }

    /// - Parameter direction: Where its bytes go out.
    @inline(__always)
    mutating func append(forwarding direction: Direction) { append(direction == .send ? .send : .recv) }

    /// Takes one that is neither a record nor forwards.
    mutating func append(_ command: consuming Command) {
        assert(command.isOther)
        commands.append(command)
        append(.other)
    }

    /// Goes on to the next one, of which there must be one. A record is to be taken then, or a command.
    @inline(__always)
    mutating func advance() -> Kind {
        let kind = Kind(rawValue: UInt8(truncatingIfNeeded: first & 3)) ?? .other
        first &>>= 2
        firstCount &-= 1
        if firstCount == 0, !later.isEmpty { refill() }
        return kind
    }

    private mutating func refill() {
        let waiting = later
        later = []
        for kind in waiting { append(kind) }
    }

    mutating func takeCommand() -> Command {
        let command = commands[nextCommand]
        nextCommand += 1
        if nextCommand == commands.count {
            commands = []
            nextCommand = 0
        }
        return command
    }
}

/// Records that wait, each appended and removed once, without a copy: a copy retains each of the record's texts. Confined to the
/// thread of its session.
public final class WaitingRecords {
    private struct Queue {
        /// A record that was removed leaves nil.
        var records: [RedactedRecord?] = []
        var first = 0

        /// Ends the program if no record waits.
        mutating func useFirst(_ body: (inout RedactedRecord) -> Void) {
            records[first]?.use(body)
            _ = takeFirst()
        }

        /// Ends the program if no record waits.
        mutating func takeFirst() -> RedactedRecord? {
            let record = records[first].take()
            first += 1
            if first == records.count { reset() }
            return record
        }

        private mutating func reset() {
            first = 0
            records.removeAll(keepingCapacity: records.capacity <= WaitingRecords.keptCapacity)
        }
    }

    private var queue = Queue()

    /// Room that a session keeps.
    private static let keptCapacity = 2

    /// Appends what the redactor makes of a record.
    func append(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        queue.records.append(redactor.redact(record, at: domain))
    }

    /// Calls `body` with the first record, which is removed afterwards. There must be one.
    ///
    /// `inout`, since a record that is borrowed from an array would be copied. Another call during `body` ends the program.
    public func useFirst(_ body: (inout RedactedRecord) -> Void) { queue.useFirst(body) }

    /// Removes the first record. There must be one.
    public func takeFirst() -> RedactedRecord {
        guard let record = queue.takeFirst() else { preconditionFailure("the record was removed before") }
        return record
    }
}

extension RedactedRecord {
    fileprivate mutating func use(_ body: (inout RedactedRecord) -> Void) { body(&self) }
}
