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
    /// the session before any other input.
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

/// Commands that wait for the driver, in order. Records are stored separately, since they are large.
struct CommandQueue: ~Copyable {
    /// The kind of a command in the queue.
    enum Kind { case record, send, recv, other }

    private var kinds = FIFO<Kind>()
    private var records = FIFO<RedactedRecord>()
    /// The commands that are neither records nor forward.
    private var commands = FIFO<Command>()

    var isEmpty: Bool { kinds.isEmpty }

    /// Appends a record after redacting it.
    ///
    /// - Parameter domain: The domain that redaction assumes for user names without a domain.
    @inline(__always)
    mutating func append(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        records.append(redactor.redact(record, at: domain))
        kinds.append(.record)
    }

    /// Appends a command to forward the bytes of the current event in this direction.
    @inline(__always)
    mutating func append(forwarding direction: Direction) { kinds.append(direction == .send ? .send : .recv) }

    /// Appends a command other than a record or a forward.
    mutating func append(_ command: consuming Command) {
        assert(command.isOther)
        commands.append(command)
        kinds.append(.other)
    }

    /// Removes and returns the kind of the next command; there must be one. The caller then takes the record or command
    /// itself.
    @inline(__always)
    mutating func advance() -> Kind? { kinds.takeFirst() }

    /// Calls `body` with the record that is next, in its place; does nothing if it was removed before.
    @inline(__always)
    func withRecord(_ body: (borrowing RedactedRecord) -> Void) { records.withFirst(body) }

    /// Removes the record that is next.
    @inline(__always)
    mutating func removeRecord() { records.removeFirst() }

    /// Removes and returns the record that is next; nil if it was removed before.
    mutating func takeRecord() -> RedactedRecord? { records.takeFirst() }

    /// Removes and returns the command that is next; nil if it was taken before.
    mutating func takeCommand() -> Command? { commands.takeFirst() }
}

/// Elements in the order in which they were appended.
///
/// The memory of removed elements is freed when all are removed, which happens after each event of a session.
private struct FIFO<Element> {
    /// The bytes that an empty queue keeps, since most sessions are idle: two or three records.
    private static var keptBytes: Int { 1024 }

    private var elements: [Element] = []
    /// The number of elements that were removed.
    private var first = 0

    var isEmpty: Bool { first == elements.count }

    @inline(__always)
    mutating func append(_ element: consuming Element) { elements.append(element) }

    /// Calls `body` with the first element. A span lends it: the array's own subscript copies.
    @inline(__always)
    func withFirst(_ body: (borrowing Element) -> Void) {
        guard !isEmpty else { return }
        body(elements.span[first])
    }

    @inline(__always)
    mutating func takeFirst() -> Element? {
        guard !isEmpty else { return nil }
        defer { removeFirst() }
        return elements[first]
    }

    @inline(__always)
    mutating func removeFirst() {
        guard first < elements.count - 1 else { return removeLast() }
        first += 1
    }

    @inline(__always)
    private mutating func removeLast() {
        guard elements.popLast() != nil, first > 0 else { return }
        first = 0
        let keepsCapacity = elements.capacity * MemoryLayout<Element>.stride <= Self.keptBytes
        elements.removeAll(keepingCapacity: keepsCapacity)
    }
}
