public import TapRecord
import XMPPCore

/// One client's session through the tap: both directions, what is known of them, and what is to be done.
///
/// Deterministic, without sockets, clocks, files or threads. Events come in by the mutating methods, each with the
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
    public internal(set) var info: SessionInfo

    // What is internal is shared by the extensions of the other files, a subject each.

    let run: Run
    var options: SessionOptions
    let tools: SessionTools
    let remote: String?
    var directions: Directions
    var negotiation: Negotiation
    var now: Run.Instant
    /// Reads the messages of the client's login.
    var sasl: SASLDecoder
    /// What was done to the item at hand, as its record says it; nil for one that passes.
    var action: String?
    /// What goes out in its place.
    var edited: EditedItem?
    /// The domain the client has asked for, where that has chosen its server.
    var chosenDomain: String?
    /// Which client of its account this is, for those that reconnect again and again.
    var client: ReconnectWatch.Key?
    /// What the session can be resumed by.
    var resumption: ResumptionTable.Key?
    /// What passed in the sessions that it continues; nil where it continues none.
    var earlierCounts: EarlierCounts?
    /// Where the session that it continues leaves what it knows; nil where that has.
    var inheritance: Inheritance?
    /// When to give up a refused session whose client opens no stream, so that it gets no stream error.
    var answerDeadline: Int64?
    /// Stanzas of this program's own that are under way.
    var injections: Injections?
    /// How many stanzas of this program's own have gone out.
    public internal(set) var injected: UInt64 = 0
    /// What else it has counted.
    public internal(set) var counters = SessionCounters()
    /// What stream management counts; nil where it was not requested.
    var streamManagement: StreamManagement?
    /// Pings the client where it is silent; nil unless that is wanted, and before the session is open.
    var pinger: Pinger?
    /// Judges items; nil where there are no rules.
    var rules: SessionRules?
    /// Where it is read from a recording (``SessionOptions/isRecorded``): what that tells.
    var recording: Recording?

    // The observers. Each sees events, changes nothing but itself, and gives what it has found to the extension beside it,
    // which makes records of that; ``info`` has the counts.

    /// How far it has come on the way to be ready.
    public internal(set) var timeline: LoginTimeline
    var requests = IQTracker()
    /// What is known of contacts, but for ``unreadRoster``.
    var roster = Roster()
    /// The last whole roster, where nothing has asked yet what is in it: see ``readRoster()``. Of no session whose lines tell it.
    var unreadRoster: [UInt8]?
    var liveness: Liveness
    var differential = ParserDifferential()
    /// Stanzas that may yet be looked at for what the client is.
    var softwareStanzas = Session.mostSoftwareStanzas
    /// Of the login until the session is ready.
    var login: LoginObserver? = LoginObserver()
    /// What was agreed on for TLS that was decrypted elsewhere; nil where none was.
    var decryptedTLS: Attributes?
    /// Dialback has verified more than one domain of the server that began the stream (XEP-0220 §2.4).
    var hasFurtherDomains = false
    /// Whether the session was under way when it was first seen: the headers of its streams are no steps of a login.
    var isJoined = false

    /// TLS that is being negotiated on the legs; nil before and after.
    public internal(set) var tls: TLSNegotiation?

    private(set) var queue = CommandQueue()
    /// Which direction is looked at first: of bytes that passed before any were looked at, those that came first may have caused the
    /// others.
    var leading = Direction.recv
    /// Whether the legs may be read, as the driver knows it.
    private var isRead = (client: true, server: true)
    /// Where the texts of the current event's records stand.
    var contentSource = ContentSource.none
    private var shownSource = ContentSource.none
    var composed: [UInt8] = []

    /// Where ``content`` stands.
    enum ContentSource {
        case none, send, recv, composed
    }

    /// A session that a client at `remote` has just begun, by way of a proxy at `relay` if that sent a PROXY header; `tools`
    /// belong to the event loop it runs on. `beginning` is what its first record says, where it is not relayed. `number` is
    /// that of a session that was numbered before; nil is the run's next.
    public init(
        run: Run,
        options: SessionOptions,
        tools: SessionTools,
        remote: String?,
        relay: String? = nil,
        upstream: String,
        beginning: Record.Beginning? = nil,
        number: UInt64? = nil,
        at now: Run.Instant
    ) {
        self.run = run
        self.options = options
        self.tools = tools
        self.remote = remote
        self.now = now
        sasl = SASLDecoder(policy: options.redaction)
        self.number = number ?? run.nextSession()
        recording = options.isRecorded ? Recording() : nil
        negotiation = Negotiation(options, isConnected: options.isRecorded || options.isObserved)
        info = SessionInfo(began: now)
        liveness = Liveness(at: now.monotonic)
        timeline = LoginTimeline(at: now.monotonic)
        directions = Directions(
            limits: options.unauthenticatedLimits,
            outline: options.level >= .info || options.rules != nil ? tools.outline : nil
        )
        beginRules()
        noteBeginning(beginning ?? Record.Beginning(client: remote, relay: relay, upstream: upstream))
        noteClearLegs()
    }

    // MARK: What is to be done

    /// The next thing to do; nil when there is nothing until something else happens.
    public mutating func next() -> Command? {
        switch advance() {
        case nil: nil
        case .record: .record(queue.records.takeFirst())
        case .send: .forward(.send)
        case .recv: .forward(.recv)
        case .other: queue.takeCommand()
        }
    }

    /// Goes on to what is to be done next: a record is then taken from ``records``, what is no record and forwards nothing by
    /// ``takeCommand()``.
    mutating func advance() -> CommandQueue.Kind? {
        while true {
            if !queue.isEmpty {
                let kind = queue.advance()
                // What is forwarded is what came, whatever a record may show of it.
                shownSource =
                    switch kind {
                    case .send: .send
                    case .recv: .recv
                    case .record, .other: contentSource
                    }
                return kind
            }
            contentSource = .none
            // Few items need it once the login is over; an idle session keeps little.
            if composed.capacity > 256 { composed = [] }
            dropIdleDecoders()
            if let rules, attend(to: rules) { continue }
            if step(leading) || step(leading.opposite) { continue }
            leading = .recv
            if tls?.awaitsConsent == true {
                beginTLSBehindConsent()
                continue
            }
            if let inheritance { take(inheritance) }
            if let injections { advance(injections) }
            tellReading()
            if queue.isEmpty { return nil }
        }
    }

    /// Says which leg may be read, where that has changed.
    @inline(__always)
    private mutating func tellReading() {
        let wanted = (client: wantsBytes(from: .client), server: wantsBytes(from: .server))
        guard wanted != isRead else { return }
        if wanted.client != isRead.client { tellReading(.client, wanted.client) }
        if wanted.server != isRead.server { tellReading(.server, wanted.server) }
        isRead = wanted
    }

    private mutating func tellReading(_ leg: Leg, _ isRead: Bool) {
        enqueue(.read(leg, isRead))
        if !isRead, isFull(leg) { counters.count(.limitHit(.waiting)) }
    }

    /// Calls `body` with ``content``: for a session that is part of an object, out of which no span may be handed.
    public func withContent<Outcome>(_ body: (Span<UInt8>) -> Outcome) -> Outcome { body(content) }

    /// Where the record is that is next.
    var records: WaitingRecords { queue.records }

    /// Takes the command that is next.
    mutating func takeCommand() -> Command { queue.takeCommand() }

    /// The bytes of the last command: what to forward, or the texts of a record.
    public var content: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            switch shownSource {
            case .none, .composed: composed.span
            case .send: directions.bytes(.send)
            case .recv: directions.bytes(.recv)
            }
        }
    }

    /// The decoder of a direction that has turned opaque goes when the commands that speak of its bytes are performed.
    private mutating func dropIdleDecoders() {
        directions.send.dropIdleDecoder()
        directions.recv.dropIdleDecoder()
    }

    /// Looks at one item of a direction; false when there is nothing to look at.
    private mutating func step(_ direction: Direction) -> Bool {
        guard directions[direction].hasInput, !negotiation.isFinished else { return false }
        if directions[direction].isWaiting && !passesWhileHeld(direction)
            || direction == .send && negotiation.isAwaitingServer
        {
            if direction == .send, refusesEarlyBytes() || goesOnResuming() { return true }
            // What waits goes on waiting, unless nobody is left to wait for it.
            guard directions[direction].isGone || isStalledForNobody(direction) else { return false }
            passEnd(direction)
            return !queue.isEmpty
        }
        var event = StreamEvent()
        guard !directions[direction].isOpaque, directions[direction].next(into: &event) else {
            directions[direction].hasInput = false
            if case .draining = directions[direction].mode { flushRest(direction) }
            if directions[direction].end != nil { passEnd(direction) }
            return directions[direction].hasInput || !queue.isEmpty
        }
        // What came of the other direction since then is no part of when this came.
        let last = now
        if directions[direction].isCutThrough, let arrival = directions[direction].arrival { now = arrival }
        handle(event, direction)
        now = last
        return true
    }

    /// Whether both peers have ended, and what a direction has still to pass never will.
    private func isStalledForNobody(_ direction: Direction) -> Bool {
        directions[direction].end != nil && directions[direction.opposite].hasPassedEnd
            && rules?[direction].isEndless == true
    }

    /// White space behind a request for TLS goes with it, though RFC 6120 §5.3.3 forbids it: go-sendxmpp ends the request
    /// with a line feed, and a server that got it after its consent would take it for TLS.
    private func passesWhileHeld(_ direction: Direction) -> Bool {
        guard direction == .send, negotiation.isStartingTLS, directions.send.waiting > 0, !directions.send.isDelayed
        else { return false }
        return [0x20, 0x09, 0x0A, 0x0D].contains(directions.pending(.send)[0])
    }

    /// Has the driver hand to the sinks what may be shown of a record.
    @inline(__always)
    mutating func enqueue(_ record: consuming Record) {
        queue.append(record, by: tools.redactor, at: options.redaction == .metadata ? info.domain : nil)
    }

    /// Has the driver do something that is neither for the sinks nor ``forward(_:)``.
    mutating func enqueue(_ command: consuming Command) { queue.append(command) }

    /// Has the driver write the item at hand to the leg on which a direction leaves.
    mutating func forward(_ direction: Direction) { queue.append(forwarding: direction) }
}
