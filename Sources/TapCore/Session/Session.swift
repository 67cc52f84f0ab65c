package import TapDiagnosis
package import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// One client's session through xmpptap: both directions, its state, and the pending commands.
///
/// Deterministic, without sockets, clocks, files or threads. The caller passes events to the mutating methods, with the
/// time of each event. It takes commands with ``next()`` until there are none, and performs them in order. The bytes of
/// a command are in ``content`` until the next call.
///
/// Until the session is open, each item is decided on and then forwarded whole (*store and forward*), so that no change
/// of protocol is missed. After that, bytes are forwarded on arrival and decoded afterwards (*cut-through*). Bytes are
/// forwarded verbatim, unless an item is edited. Undecodable bytes are forwarded too: the direction becomes *opaque*,
/// and a record gives the position and the reason.
///
/// The session defines the order in which its components are called; each component has the state of one subject.
package struct Session: ~Copyable {
    /// The state that components share.
    private var context: SessionContext
    private var authentication: Authentication
    private var streams = Streams()
    private var injector = Injector()
    private var resumption = Resumption()
    private var observers: Observers
    private var termination = TLSTermination()
    private var startTLS = StartTLS()
    private var backpressure = Backpressure()
    /// The facts of a recorded session (``SessionOptions/isRecorded``).
    private var recording: Recording?
    /// The direction to decode first: its bytes arrived first, and may have caused those of the other direction.
    private var leading = Direction.recv

    /// Creates a session for a client at `remote` that has just connected, through a proxy at `relay` if that proxy
    /// sent a PROXY header. `tools` belong to the session's event loop. `beginning` is the content of the first record;
    /// nil for a relayed session. `number` is the session's number; nil for the next number of the run.
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
        observers = Observers(at: now.monotonic)
        if let set = options.rules?.current { context.replaceRules(by: set, isResumable: false) }
        context.begin(beginning ?? Record.Beginning(client: remote, relay: relay, upstream: upstream))
    }

    // MARK: Commands

    /// Returns the next command; nil if there is none before the next event.
    package mutating func next() -> Command? {
        switch advance() {
        case nil: nil
        case .record: context.outlet.takeRecord().map { .record($0) }
        case .send: .forward(.send)
        case .recv: .forward(.recv)
        case .other: context.outlet.takeCommand()
        }
    }

    /// Advances to the next command; the caller then removes the record or takes the command.
    mutating func advance() -> CommandQueue.Kind? {
        while true {
            endIfFinished()
            if !context.outlet.isEmpty { return context.outlet.advance() }
            context.outlet.clearTexts()
            // A roster must be parsed while its stream is still decoded.
            if context.directions.recv.isOpaque { observers.readRoster(context) }
            context.dropIdleDecoders()
            if let rules = context.rules, releaseDueItems(of: rules) { continue }
            if step(leading) || step(leading.opposite) { continue }
            leading = .recv
            if termination.awaitsConsent {
                perform(termination.begin(&context))
                continue
            }
            if injector.isActive { injectNext() }
            backpressure.update(termination.negotiation, &context)
            if context.outlet.isEmpty { return nil }
        }
    }

    /// Calls `body` with the record that is next and its texts; does nothing if it was removed before.
    func withRecord(_ body: (borrowing RedactedRecord, Span<UInt8>) -> Void) {
        context.outlet.withRecord { body($0, content) }
    }

    /// Removes the record that is next.
    mutating func removeRecord() { context.outlet.removeRecord() }

    /// Removes and returns the command that is next; nil if it was taken before.
    mutating func takeCommand() -> Command? { context.outlet.takeCommand() }

    /// The bytes of the last command: the bytes to forward, or the texts of a record.
    package var content: Span<UInt8> {
        @_lifetime(borrow self) get { context.content }
    }

    /// Calls `body` with ``content``, for an owner of the session that cannot return a span.
    package func withContent<Outcome>(_ body: (Span<UInt8>) -> Outcome) -> Outcome { body(content) }

    /// Handles one item of a direction; returns false if there was nothing to do.
    private mutating func step(_ direction: Direction) -> Bool {
        guard context.directions[direction].hasInput, !context.negotiation.isFinished else { return false }
        if context.directions[direction].isWaiting && !context.passesWhileWaiting(direction)
            || direction == .send && context.negotiation.isAwaitingServer
        {
            if direction == .send, refuseEarlyBytes() || finishResumptionWait() { return true }
            // Keep holding items, unless both peers are gone.
            guard context.directions[direction].isGone || context.isStalledForGood(direction) else { return false }
            passEnd(direction)
            return !context.outlet.isEmpty
        }
        var event = StreamEvent()
        guard !context.directions[direction].isOpaque, context.directions[direction].next(into: &event) else {
            if context.handleSignal(direction) { return true }
            context.directions[direction].hasInput = false
            if case .draining = context.directions[direction].mode { context.flushRest(direction) }
            if context.directions[direction].end != nil { passEnd(direction) }
            return context.directions[direction].hasInput || !context.outlet.isEmpty
        }
        // Use the time at which the bytes of this direction arrived.
        let last = context.now
        if context.directions[direction].isCutThrough, let arrival = context.directions[direction].arrival {
            context.now = arrival
        }
        handle(event, direction)
        endIfFinished()
        context.now = last
        return true
    }
}

// MARK: - Inputs of the driver

extension Session {
    /// Handles received bytes, in which further TLS records begin at `records`; nil if they did not arrive in TLS.
    package mutating func receive(
        _ direction: Direction,
        _ bytes: Span<UInt8>,
        records: [Int]? = nil,
        at now: Run.Instant
    ) -> Disposition {
        context.now = now
        guard !bytes.isEmpty, !context.negotiation.isFinished else { return .keep }
        if termination.isNegotiating || context.directions[direction].received == 0 && !context.isOfMessages,
            let effects = termination.receive(direction, bytes, &context)
        {
            perform(effects)
            return .keep
        }
        if context.options.level >= .trace { context.recordChunk(direction, bytes) }
        observers.observe(.received, at: context.now.monotonic)
        let disposition = context.receive(direction, bytes, records: records)
        if context.isFirstToArrive(direction) { leading = direction }
        return disposition
    }

    /// Handles another input. The caller then takes the resulting commands with ``next()``.
    package mutating func handle(_ input: SessionInput, at now: Run.Instant) {
        endIfFinished()
        context.now = now
        switch input {
        case .computed(let step): resume(after: step)
        case .ended(let leg, let end, let failure):
            perform(termination.handle(failure.map { .ended(leg, $0) } ?? .stopped(nil), &context))
            context.ended(leg, end)
        case .joined(let inTLS): streams.join(inTLS: inTLS, &context)
        case .decrypts(let details, let consentFollows): decrypts(details, consentFollows)
        case .missed(let direction, let count, let isSkipped):
            discardIncompleteItem(direction)
            context.recordGap(direction, count, isSkipped)
        case .tls, .identityFound, .identityNotFound: perform(termination.handle(input, &context))
        case .inject(let injection): inject(injection)
        case .rules(let set): context.replaceRules(by: set, isResumable: resumption.isResumable)
        case .tick: tick()
        case .abort(let condition, let text, let code): abort(condition, text, code)
        case .closed: if !context.negotiation.isClosed { finishRecords() }
        default: context.handle(input)
        }
    }

    /// Handles the answer to ``Command/shared(_:)``, or the state of the earlier session that this one resumes.
    package mutating func handle(_ answer: SharedAnswer) {
        switch answer.kind {
        case .loop(let count, let span):
            observers.recordLoop(count, span, &context)
            recordEnd()
        case .noLoop: recordEnd()
        case .bindings, .mark, .claim: context.handle(answer)
        case .resumed(let earlier, let key): resumed(earlier, by: key)
        case .transferred(let legacy):
            observers.inherit(legacy.roster, context)
            resumption.inherit(legacy, &injector, &context)
            if !context.negotiation.isClosed { for injection in legacy.unsent { inject(injection) } }
        }
    }

    private mutating func abort(_ condition: StreamErrorCondition, _ text: String, _ code: String) {
        guard !context.negotiation.isFinished, !context.negotiation.isRefusing else { return }
        if termination.isNegotiating {
            let failure = TLSFailure(code: "tls-timeout", "\(Prose(text).clause)")
            return perform(termination.handle(.stopped(failure), &context))
        }
        context.abort(condition, text, code)
    }

    private mutating func decrypts(_ details: Attributes, _ consentFollows: Bool) {
        startTLS.decrypt(details, &context)
        streams.beginLogin(&context)
        guard !consentFollows else { return }
        context.finishStep(.tls, .ok, details: details)
        context.negotiation.enterTLS()
        for direction in Direction.allCases where context.directions[direction].received > 0 {
            discardIncompleteItem(direction)
            context.directions[direction].enterTLS()
        }
    }

    /// Discards the incomplete item of a direction.
    private mutating func discardIncompleteItem(_ direction: Direction) {
        guard !context.negotiation.isFinished, !context.directions[direction].isOpaque else { return }
        if let event = context.directions[direction].finish() { handle(event, direction) }
    }

    /// The time at which ``SessionInput/tick`` must be sent, in nanoseconds of the run; nil without a time limit. Each
    /// call may change it.
    package var nextDeadline: Int64? {
        let deadline = min(context.deadline(observers.lastReceived), injector.deadline ?? .max)
        return context.negotiation.isFinished || deadline == .max ? nil : deadline
    }

    private mutating func tick() {
        if let (limit, explanation) = context.overdue(observers.lastReceived) {
            context.counters.count(.limitHit(limit))
            abort(.connectionTimeout, explanation, "aborted")
        }
        if let deadline = context.answerDeadline, context.now.monotonic >= deadline { context.finish(reset: false) }
        // Unsent stanzas of rules are left to the next connection before they can expire.
        endIfFinished()
        if let ping = injector.tick(&context) { inject(ping) }
        context.streamManagement?.expire(at: context.now.monotonic)
    }
}

// MARK: - Items

extension Session {
    /// Handles one event of a decoder: decides on the item, forwards it, updates the state, and records it.
    ///
    /// - Parameter isRepeated: Whether the event was handled before, and its item has been held since.
    private mutating func handle(_ event: StreamEvent, _ direction: Direction, isRepeated: Bool = false) {
        switch event.kind {
        case .item(let kind):
            // In cut-through mode, stanzas are never altered.
            if kind == .element, event.head.kind != .nonza, context.directions[direction].isCutThrough {
                if let rules = context.rules {
                    rules.evaluateForRecord(event, direction, observers.facts(of: event, direction, context), context)
                }
                context.outlet.passedOnArrival(direction)
                observe(event, kind, direction)
                return endRuling(.pass, event, direction)
            }
            if context.login != nil, !isRepeated { context.observeLoginItem(event, kind, direction) }
            var reading = ItemReading.none
            let facts = observers.facts(of: event, direction, context)
            let decision = decide(event, direction, facts, &reading)
            if context.info.opened == nil, let ruling = context.rules?.ruling {
                context.observeAction(ruling, event, direction)
            }
            if context.rules?.delayOrHold(event, direction, decision, reading, facts, &context) == true { return }
            carryOut(decision, reading, event, kind, direction)
        case .fragment(let isFirst): context.handleFragment(event, direction, isFirst: isFirst)
        case .fault(let fault): context.handleFault(fault, event, direction)
        case .incomplete: context.recordTorn(event, direction)
        }
    }

    /// Decides on an item.
    private mutating func decide(
        _ event: StreamEvent,
        _ direction: Direction,
        _ facts: RuleFacts,
        _ reading: inout ItemReading
    ) -> ItemDecision {
        // Only whole items can be held or changed, and nothing is inserted into a session that is refused.
        let mayAct = context.directions[direction].isStoring && !context.negotiation.isRefusing
        if mayAct, let decision = context.rules?.interceptLogin(event, direction, facts, context) { return decision }
        let decision = intercept(event, direction, mayAct: mayAct, &reading) ?? .pass
        if case .refuse = decision { return decision }
        guard let rules = context.rules, !context.negotiation.isRefusing else { return mayAct ? decision : .pass }
        // Replies to xmpptap's own requests are not passed to rules.
        if reading.isInjected { return decision }
        // The last interceptor: rules are evaluated for items that the earlier interceptors let pass.
        if mayAct { return rules.intercept(event, direction, decision, facts, context) }
        rules.evaluateForRecord(event, direction, facts, context)
        return .pass
    }

    /// Calls the interceptors in order; returns the first decision.
    private mutating func intercept(
        _ event: StreamEvent,
        _ direction: Direction,
        mayAct: Bool,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        // Separate statements, because the compiler does not accept a longer chain of `??`.
        if let decision = context.interceptOversize(event, direction) { return decision }
        if let decision = context.interceptUnqualified(event, direction) { return decision }
        if let decision = context.interceptOtherDomain(event, direction) { return decision }
        if let decision = TLSPolicy.interceptClear(event, direction, context) { return decision }
        if mayAct, let asymmetric = context.negotiation.asymmetric {
            if let decision = asymmetric.intercept(event, direction, &reading, &context) { return decision }
        }
        if let decision = context.interceptFeatures(event, direction, &reading) { return decision }
        let translated = context.interceptStreamManagement(event, direction, &reading, authentication.decoder)
        if case .buffer = translated { return translated }
        if mayAct, let bridged = context.negotiation.bridged {
            let client = authentication.decoder
            let decision = bridged.intercept(event, direction, translated, client, &reading, &context)
            if let decision { return decision }
        }
        if let translated { return translated }
        if mayAct, let decision = injector.intercept(event, direction, &reading, context) { return decision }
        if let decision = context.interceptConsent(event, direction) { return decision }
        if let decision = BridgedLogin.interceptWhitespace(event, direction, context) { return decision }
        return nil
    }

    /// Performs a decision on an item, and updates the state.
    private mutating func carryOut(
        _ decision: ItemDecision,
        _ reading: ItemReading,
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ direction: Direction
    ) {
        if let rules = context.rules, let ruling = rules.ruling, ruling.shapes {
            rules.shape(direction, for: ruling, &context)
        }
        apply(decision, to: event, direction)
        if let action = context.action, event.item == .element, event.head.kind != .nonza, !reading.isInjected {
            context.counters.count(.acted(action, event.head.kind, direction))
        }
        switch decision {
        // The item is decided on again after its wait, but rules must not be evaluated twice.
        case .buffer(until: .counts): context.rules?.keepRuling()
        case .refuse, .fault: break
        default: handle(reading, event, kind, direction)
        }
        endRuling(decision, event, direction)
        context.forgetEarlierRules()
        context.action = nil
        context.edited = nil
        context.requestAcknowledgement(direction)
    }

    /// Updates the state with the facts that an interceptor has found in an item.
    private mutating func handle(
        _ reading: ItemReading,
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        _ direction: Direction
    ) {
        switch reading {
        case .none: observe(event, kind, direction)
        case .asymmetricTLS(let offer):
            perform(context.negotiation.asymmetric?.advance(event, kind, direction, offer, &context) ?? [])
        case .features(let offer): perform(context.handleFeatures(event, offer))
        case .login(let element, let actions, let wasLoggingIn, let translation):
            context.rules?.recordHits(event, direction, &context)
            handleBridged(event, direction, element, actions, wasLoggingIn: wasLoggingIn)
            if let translation { handle(translation, direction) }
        case .injected(let request): injector.handleAnswer(event, direction, request, &context)
        case .streamManagement(let translation):
            observe(event, kind, direction)
            handle(translation, direction)
        }
    }

    /// Carries out a decision, and follows its effects on TLS and stream management.
    private mutating func apply(_ decision: ItemDecision, to event: StreamEvent, _ direction: Direction) {
        context.apply(decision, to: event, direction)
        if case .buffer(until: .serverTLS) = decision { termination.awaitConsent(context.options) }
        resumption.followDivergence(&context)
    }

    private mutating func refuseEarlyBytes() -> Bool {
        guard let effects = termination.refuseEarlyBytes(&context) else { return false }
        perform(effects)
        return true
    }

    /// Forwards the end of a leg after its last item.
    private mutating func passEnd(_ direction: Direction) {
        guard let end = context.directions[direction].end, !context.directions[direction].hasPassedEnd else { return }
        context.directions[direction].hasPassedEnd = true
        if !context.directions[direction].isOpaque, !context.directions[direction].isWaiting {
            if let event = context.directions[direction].finish() { handle(event, direction) }
            if !context.directions[direction].isOpaque { context.flushRest(direction) }
        }
        context.setCloseReason(direction, end, observers.unansweredRequest(by: direction, context))
        context.pass(end, direction)
    }

    // MARK: Contents of items

    /// Records an ordinary item, and updates the state from its contents.
    private mutating func observe(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind, _ direction: Direction) {
        observers.checkForm(event, direction, &context)
        switch kind {
        case .declaration: context.handleDeclaration(event, direction)
        case .whitespace: context.recordItem(event, direction, .whitespace, level: .verbose)
        case .header: streams.handleHeader(event, direction, &context)
        case .element where event.head.kind == .nonza: handleElement(event, direction)
        case .element: handleStanza(event, direction)
        case .end: context.handleStreamEnd(event, direction)
        }
    }

    private mutating func handleStanza(_ event: StreamEvent, _ direction: Direction) {
        context.info.count(event.head.kind, direction)
        if direction == .send { injector.pings.clientSent(at: context.now.monotonic) }
        if resumption.lacksResource, direction == .recv { resumption.observeResource(event, &context) }
        let type = StanzaType(event.head, context.directions.bytes(direction))
        if type == .request {
            var record = context.makeRecord(event, direction, .stanza, level: .info)
            let purpose = authentication.purpose(of: event, direction, &record, &context)
            return observers.observeRequest(event, direction, purpose, consume record, &context)
        }
        perform(observers.observe(event, type, direction, &context))
        observers.observeContent(event, type, direction, &context)
    }

    private mutating func handleElement(_ event: StreamEvent, _ direction: Direction) {
        guard !event.isTruncated else { return context.handleTruncated(event, direction) }
        switch event.head.namespace.namespace {
        case .streams:
            let unheard = observers.unansweredRequest(by: direction, context)
            authentication.handleStreamError(event, direction, unheard, &context)
        case .tls: perform(startTLS.handle(event, direction, &context))
        case .sasl, .sasl2, .sasl2Legacy: perform(authentication.handle(event, direction, &context))
        case .compression: context.handleCompression(event, direction)
        case .streamManagement, .streamManagement2: handleStreamManagement(event, direction)
        case .dialback: perform(context.handleDialback(event, direction))
        case .componentAccept where context.isNamed("handshake", event, direction),
            .componentConnect where context.isNamed("handshake", event, direction):
            perform(authentication.handleHandshake(event, direction, &context))
        case .bidirectional:
            observers.observeBidirectional(event, direction, &context)
        case .clientState where direction == .send:
            injector.pings.setInactive(context.isNamed("inactive", event, .send), at: context.now.monotonic)
            context.recordItem(event, direction, .element, level: .info)
        default: context.recordItem(event, direction, .element, level: .info)
        }
    }

    private mutating func handleStreamManagement(_ event: StreamEvent, _ direction: Direction) {
        context.recordStreamManagement(event, direction)
        let isRequest = context.isNamed("r", event, direction)
        guard isRequest || context.isNamed("a", event, direction) else {
            return perform(context.handleStreamManagement(event, direction))
        }
        observers.observe(isRequest ? .asked(direction) : .acknowledged(direction), at: context.now.monotonic)
        if !isRequest, direction == .send { injector.pings.acknowledged(at: context.now.monotonic) }
    }
}

// MARK: - Effects of components

extension Session {
    /// Performs effects in order.
    private mutating func perform(_ effects: [SessionEffect]) {
        for effect in effects {
            switch effect {
            case .open(let summary, let earlier): open(summary, resumes: earlier)
            case .enabled(let element):
                resumption.enable(element, observers.client, &context)
                resumption.observeLocation(element, &context)
            case .resumed(let element, let identifier):
                if !resumption.ask(element, identifier, observers.client, &context) { resumed(nil, by: nil) }
            case .software(let name): observers.observeSoftware(name, &context)
            case .answerLogin(let bytes): perform(authentication.answer(bytes, &context))
            case .relayLogin(let bytes): authentication.relay(bytes, &context)
            case .authenticated(let element): perform(context.authenticate(element))
            case .refusedLogin(let element): authentication.fail(element, &context)
            }
        }
    }

    /// Opens the session: stanzas are forwarded in cut-through mode, within the limits of an authenticated session.
    private mutating func open(_ summary: String, resumes earlier: UInt64?) {
        guard context.negotiation.open() else { return }
        observers.open(context)
        injector.pings.begin(context)
        context.open(summary, resumes: earlier)
    }

    // MARK: TLS

    /// Carries out effects of TLS in order.
    private mutating func perform(_ effects: [TLSEffect]) {
        for effect in effects {
            switch effect {
            case .awaitConsent: termination.awaitConsent(context.options)
            case .openInside: perform(context.negotiation.asymmetric?.openInside() ?? [])
            case .handle(let event, let direction, let offer):
                perform(streams.handleHidden(event, direction, offer, &context))
            case .receive(let bytes, let direction):
                if receive(direction, bytes.span, at: context.now) == .relay { context.outlet.pass(bytes, direction) }
            default: context.perform(effect)
            }
        }
    }

    // MARK: Logins that xmpptap performs itself

    /// Handles an element of a login that xmpptap performs, and performs the resulting actions.
    private mutating func handleBridged(
        _ event: StreamEvent,
        _ direction: Direction,
        _ element: Element,
        _ actions: [SASLBridge.Action],
        wasLoggingIn: Bool
    ) {
        guard !actions.contains(.passOn) else {
            for case .remark(let remark) in actions { context.record(remark) }
            return observe(event, .element, direction)
        }
        let bridged = context.negotiation.bridged
        if direction == .send {
            bridged?.answers(event)
            perform(authentication.handle(event, .send, parsed: element, &context))
        } else {
            bridged?.recordOwn(event, element, actions, &context)
        }
        for act in actions { perform(bridged?.perform(act, element.namespaceURI, element, &context) ?? []) }
        BridgedLogin.holdClient(wasLoggingIn: wasLoggingIn, &context)
    }

    /// Continues with a step that another thread has computed.
    private mutating func resume(after step: SlowStep) {
        guard let bridged = context.negotiation.bridged, let (actions, uri) = bridged.handle(step, &context) else {
            return
        }
        for act in actions { perform(bridged.perform(act, uri, nil, &context)) }
        BridgedLogin.holdClient(wasLoggingIn: false, &context)
    }
}

// MARK: - Rules and injection

extension Session {
    /// Finishes the rules' actions on the current item, after this decision.
    private mutating func endRuling(_ decision: ItemDecision, _ event: StreamEvent, _ direction: Direction) {
        guard let rules = context.rules else { return }
        let effects = rules.effects(decision, event, direction, observers.facts(context), &context)
        injector.perform(effects, isResumable: mayResume, &context)
        rules.endRuling(event, direction, &context)
    }

    /// Whether stanzas that are not sent on this connection are kept for the session that resumes this one. A finished
    /// session has stored them already.
    private var mayResume: Bool { resumption.isResumable && !context.negotiation.isFinished }

    /// Injects a stanza as soon as its direction is at an item boundary.
    private mutating func inject(_ injection: Injection) {
        injector.inject(injection, isResumable: mayResume, &context)
    }

    /// Sends the first waiting stanza. Called after all received input was handled.
    private mutating func injectNext() {
        for direction in Direction.allCases {
            if let item = injector.advance(direction, isResumable: mayResume, &context) { return send(item, direction) }
        }
        injector.removeFinished(context)
    }

    private mutating func send(_ item: InjectedItem, _ direction: Direction) {
        context.outlet.inject(item, direction)
        resumption.followDivergence(&context)
        if let rules = context.rules, let event = item.event {
            rules.judge(item, event, direction, observers.facts(context), context)
        }
        let record = injector.record(item, direction, &observers.requests, &context)
        if let event = item.event { context.rules?.endRuling(event, of: item, record, &context) }
        injector.finish(item, direction, &context)
    }

    /// Releases an item whose delay by a rule has ended; returns false if there is none. Called before the next item.
    private mutating func releaseDueItems(of rules: SessionRules) -> Bool {
        guard rules.isBusy, !context.negotiation.isFinished else { return false }
        for direction in Direction.allCases {
            if let item = rules.nextInjected(direction, &injector, context) {
                send(item, direction)
                return true
            }
            if rules.isDue(direction, at: context.now.monotonic) {
                releaseDelayedItem(direction, rules)
                return true
            }
        }
        rules.updateIsBusy()
        return false
    }

    /// Ends the delay of an item: performs the decision on it, then continues with later items.
    private mutating func releaseDelayedItem(_ direction: Direction, _ rules: SessionRules) {
        guard let item = context.takeDelayed(direction, rules) else { return }
        carryOut(item.decision, item.reading, item.event, .element, direction)
        if let why = item.reason { context.stopDecoding(direction, why) } else { context.updateRelayMode(direction) }
    }
}

// MARK: - Resumption and the end

extension Session {
    /// Handles the answer to the request for the earlier session that this one resumes.
    private mutating func resumed(_ earlier: ResumptionTable.Suspended?, by key: ResumptionTable.Key?) {
        if let earlier { observers.resume(earlier) }
        open(resumption.resume(earlier, by: key, &injector, &context), resumes: earlier?.session)
        for injection in context.takeLost() + (earlier?.legacy?.unsent ?? []) { inject(injection) }
        context.forgetEarlierRules()
    }

    /// Handles the client's request to resume again, after it has waited; returns false if no request waits.
    private mutating func finishResumptionWait() -> Bool {
        guard let waiting = context.streamManagement?.takeWaiting() else { return false }
        context.release(.send)
        context.rules?.restoreRuling()
        handle(waiting.event, .send, isRepeated: true)
        context.streamManagement?.forgetAnswers()
        context.resume(after: waiting)
        return true
    }

    /// Handles the translation of a stream management element, after the element was recorded.
    private mutating func handle(_ translation: StreamManagementTranslator.Translation, _ direction: Direction) {
        context.handle(translation, direction)
        if direction == .recv { for injection in context.takeLost() { inject(injection) } }
    }

    /// Removes and returns the request by which the ended session stores its state for another session; nil if there is
    /// none. Call it after each input, before taking other commands.
    package mutating func takeEnding() -> SharedRequest? {
        endIfFinished()
        return context.takeEnding()
    }

    /// Ends the components of a finished session, so that a session that resumes it need not wait for its connections
    /// to close.
    private mutating func endIfFinished() {
        guard context.negotiation.isFinished else { return }
        termination.end()
        guard resumption.isResumable else { return }
        let isClosed = if case .clean? = context.info.ending { true } else { false }
        let requests = isClosed ? nil : injector.keepUnsent(context)
        resumption.end(observers.contactsToLeave(isClosed: isClosed, context), requests, isClosed: isClosed, &context)
    }

    /// Records the final notes about the session.
    private mutating func finishRecords() {
        if context.outlet.isEmpty { context.outlet.clearTexts() }
        observers.close(&context)
        context.close(isPartial: isPartial)
        if !observers.askAboutLoop(&context) { recordEnd() }
    }

    private mutating func recordEnd() {
        endIfFinished()
        context.recordEnd(as: recording?.ending)
    }
}

// MARK: - A session that is read from a recording: see ``RecordedSession``

extension Session {
    /// Whether the items of the recording alone do not show the outcome of the login.
    var isPartial: Bool { recording?.isPartial == true }

    /// Handles the next item of the recording. The byte counts use the length that the item had on the wire.
    mutating func receive(_ line: RecordLine, at now: Run.Instant) {
        let record = line.record
        guard let recording, let direction = record.direction, let xml = record.xml else { return }
        recording.observe(record)
        authentication.apply(record.sasl)
        _ = receive(direction, line.content.span.slice(xml), at: now)
        context.info.count(bytes: (record.origin == .tap ? 0 : record.length) &- UInt64(xml.count), direction)
    }

    /// Applies a record that the session cannot create from the items.
    mutating func apply(_ line: RecordLine) { recording?.apply(line, &context) }

    /// Ends the login with the recorded diagnosis; returns false if there is none, or its cause is unknown.
    mutating func apply(_ diagnosis: LoginDiagnosis?) -> Bool { recording?.apply(diagnosis, &context) == true }

    /// Ends the session as its last record reports.
    mutating func closed(as record: Record, at now: Run.Instant) {
        context.now = now
        let shown = context.info.ending
        if let (direction, end) = recording?.applyEnd(record, &context) {
            context.setCloseReason(direction, end, observers.unansweredRequest(by: direction, context))
        }
        recording?.applyEnd(record, shown: shown, &context)
        handle(.closed, at: context.now)
    }
}

// MARK: - Facts for the driver

extension Session {
    /// The number of the session within the run.
    package var number: UInt64 { context.number }
    /// The facts known so far.
    package var info: SessionInfo { context.info }
    /// The counters of events other than stanzas and bytes.
    package var counters: SessionCounters { context.counters }
    /// The progress of the login.
    package var timeline: LoginTimeline { context.timeline }
    /// The run that the session belongs to.
    var run: Run { context.run }
    /// The client's address, `HOST:PORT`.
    var remote: String? { context.remote }
    /// The current relay mode.
    package var relayMode: RelayMode { RelayMode(context) }
    /// The pending TLS negotiation of the legs; nil before and after it.
    package var tls: TLSNegotiation? { termination.negotiation }
    /// The difference between the stanza counts of the two ends, summed over both directions.
    package var divergence: UInt64 { context.streamManagement?.divergence ?? 0 }

    /// Whether the login is over, or cannot be decoded: see ``SessionContext/isPastLogin``.
    package var isPastLogin: Bool { context.isPastLogin }

    /// Returns the id of an injected stanza, which no peer uses; `number` is the number of the injection.
    package func injectedID(_ number: UInt64) -> String { "\(context.run.idPrefix)-\(self.number)-i\(number)" }

    /// The items that are held for the user, oldest first: at most one in each direction, because later items wait.
    package var heldItems: [HeldItem] { context.rules?.heldItems ?? [] }
    /// The pause with stanzas left to hold; nil if there is none.
    package var pause: StanzaPause.Pending? { context.rules?.pause?.shown }

    /// The time of the run in nanoseconds at which ``SessionInput/tick`` releases an item; nil if none is delayed.
    package var releaseDeadline: Int64? { context.rules?.deadline }

    /// Returns why stanzas of a direction cannot be held; nil if they can.
    package func obstacle(toPausing direction: Direction?) -> InjectionFault? { context.obstacle(toPausing: direction) }

    /// Returns why an item cannot be injected; nil if it can.
    package func fault(in injection: Injection) -> InjectionFault? { context.fault(in: injection) }

    /// Returns why a held item cannot be released in this way, as a clause; nil if it can, or if the number is unknown.
    package func problem(with release: HeldRelease, of number: UInt64) -> String? {
        context.rules?.problem(with: release, of: number, context)
    }

    /// Returns the current state of the session.
    package func snapshot(at now: Run.Instant) -> SessionSnapshot {
        let pending = observers.requests.count
        return SessionSnapshot(context, resumption.allCounts(info), pending: pending, injected: injector.sent, at: now)
    }

    /// Returns the known contacts in the account's roster: at most `limit`.
    package func contacts(limit: Int) -> [(contact: String, state: SubscriptionState)] {
        observers.contacts(limit: limit, context)
    }

    /// Returns the unanswered iq requests, oldest first: at most `limit` of each direction.
    package func pendingRequests(limit: Int, at now: Run.Instant) -> [PendingRequest] {
        observers.requests.pending(limit: limit, now.monotonic, context.tools.redactor)
    }

    /// Whether injected stanzas wait, or answers to them are expected.
    var isInjecting: Bool { injector.isActive }
    /// Whether the last whole roster has not been parsed yet.
    var hasUnreadRoster: Bool { observers.hasUnreadRoster }

    /// The state that components share. Only tests use it: components get the state as an argument.
    var sharedState: SessionContext {
        _read { yield context }
        _modify { yield &context }
    }
}
