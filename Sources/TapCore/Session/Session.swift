public import XMPPCore

/// One client's session through the tap: both directions, what is known of them, and what is to be done.
///
/// Deterministic, without sockets, clocks, files or threads. Happenings come in by the mutating methods, each with the
/// time it happened at; commands are pulled by ``next()`` until there are none and performed in order. The bytes a
/// command speaks of are in ``content`` until the next call.
///
/// Until the session is open every item is passed on whole, after it has been looked at (*store and forward*), so that
/// nothing slips past a change of protocol; from then on bytes pass as they come (*cut-through*) and are looked at
/// after. Bytes always pass verbatim. What cannot be decoded passes too: the direction turns *opaque*, and a record says
/// where and why.
public struct Session: ~Copyable {
    /// Number within the run.
    public let number: UInt64
    /// What is known so far.
    public internal(set) var facts: SessionFacts

    let run: Run
    let options: SessionOptions
    let tools: SessionTools
    let remote: String?
    /// Both directions.
    var pipes: PipePair
    var phase = Phase.opening
    var now: Run.Instant
    var requests = IQTracker()
    var roster = Roster()
    var liveness: Liveness
    /// How far it has come on the way to be ready.
    public internal(set) var ladder: Ladder
    var sasl: SASLDecoder
    /// What is remembered of the login until the session is ready.
    var login: LoginNotes? = LoginNotes()
    /// Reads what a client that begins TLS says in clear, until it has said it.
    var hello: ClientHelloReader?
    /// How far TLS has come that is ended here.
    var tls = TLSProgress.none
    /// TLS that does not begin on both legs together, until it has begun.
    var separate: SeparateTLS?
    /// Keys of dialback are checked by this stream (XEP-0220 §2.3): it need not carry anything else.
    var isVerifying = false
    /// Stanzas of both servers go by this stream (XEP-0288).
    var isBidirectional = false
    var isConnected = false
    var isFinished = false
    /// The domain the client has asked for, where that has chosen its server.
    var chosenDomain: String?

    /// The beginning of a session that is read from a client's own log.
    public static let ownLogBeginning = "a session by the client's own log"
    /// The beginning of a session whose client is this program.
    public static let ownClientBeginning = "a session of xmpptap's own"

    private var queue: [Command] = []
    private var queueHead = 0
    /// Where the texts of the current event's records stand.
    var contentSource = ContentSource.none
    private var shownSource = ContentSource.none
    var composed: [UInt8] = []

    /// Where ``content`` stands.
    enum ContentSource {
        case none, send, recv, composed
    }

    /// A session that a client at `remote` has just begun, by way of a proxy at `relay` if that has told so; `tools`
    /// belong to the event loop it runs on. `beginning` is what its first record says, where it is not relayed.
    public init(
        run: Run,
        options: SessionOptions,
        tools: SessionTools,
        remote: String?,
        relay: String? = nil,
        upstream: String,
        beginning: String? = nil,
        at now: Run.Instant
    ) {
        self.run = run
        self.options = options
        self.tools = tools
        self.remote = remote
        self.now = now
        sasl = SASLDecoder(policy: options.redaction)
        separate = SeparateTLS(options)
        number = run.nextSession()
        facts = SessionFacts(began: now)
        liveness = Liveness(at: now.monotonic)
        ladder = Ladder(at: now.monotonic)
        login?.termination = options.desk.map { Termination($0) }
        pipes = PipePair(
            limits: options.unauthenticatedLimits,
            outline: options.level >= .info ? tools.outline : nil
        )
        note(
            .session,
            .info,
            code: "session-began",
            beginning
                ?? "\(remote ?? "a client") connected\(relay.map { " by way of \($0)" } ?? ""), to be relayed to \(upstream)",
            part: .net
        )
        noteClearLegs()
    }

    // MARK: What happens

    /// The connection to the server is up. The attempt began at `since`; nil is where the rung before it ended. Where
    /// attempts have been told by ``made(_:at:)``, this one has been, too.
    public mutating func serverConnected(_ address: String, since: Run.Instant? = nil, at now: Run.Instant) {
        self.now = now
        isConnected = true
        pipes.send.hasInput = true
        note(.session, .trace, code: "server-connected", "connected to \(address)", part: .net)
        if !ladder.has(.connect) {
            finish(.connect, .ok, since: since?.monotonic, details: ["address": .string(address)])
        }
    }

    /// The connection to the server could not be made; the client is told so in its own terms. Where no attempt has been
    /// told by ``made(_:at:)`` or ``climbed(_:_:since:details:at:)``, there was one, which is told here.
    public mutating func serverFailed(
        _ reason: String,
        _ fault: ConnectionFault = .unreachable,
        at now: Run.Instant
    ) {
        self.now = now
        login?.connectionFault = fault
        login?.refusal = reason
        if !ladder.hasFailure { finish(.connect, .failed(reason)) }
        note(.error, .error, code: "server-unreachable", reason, condition: .remoteConnectionFailed, part: .net)
        refuse(.remoteConnectionFailed, "The server cannot be reached.")
    }

    /// Ends the session from this side, telling both ends why; `code` is the record's.
    public mutating func abort(
        _ condition: StreamErrorCondition,
        _ text: String,
        code: String = "aborted",
        at now: Run.Instant
    ) {
        self.now = now
        guard !isFinished, !isRefusing else { return }
        login?.refusal = text
        note(.error, .error, code: code, text, condition: condition, part: .session)
        refuse(condition, text)
    }

    /// Bytes have arrived.
    public mutating func receive(_ direction: Direction, _ bytes: Span<UInt8>, at now: Run.Instant) -> Disposition {
        self.now = now
        guard !bytes.isEmpty, !isFinished else { return .keep }
        if options.level >= .trace { traceChunk(direction, bytes) }
        pipes[direction].received += UInt64(bytes.count)
        liveness.lastReceived = now.monotonic
        count(direction, bytes.count)
        if pipes[direction].received == UInt64(bytes.count) {
            lookAtFirstBytes(direction, bytes)
            if isFinished { return .keep }
        }
        switch pipes[direction].mode {
        case .opaque:
            lookIntoOpaque(direction, bytes)
            if isFinished { return .keep }
            pipes[direction].forwarded += UInt64(bytes.count)
            return .relay
        case .cutThrough:
            pipes[direction].decoder.append(bytes)
            pipes[direction].hasInput = true
            pipes[direction].forwarded += UInt64(bytes.count)
            return .relay
        case .store:
            pipes[direction].decoder.append(bytes)
            pipes[direction].hasInput = true
            return .keep
        }
    }

    /// No more bytes will come on a leg. Told a second time where a peer that had only ceased to send is gone.
    public mutating func ended(_ leg: Leg, _ end: LegEnd, at now: Run.Instant) {
        self.now = now
        let direction = leg.inbound
        guard !isFinished else { return }
        if pipes[direction].end == .finished, end != .finished {
            // The peer had only ceased to send; now it is gone, and nothing that is for it can reach it.
            return finish(reset: true)
        }
        guard pipes[direction].end == nil else { return }
        pipes[direction].end = end
        pipes[direction].hasInput = true
        // What waits for the answer to a request for TLS waits in vain: who sends no more cannot begin TLS. The server
        // learns of the end behind it, or it might never answer and the session never end.
        if direction == .send, end == .finished, pipes.send.isHeld { release(.send) }
        // A client that is gone before its server is reached has nobody to pass the end on to.
        if direction == .send, !isConnected, end != .finished { finish(reset: true) }
    }

    /// Ends the session because this program stops. Neither end is told by an end of its stream, so that a session with
    /// stream management can be resumed (XEP-0198 §5).
    public mutating func stop(at now: Run.Instant) {
        self.now = now
        guard !isFinished else { return }
        if facts.ending == nil { facts.ending = .stopped }
        finish(reset: false)
    }

    /// What was read ends here: whether the session went on nobody knows.
    public mutating func recordingEnded(at now: Run.Instant) {
        self.now = now
        guard !isFinished else { return }
        if facts.ending == nil { facts.ending = .unrecorded }
        finish(reset: false)
    }

    /// The legs are closed: the last thing a driver tells. Records what is to be said of the session as a whole.
    public mutating func closed(at now: Run.Instant) {
        self.now = now
        guard !phase.isClosed else { return }
        finishRecords()
    }

    /// Goes on with a direction that was held.
    public mutating func release(_ direction: Direction) {
        if let held = pipes[direction].held { enqueue(.send(direction.destination, held)) }
        pipes[direction].held = nil
        pipes[direction].isHeld = false
        pipes[direction].hasInput = true
    }

    /// Holds a direction whose items are stored: those that follow wait, and so does the leg once enough waits. Nothing
    /// happens to one whose bytes pass as they come: they would pile up here, already passed.
    public mutating func hold(_ direction: Direction) {
        if pipes[direction].mode == .store { pipes[direction].isHeld = true }
    }

    /// Whether the session is open, serves for checking keys of dialback, or passes bytes that it cannot follow: what it
    /// is waiting for has come to an end.
    public var isPastLogin: Bool {
        facts.opened != nil || isVerifying || pipes.send.isOpaque || pipes.recv.isOpaque
    }

    /// Whether the leg may be read: false while what it brought has to wait.
    public func wantsBytes(from leg: Leg) -> Bool {
        let direction = leg.inbound
        guard pipes[direction].mode == .store else { return true }
        let isWaiting = pipes[direction].isHeld || leg == .client && !isConnected && !isRefusing
        return !isWaiting || pipes[direction].waiting < options.waitingBytes
    }

    // MARK: What is to be done

    /// The next thing to do; nil when there is nothing until something else happens.
    public mutating func next() -> Command? {
        while true {
            if queueHead < queue.count {
                let command = takeCommand()
                // What is forwarded is what came, whatever a record may show of it.
                if case .forward(let direction) = command {
                    shownSource = direction == .send ? .send : .recv
                } else {
                    shownSource = contentSource
                }
                return command
            }
            contentSource = .none
            // Few items need it once the login is over; an idle session keeps little.
            if composed.capacity > 256 { composed = [] }
            dropIdleDecoders()
            if step(.recv) || step(.send) { continue }
            return nil
        }
    }

    /// Calls `body` with ``content``: for a session that is part of an object, out of which no span may be handed.
    public func withContent<Outcome>(_ body: (Span<UInt8>) -> Outcome) -> Outcome { body(content) }

    /// The bytes of the last command: what to forward, or the texts of a record.
    public var content: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            switch shownSource {
            case .none, .composed: composed.span
            case .send: pipes.both[0].decoder.bytes
            case .recv: pipes.both[1].decoder.bytes
            }
        }
    }

    /// The decoder of a direction that has turned opaque goes when the commands that speak of its bytes are performed.
    private mutating func dropIdleDecoders() {
        for direction in Direction.allCases where pipes[direction].isOpaque && pipes[direction].waiting > 0 {
            pipes[direction].decoder = StreamDecoder()
        }
    }

    /// Looks at one item of a direction; false when there is nothing to look at.
    private mutating func step(_ direction: Direction) -> Bool {
        guard pipes[direction].hasInput, !isFinished else { return false }
        if pipes[direction].isHeld && !passesWhileHeld(direction)
            || direction == .send && !isConnected && !isRefusing
        {
            if direction == .send, refusesEarlyBytes() { return true }
            // What waits goes on waiting, unless nobody is left to wait for it.
            guard pipes[direction].isGone else { return false }
            passEnd(direction)
            return queueHead < queue.count
        }
        guard !pipes[direction].isOpaque, let event = pipes[direction].decoder.next() else {
            pipes[direction].hasInput = false
            if pipes[direction].end != nil { passEnd(direction) }
            return pipes[direction].hasInput || queueHead < queue.count
        }
        handle(event, direction)
        return true
    }

    /// White space behind a request for TLS goes with it, though RFC 6120 §5.3.3 forbids it: go-sendxmpp ends the request
    /// with a line feed, and a server that got it after its consent would take it for TLS.
    private func passesWhileHeld(_ direction: Direction) -> Bool {
        guard direction == .send, case .startingTLS = phase, pipes.send.waiting > 0 else { return false }
        return [0x20, 0x09, 0x0A, 0x0D].contains(pipes.pending(.send)[0])
    }

    // MARK: Commands

    /// Takes the next command out rather than copying it: a record has many texts to be counted once more.
    private mutating func takeCommand() -> Command {
        guard queueHead + 1 < queue.count else {
            // Most events have one.
            let command = queue.removeLast()
            if queueHead > 0 {
                // A login's last events have many, and the room for them would stay with the session.
                queue.removeAll(keepingCapacity: queue.capacity <= 3)
                queueHead = 0
            }
            return command
        }
        var command = Command.finish(.client)
        swap(&command, &queue[queueHead])
        queueHead += 1
        return command
    }

    mutating func enqueue(_ command: consuming Command) {
        if queue.count == 2 { queue.reserveCapacity(8) }
        queue.append(consume command)
    }

    private mutating func count(_ direction: Direction, _ bytes: Int) {
        switch direction {
        case .send: facts.sent.bytes += UInt64(bytes)
        case .recv: facts.received.bytes += UInt64(bytes)
        }
    }
}
