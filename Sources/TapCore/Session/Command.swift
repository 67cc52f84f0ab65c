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
        redactor.redact(record, at: domain, into: records.addPlace())
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

/// Records that wait, each put in and taken out once: without a copy, which would count a reference more of each of a record's
/// texts. Confined to the thread of its session.
///
/// The run-time check of exclusive access would be made several times for each record; ``isInUse`` is what it would find.
public final class WaitingRecords {
    /// True during ``useFirst(_:)``: no record may be added or taken meanwhile.
    @exclusivity(unchecked) private var isInUse = false
    @exclusivity(unchecked) private var place: UnsafeMutablePointer<RedactedRecord>?
    @exclusivity(unchecked) private var capacity = 0
    @exclusivity(unchecked) private var first = 0
    @exclusivity(unchecked) private var end = 0

    /// Room that a session keeps.
    private static let keptCapacity = 2

    deinit {
        guard let place else { return }
        (place + first).deinitialize(count: end - first)
        place.deallocate()
    }

    /// Where the next record goes, which the caller puts there at once.
    @inline(__always)
    func addPlace() -> UnsafeMutablePointer<RedactedRecord> {
        precondition(!isInUse, "a record was added while another was used")
        defer { end += 1 }
        return (end < capacity ? place ?? grow() : grow()) + end
    }

    private func grow() -> UnsafeMutablePointer<RedactedRecord> {
        let larger = UnsafeMutablePointer<RedactedRecord>.allocate(capacity: max(Self.keptCapacity, 2 * capacity))
        if let place {
            (larger + first).moveInitialize(from: place + first, count: end - first)
            place.deallocate()
        }
        place = larger
        capacity = max(Self.keptCapacity, 2 * capacity)
        return larger
    }

    /// Has `body` use the first record, which there must be, where it is, and lets go of it. `inout`, since what is behind a
    /// pointer would be copied to be borrowed. No record may be added meanwhile.
    public func useFirst(_ body: (inout RedactedRecord) -> Void) {
        precondition(!isInUse, "a record was taken while another was used")
        guard let place, first < end else { preconditionFailure("no record waits") }
        isInUse = true
        body(&place[first])
        isInUse = false
        (place + first).deinitialize(count: 1)
        first += 1
        if first == end { reset() }
    }

    /// Takes the first record, which there must be.
    public func takeFirst() -> RedactedRecord {
        precondition(!isInUse, "a record was taken while another was used")
        guard let place, first < end else { preconditionFailure("no record waits") }
        let record = (place + first).move()
        first += 1
        if first == end { reset() }
        return record
    }

    @inline(__always)
    private func reset() {
        (first, end) = (0, 0)
        if capacity > Self.keptCapacity { shrink() }
    }

    private func shrink() {
        place?.deallocate()
        place = nil
        capacity = 0
    }
}
