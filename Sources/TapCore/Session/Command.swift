package import TapRecord

/// A request of a session to its driver. The driver performs commands at once and in order.
package enum Command: Sendable {
    /// Writes ``Session/content`` to the receiving leg of `direction`.
    case forward(Direction)
    /// Writes these bytes to a leg: items that xmpptap generated or edited, or a peer's bytes that are not
    /// ``Session/content``.
    case send(Leg, [UInt8])
    /// Performs a step of the TLS that xmpptap terminates.
    indirect case tls(TLSCommand)
    /// Passes a record to the sinks, together with ``Session/content``.
    case record(RedactedRecord)
    /// Computes a slow step of a login on another thread, and passes the result to ``SessionInput/computed(_:)``. The
    /// session decodes no input until then.
    case compute(SlowStep)
    /// Adds this session to the ``ResumptionJournal`` under its mark. Until that is done, the driver performs no later
    /// command of the session and flushes nothing: after a crash, the journal must contain every session whose peers
    /// have different stanza counts.
    case addToJournal([UInt8])
    /// Looks marks up in the ``ResumptionJournal``, and answers with ``SessionInput/searchedJournal(_:isFound:)``.
    /// Bytes of the client wait until then.
    case searchJournal([[UInt8]])
    /// Reports the outcome of the injected stanza with this number: see ``SessionInput/inject(_:)``.
    case injected(UInt64, InjectionOutcome)
    /// Takes over the session with this number, which is still connected and is resumed by this session. The driver
    /// sends the old session ``SessionInput/displaced(by:)``. When that is done, or if the old session no longer
    /// exists, it sends this session ``SessionInput/displaces``.
    case displace(UInt64)
    /// Performs a request about state that sessions share, by ``SharedState/perform(_:)``, and passes the answer to
    /// ``SessionInput/shared(_:)`` before any other input.
    indirect case shared(SharedRequest)
    /// Starts or stops reading the leg. Initially both legs are read.
    case read(Leg, Bool)
    /// Applies traffic shaping to later writes and to the end of the leg, in order; nil ends the shaping after the
    /// queued writes.
    case shape(Leg, LinkShape?)
    /// Half-closes the leg: sends a FIN after all earlier writes.
    case finish(Leg)
    /// Closes both legs after all earlier writes. With `reset`, it sends a reset (RST) instead of a FIN.
    case close(reset: Bool)

    /// Whether the command is neither a record nor a forward.
    fileprivate var isOther: Bool {
        switch self {
        case .record, .forward: false
        default: true
        }
    }
}

/// How the input of a leg ended.
package enum LegEnd: Sendable, Hashable {
    /// The peer sends no more (FIN).
    case finished
    /// The connection was reset (RST).
    case reset
    /// The connection failed in another way; with the operating system's error message.
    case failed(String)
}

/// The driver's action on the bytes of a read: the result of ``Session/receive(_:_:at:)``.
package enum Disposition: Sendable, Hashable {
    /// Forward the bytes unchanged now; the session only observes them.
    case relay
    /// Do not forward the bytes: the session has stored them, and forwards them later with ``Command/forward(_:)``.
    case keep
}

/// Commands that wait for the driver, in order.
///
/// Records are stored separately: they are large, and moved only when they are appended and removed.
struct CommandQueue: ~Copyable {
    /// The kind of the next command.
    enum Kind: UInt8 { case record, send, recv, other }

    /// The kinds of the first pending commands, two bits each; the next one is in the lowest bits.
    private var first: UInt64 = 0
    private var firstCount: UInt64 = 0
    /// The kinds of the commands after ``first``: the last events of a login cause many commands.
    private var later: [Kind] = []
    /// Pending records.
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

    /// Appends a record after redacting it.
    ///
    /// - Parameter domain: The domain that redaction assumes for user names without a domain.
    @inline(__always)
    mutating func append(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        records.append(record, by: redactor, at: domain)
        append(.record)
    }

    /// Appends a command to forward the bytes of the current event in this direction.
    @inline(__always)
    mutating func append(forwarding direction: Direction) { append(direction == .send ? .send : .recv) }

    /// Appends a command other than a record or a forward.
    mutating func append(_ command: consuming Command) {
        assert(command.isOther)
        commands.append(command)
        append(.other)
    }

    /// Removes and returns the kind of the next command; there must be one. The caller then takes the record or command
    /// itself.
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

/// Pending records, each appended and removed once without a copy, because a copy would retain each of the record's
/// texts. Used only on the thread of its session.
package final class WaitingRecords {
    private struct Queue {
        /// Removed records are nil.
        var records: [RedactedRecord?] = []
        var first = 0

        /// Traps if no record waits.
        mutating func useFirst(_ body: (inout RedactedRecord) -> Void) {
            records[first]?.use(body)
            _ = takeFirst()
        }

        /// Traps if no record waits.
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

    /// The largest capacity that an empty queue keeps.
    private static let keptCapacity = 2

    /// Appends a record after redacting it.
    func append(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        queue.records.append(redactor.redact(record, at: domain))
    }

    /// Calls `body` with the first record, then removes it. The queue must not be empty.
    ///
    /// `inout`, because a record borrowed from an array would be copied. A nested call during `body` traps.
    package func useFirst(_ body: (inout RedactedRecord) -> Void) { queue.useFirst(body) }

    /// Removes and returns the first record. The queue must not be empty.
    package func takeFirst() -> RedactedRecord {
        guard let record = queue.takeFirst() else { preconditionFailure("the record was removed before") }
        return record
    }
}

extension RedactedRecord {
    fileprivate mutating func use(_ body: (inout RedactedRecord) -> Void) { body(&self) }
}
