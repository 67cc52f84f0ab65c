internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

/// The observers of a session: its unanswered requests, its contacts, the software of its client, repeated drops, silence,
/// and items that parsers read differently.
///
/// They receive the events in the session's order, record their findings, and change nothing but their own state.
struct Observers {
    /// The unanswered requests. An injected request is added when it is sent.
    var requests = IQTracker()
    private var roster = RosterObserver()
    private var software = SoftwareObserver()
    private var reconnects = ReconnectObserver()
    private var liveness: Liveness
    private var differential = ParserDifferential()

    init(at monotonic: Int64) { liveness = Liveness(at: monotonic) }

    // MARK: Stanzas

    /// Records a request and waits for its answer.
    @inline(__always)
    mutating func observeRequest(
        _ event: StreamEvent,
        _ direction: Direction,
        _ purpose: IQTracker.Purpose,
        _ record: consuming Record,
        _ context: inout SessionContext
    ) {
        if requests.observeRequest(event, direction, purpose, record, &context) {
            roster.observe(event, direction, isPush: true, &context)
        }
        if direction == .send { software.observe(event, isResult: false, &context) }
    }

    /// Records a stanza that is not a request; returns the effects of an answer on the login.
    @inline(__always)
    mutating func observe(
        _ event: StreamEvent,
        _ type: StanzaType,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        var effects: [SessionEffect] = []
        switch type {
        case .error where !event.isTruncated:
            if let (request, failure) = requests.observeError(event, direction, &context) {
                context.handle(failure, request.purpose, direction)
            }
        case .result:
            if let request = requests.observeResult(event, direction, &context) {
                effects = context.handleResult(request.purpose, direction)
            }
        case .request, .error, .other:
            context.recordItem(event, direction, .stanza, level: .info)
            if event.head.kind == .presence, event.head.type != nil {
                roster.observePresence(event, direction, &context)
            }
        }
        return effects
    }

    /// Observes a stanza after its effects: the answer to a query for the roster, or for the client's software.
    mutating func observeContent(
        _ event: StreamEvent,
        _ type: StanzaType,
        _ direction: Direction,
        _ context: inout SessionContext
    ) {
        if type == .result { roster.observe(event, direction, isPush: false, &context) }
        if direction == .send { software.observe(event, isResult: type == .result, &context) }
    }

    // MARK: Other items

    /// Compares the parsers' readings of an item with unusual syntax.
    mutating func compareReaders(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        if event.head.isUnusual { differential.compareReaders(event, direction, &context) }
    }

    /// Stanzas of both servers follow on the stream (XEP-0288).
    mutating func observeBidirectional(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        if direction == .send {
            requests.observeBidirectional()
            context.directions.recv.receiverBytes = context.parse(.send).flatMap(StreamFeatures.itemBytes) ?? .max
        }
        context.recordItem(event, direction, .element, level: .info)
    }

    /// The client's login names its software.
    mutating func observeSoftware(_ name: String?, _ context: inout SessionContext) { software.observe(name, &context) }

    /// Observes the arrival of bytes, or a request for an acknowledgement and its answer.
    @inline(__always)
    mutating func observe(_ event: Liveness.Event, at monotonic: Int64) { liveness.observe(event, at: monotonic) }

    /// When bytes arrived last, in nanoseconds of the run.
    var lastReceived: Int64 { liveness.lastReceived }

    /// The unanswered request of a direction's sender, or the silence; nil if there is none.
    func unansweredRequest(by direction: Direction, _ context: borrowing SessionContext) -> Liveness.Finding? {
        liveness.unansweredRequest(
            by: direction,
            ping: requests.oldestPing(direction),
            isOpen: context.info.opened != nil,
            at: context.now.monotonic
        )
    }

    // MARK: Facts

    /// The facts that rules ask for about an injected item, which answers no request.
    func facts(_ context: borrowing SessionContext) -> RuleFacts {
        guard let rules = context.rules else { return RuleFacts() }
        return RuleFacts(roster: rules.needs.roster ? roster.current : nil)
    }

    /// The facts that rules ask for about an item of a peer.
    func facts(of event: StreamEvent, _ direction: Direction, _ context: borrowing SessionContext) -> RuleFacts {
        guard let rules = context.rules else { return RuleFacts() }
        let needs = rules.needs
        return RuleFacts(
            roster: needs.roster ? roster.current : nil,
            roundTrip: needs.roundTrip ? requests.roundTrip(event, direction, context) : nil
        )
    }

    /// The known contacts, redacted: at most `limit`.
    func contacts(
        limit: Int,
        _ context: borrowing SessionContext
    ) -> [(contact: String, state: SubscriptionState)] {
        let redactor = context.tools.redactor
        return roster.known(context).contacts.prefix(limit).map { (redactor.disclose(address: $0.key), $0.value.state) }
    }

    /// Whether a roster was deferred.
    var hasUnreadRoster: Bool { roster.hasUnread }

    /// Reads a deferred roster while its stream is still decoded.
    mutating func readRoster(_ context: borrowing SessionContext) { roster.read(context) }

    // MARK: The session

    /// Identifies the client of a session that opens.
    mutating func open(_ context: borrowing SessionContext) { reconnects.identify(context.login, context) }

    /// The key of the client for the detection of repeated drops; nil before the login.
    var client: ReconnectWatch.Key? { reconnects.client }

    /// The session continues an earlier one.
    mutating func resume(_ earlier: ResumptionTable.Suspended) {
        reconnects.resume(earlier.client)
        if let legacy = earlier.legacy { roster.replace(by: legacy.roster) }
    }

    /// The session that this one continues has ended, and leaves its contacts.
    mutating func inherit(_ earlier: Roster, _ context: borrowing SessionContext) { roster.inherit(earlier, context) }

    /// The contacts that an ended session leaves. A deferred roster is read only if another session may continue this
    /// one: reading it costs more than it is worth to a session whose stream was closed.
    mutating func contactsToLeave(isClosed: Bool, _ context: borrowing SessionContext) -> Roster {
        isClosed ? roster.current : roster.read(context)
    }

    /// The session has ended: counts the unanswered requests.
    func close(_ context: inout SessionContext) { context.info.unanswered = requests.count + requests.forgotten }

    /// Asks whether the end belongs to a loop of reconnects; returns false if there is nothing to ask.
    func askAboutLoop(_ context: inout SessionContext) -> Bool { reconnects.askAboutLoop(&context) }

    /// Records a loop of reconnects.
    func recordLoop(_ count: Int, _ span: Int64, _ context: inout SessionContext) {
        reconnects.recordLoop(count, span, &context)
    }
}

/// How a stanza takes part in a request and its answer (RFC 6120 §8.2.3, §8.3).
enum StanzaType {
    /// An iq of type get or set.
    case request
    /// An iq of type result.
    case result
    /// A stanza of type error.
    case error
    case other

    init(_ head: StanzaHead, _ item: Span<UInt8>) {
        self = .other
        guard let range = head.type?.range else { return }
        let type = item.slice(range)
        if type.equals("error") {
            self = .error
        } else if head.kind == .iq {
            if type.equals("get") || type.equals("set") { self = .request }
            if type.equals("result") { self = .result }
        }
    }
}
