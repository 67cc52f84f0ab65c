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

/// Commands that wait for the driver, in order. Records are stored separately, since they are large.
struct CommandQueue: ~Copyable {
    /// The kind of the next command.
    enum Kind { case record, send, recv, other }

    private var kinds = FIFO<Kind>()
    private var records = FIFO<RedactedRecord>()
    /// The commands that are neither records nor forward.
    private var commands = FIFO<Command>()

    var isEmpty: Bool { kinds.isEmpty }

    /// Appends a record after redacting it.
    ///
    /// - Parameter domain: The domain of user names without one.
    @inline(__always)
    mutating func append(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        records.append(redactor.redact(record, at: domain))
        kinds.append(.record)
    }

    /// - Parameter direction: The direction of the forwarded bytes.
    @inline(__always)
    mutating func append(forwarding direction: Direction) { kinds.append(direction == .send ? .send : .recv) }

    /// Appends a command other than a record or a forward.
    mutating func append(_ command: consuming Command) {
        assert(command.isOther)
        commands.append(command)
        kinds.append(.other)
    }

    /// Advances to the next command; nil if there is none. The caller then takes a record or a command.
    @inline(__always)
    mutating func advance() -> Kind? { kinds.takeFirst() }

    /// Removes and returns the record that is next; nil if it was taken before.
    mutating func takeRecord() -> RedactedRecord? { records.takeFirst() }

    /// Removes and returns the command that is next; nil if it was taken before.
    mutating func takeCommand() -> Command? { commands.takeFirst() }
}

/// Elements in the order in which they were appended, each moved out once without a copy.
private struct FIFO<Element> {
    /// The bytes that an empty queue keeps, since most sessions are idle: a few records.
    private static var keptBytes: Int { 2048 }

    /// Elements that were taken are nil.
    private var elements: [Element?] = []
    private var first = 0

    var isEmpty: Bool { first == elements.count }

    @inline(__always)
    mutating func append(_ element: consuming Element) { elements.append(element) }

    @inline(__always)
    mutating func takeFirst() -> Element? {
        guard first < elements.count - 1 else { return takeLast() }
        defer { first += 1 }
        return elements[first].take()
    }

    @inline(__always)
    private mutating func takeLast() -> Element? {
        guard let element = elements.popLast() else { return nil }
        if first > 0 {
            first = 0
            let keepsCapacity = elements.capacity * MemoryLayout<Element?>.stride <= Self.keptBytes
            elements.removeAll(keepingCapacity: keepsCapacity)
        }
        return element
    }
}
