package import TapRecord
import TapRules
import XMPPCore

/// One client's session through the tap: both directions, its state, and the pending commands.
///
/// Deterministic, without sockets, clocks, files or threads. Events are passed to the mutating methods with the time at
/// which they happened; commands are taken with ``next()`` until there are none, and performed in order. The bytes of a
/// command are in ``content`` until the next call.
///
/// Until the session is open, each item is forwarded whole, after it was decided on (*store and forward*), so that no
/// change of protocol is missed; from then on, bytes are forwarded on arrival (*cut-through*) and decoded afterwards.
/// Bytes are always forwarded verbatim. Undecodable bytes are forwarded too: the direction turns *opaque*, and a record
/// gives the position and the reason.
package struct Session: ~Copyable {
    /// The state that components share.
    var context: SessionContext
    var authentication: Authentication
    var streams = Streams()
    var injector = Injector()
    var resumption = Resumption()
    /// The facts of a recorded session (``SessionOptions/isRecorded``).
    var recording: Recording?

    // The observers. Each receives events and changes only its own state; an extension records its findings. ``info``
    // has the counts.

    var requests = IQTracker()
    var roster = RosterObserver()
    var software = SoftwareObserver()
    var reconnects = ReconnectObserver()
    var liveness: Liveness
    var differential = ParserDifferential()

    var termination = TLSTermination()
    var startTLS = StartTLS()

    /// The direction to decode first: the one whose bytes arrived first, since they may have caused the others.
    var leading = Direction.recv
    /// Whether the legs may be read, as last reported to the driver.
    private var isRead = (client: true, server: true)

    /// Creates a session that a client at `remote` has just begun, through a proxy at `relay` if that sent a PROXY
    /// header; `tools` belong to the session's event loop. `beginning` is the content of its first record, if it is not
    /// relayed. `number` is that of an already numbered session; nil for the run's next.
    package init(
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
        context = SessionContext(
            run: run,
            options: options,
            tools: tools,
            remote: remote,
            number: number ?? run.nextSession(),
            at: now
        )
        authentication = Authentication(options)
        recording = options.isRecorded ? Recording() : nil
        liveness = Liveness(at: now.monotonic)
        if let set = options.rules?.current { replaceRules(by: set) }
        context.recordBeginning(beginning ?? Record.Beginning(client: remote, relay: relay, upstream: upstream))
        TLSPolicy.noteClearLegs(&context)
    }

    // MARK: Commands

    /// Returns the next command; nil if there is none until the next event.
    package mutating func next() -> Command? {
        switch advance() {
        case nil: nil
        case .record: .record(context.outlet.records.takeFirst())
        case .send: .forward(.send)
        case .recv: .forward(.recv)
        case .other: context.outlet.takeCommand()
        }
    }

    /// Advances to the next command: take a record from ``records``, other commands with ``takeCommand()``.
    mutating func advance() -> CommandQueue.Kind? {
        while true {
            leaveIfFinished()
            if !context.outlet.isEmpty { return context.outlet.advance() }
            context.outlet.showNothing()
            dropIdleDecoders()
            if let rules = context.rules, attend(to: rules) { continue }
            if step(leading) || step(leading.opposite) { continue }
            leading = .recv
            if termination.awaitsConsent {
                perform(termination.begin(&context))
                continue
            }
            if injector.isActive { injectNext() }
            tellReading()
            if context.outlet.isEmpty { return nil }
        }
    }

    /// Reports which leg may be read, if that has changed.
    @inline(__always)
    private mutating func tellReading() {
        let wanted = (client: wantsBytes(from: .client), server: wantsBytes(from: .server))
        guard wanted != isRead else { return }
        if wanted.client != isRead.client { tellReading(.client, wanted.client) }
        if wanted.server != isRead.server { tellReading(.server, wanted.server) }
        isRead = wanted
    }

    private mutating func tellReading(_ leg: Leg, _ isRead: Bool) {
        context.outlet.request(.read(leg, isRead))
        if !isRead, isFull(leg) { context.counters.count(.limitHit(.waiting)) }
    }

    /// The id of a stanza to inject, which peers do not use: `number` is that of the injection.
    package func injectedID(_ number: UInt64) -> String { "\(context.run.idPrefix)-\(self.number)-i\(number)" }

    /// Calls `body` with ``content``: for an object that contains the session and cannot return a span.
    package func withContent<Outcome>(_ body: (Span<UInt8>) -> Outcome) -> Outcome { body(content) }

    /// Removes and returns the request by which the ended session leaves its state to another one; nil if there is none.
    /// Take it after each input, before other commands.
    package mutating func takeEnding() -> SharedRequest? {
        leaveIfFinished()
        return context.takeEnding()
    }

    /// Ends the components of a session that has ended: the session that resumes it need not wait for its connections.
    mutating func leaveIfFinished() {
        guard context.negotiation.isFinished else { return }
        termination.end()
        guard resumption.isResumable else { return }
        let isClosed = if case .clean? = context.info.ending { true } else { false }
        if !isClosed { for direction in Direction.allCases { injector.keepUnsent(direction, context) } }
        resumption.end(&roster, isClosed: isClosed, &context)
    }

    /// The pending records.
    var records: WaitingRecords { context.outlet.records }

    /// Removes and returns the next command.
    mutating func takeCommand() -> Command { context.outlet.takeCommand() }

    /// The bytes of the last command: those to forward, or the texts of a record.
    package var content: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            switch context.outlet.shown {
            case .none, .composed: context.outlet.composed.span
            case .send: context.directions.bytes(.send)
            case .recv: context.directions.bytes(.recv)
            }
        }
    }

    /// Frees the decoder of an opaque direction after the commands that use its bytes.
    private mutating func dropIdleDecoders() {
        // A roster is read in its stream.
        if context.directions.recv.isOpaque { roster.read(context) }
        context.directions.send.dropIdleDecoder()
        context.directions.recv.dropIdleDecoder()
    }

    /// Handles one item of a direction; returns false if there is none.
    private mutating func step(_ direction: Direction) -> Bool {
        guard context.directions[direction].hasInput, !context.negotiation.isFinished else { return false }
        if context.directions[direction].isWaiting && !passesWhileHeld(direction)
            || direction == .send && context.negotiation.isAwaitingServer
        {
            if direction == .send,
                performs(termination.refuseEarlyBytes(&context)) || goesOnResuming()
            {
                return true
            }
            // Keep holding items, unless both peers are gone.
            guard context.directions[direction].isGone || isStalledForNobody(direction) else { return false }
            passEnd(direction)
            return !context.outlet.isEmpty
        }
        var event = StreamEvent()
        guard !context.directions[direction].isOpaque, context.directions[direction].next(into: &event) else {
            context.directions[direction].hasInput = false
            if case .draining = context.directions[direction].mode { context.flushRest(direction) }
            if context.directions[direction].end != nil { passEnd(direction) }
            return context.directions[direction].hasInput || !context.outlet.isEmpty
        }
        // Use the arrival time of this direction.
        let last = context.now
        if context.directions[direction].isCutThrough, let arrival = context.directions[direction].arrival {
            context.now = arrival
        }
        handle(event, direction)
        leaveIfFinished()
        context.now = last
        return true
    }

    /// Whether both peers have ended, so that the remaining items of a direction will never be forwarded.
    private func isStalledForNobody(_ direction: Direction) -> Bool {
        context.directions[direction].end != nil && context.directions[direction.opposite].hasPassedEnd
            && context.rules?[direction].isEndless == true
    }

    /// White space after a request for TLS is forwarded with it, though RFC 6120 §5.3.3 forbids it: go-sendxmpp ends
    /// the request with a line feed, and a server that received it after its consent would take it for TLS.
    private func passesWhileHeld(_ direction: Direction) -> Bool {
        guard direction == .send, context.negotiation.isStartingTLS, context.directions.send.waiting > 0,
            !context.directions.send.isDelayed
        else { return false }
        return [0x20, 0x09, 0x0A, 0x0D].contains(context.directions.pending(.send)[0])
    }
}
