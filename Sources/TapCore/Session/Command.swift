package import TapRecord

/// A request of a session to its driver. Commands are performed at once and in order.
package enum Command: Sendable {
    /// Writes ``Session/content`` to the leg on which `direction` leaves.
    case forward(Direction)
    /// Writes these bytes to a leg: items that xmpptap generated or edited, or a peer's bytes that are not
    /// ``Session/content``.
    case send(Leg, [UInt8])
    /// A step of the TLS that the proxy terminates.
    indirect case tls(TLSCommand)
    /// Passes a record to the sinks, with ``Session/content`` beside it.
    case record(RedactedRecord)
    /// A slow step of a login: perform it on another thread and pass the result to ``SessionInput/computed(_:)``. The
    /// session decodes no input until then.
    case compute(SlowStep)
    /// Adds this session to the ``ResumptionJournal`` by its mark. Until that is done, the driver performs none of the session's
    /// later commands and flushes nothing: a crash must not leave peers that count differently and a journal that lacks the
    /// session.
    case addToJournal([UInt8])
    /// Looks marks up in the ``ResumptionJournal``. The answer is ``SessionInput/searchedJournal(_:isFound:)``; bytes of
    /// the client wait until then.
    case searchJournal([[UInt8]])
    /// The outcome of the injected stanza with this number: see ``SessionInput/inject(_:)``.
    case injected(UInt64, InjectionOutcome)
    /// The session with this number is still connected, and this one resumes it. The driver sends it
    /// ``SessionInput/displaced(by:)``; when that is done, or if the session no longer exists, it sends this one
    /// ``SessionInput/displaces``.
    case displace(UInt64)
    /// A request about state that sessions share: perform it by ``SharedState/perform(_:)``, and pass the answer to
    /// ``SessionInput/shared(_:)`` before any other input.
    indirect case shared(SharedRequest)
    /// Whether to read the leg from now on; sent when it changes. Initially both legs are read.
    case read(Leg, Bool)
    /// Applies traffic shaping to later writes of the leg, and to its end, in order; nil ends the shaping after the
    /// queued writes.
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

/// The way in which the input of a leg ended.
package enum LegEnd: Sendable, Hashable {
    /// The peer sends no more (FIN).
    case finished
    /// The connection was reset (RST).
    case reset
    /// The connection failed otherwise; with the operating system's error message.
    case failed(String)
}

/// The driver's action on the bytes of a read: the result of ``Session/receive(_:_:at:)``.
package enum Disposition: Sendable, Hashable {
    /// Pass the read on unchanged, now; the session only observes.
    case relay
    /// Keep nothing: the session stores the bytes and forwards them by ``Command/forward(_:)``.
    case keep
}

/// Commands that wait for the driver, in order.
///
/// Records are stored separately: they are large, and moved only when they are appended and removed.
struct CommandQueue: ~Copyable {
    /// The kind of the next command.
    enum Kind: UInt8 { case record, send, recv, other }

    /// The first pending commands, two bits each, the next one lowest.
    private var first: UInt64 = 0
    private var firstCount: UInt64 = 0
    /// The commands after those: the last events of a login have many.
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

    /// Appends a record after redacting it.
    ///
    /// - Parameter domain: The domain of user names without one.
    @inline(__always)
    mutating func append(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        records.append(record, by: redactor, at: domain)
        append(.record)
    }

    /// - Parameter direction: The direction of the forwarded bytes.
    @inline(__always)
    mutating func append(forwarding direction: Direction) { append(direction == .send ? .send : .recv) }

    /// Appends a command other than a record or a forward.
    mutating func append(_ command: consuming Command) {
        assert(command.isOther)
        commands.append(command)
        append(.other)
    }

    /// Advances to the next command; there must be one. The caller then removes a record or a command.
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

/// Pending records, each appended and removed once, without a copy: a copy retains each of the record's texts. Confined
/// to the thread of its session.
package final class WaitingRecords {
    private struct Queue {
        /// Removed records are nil.
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

    /// The capacity that an idle session keeps.
    private static let keptCapacity = 2

    /// Appends a record after redacting it.
    func append(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        queue.records.append(redactor.redact(record, at: domain))
    }

    /// Calls `body` with the first record, then removes it. There must be one.
    ///
    /// `inout`, since a record borrowed from an array would be copied. A nested call during `body` ends the program.
    package func useFirst(_ body: (inout RedactedRecord) -> Void) { queue.useFirst(body) }

    /// Removes the first record. There must be one.
    package func takeFirst() -> RedactedRecord {
        guard let record = queue.takeFirst() else { preconditionFailure("the record was removed before") }
        return record
    }
}

extension RedactedRecord {
    fileprivate mutating func use(_ body: (inout RedactedRecord) -> Void) { body(&self) }
}
