internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

/// The observers of a session: its unanswered requests, its contacts, its client's software, repeated drops, silence,
/// and items that parsers read differently.
///
/// Observers receive the events in order, record their findings, and change only their own state.
struct Observers {
    /// The unanswered requests. An injected request is added when it is sent.
    var requests = IQTracker()
    private var roster = RosterObserver()
    private var software = SoftwareObserver()
    private var reconnects = ReconnectObserver()
    private var liveness: Liveness
    private var differential = ParserDifferential()
    private var form = MessageForm()

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

    /// Observes the content of a stanza after its effects: the answer to a query for the roster, or for the client's
    /// software.
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

    /// Checks the form of an item: whether parsers read unusual syntax differently, and of a message, whether it is one of
    /// RFC 7395.
    @inline(__always)
    mutating func checkForm(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        if event.head.isUnusual { differential.compareReaders(event, direction, &context) }
        if context.isOfMessages { form.check(direction, &context) }
    }

    /// Handles the announcement that the stream carries stanzas of both servers (XEP-0288).
    mutating func observeBidirectional(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        if direction == .send {
            requests.observeBidirectional()
            context.directions.recv.receiverBytes = context.parse(.send).flatMap(StreamFeatures.itemBytes) ?? .max
        }
        context.recordItem(event, direction, .element, level: .info)
    }

    /// Stores the software name that the client sent in its login.
    mutating func observeSoftware(_ name: String?, _ context: inout SessionContext) { software.observe(name, &context) }

    /// Observes the arrival of bytes, a request for an acknowledgement, or the acknowledgement.
    @inline(__always)
    mutating func observe(_ event: Liveness.Event, at monotonic: Int64) { liveness.observe(event, at: monotonic) }

    /// The time at which bytes last arrived, in nanoseconds of the run.
    var lastReceived: Int64 { liveness.lastReceived }

    /// Returns the unanswered request of the direction's sender, or the silence; nil if there is neither.
    func unansweredRequest(by direction: Direction, _ context: borrowing SessionContext) -> Liveness.Finding? {
        liveness.unansweredRequest(
            by: direction,
            ping: requests.oldestPing(direction),
            seesAnswers: !context.directions[direction.opposite].isOpaque,
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

    /// Returns the known contacts, redacted: at most `limit`.
    func contacts(
        limit: Int,
        _ context: borrowing SessionContext
    ) -> [(contact: String, state: SubscriptionState)] {
        let redactor = context.tools.redactor
        return roster.known(context).contacts.prefix(limit).map { (redactor.disclose(address: $0.key), $0.value.state) }
    }

    /// Whether a roster was received, but not parsed yet.
    var hasUnreadRoster: Bool { roster.hasUnread }

    /// Parses a roster that was not parsed on arrival, while its stream is still decoded.
    mutating func readRoster(_ context: borrowing SessionContext) { roster.read(context) }

    // MARK: The session

    /// Stores the identity of the client when the session opens.
    mutating func open(_ context: borrowing SessionContext) { reconnects.identify(context.login, context) }

    /// The client's key for detecting repeated drops; nil before the login.
    var client: ReconnectWatch.Key? { reconnects.client }

    /// Takes over the state of the earlier session that this one resumes.
    mutating func resume(_ earlier: ResumptionTable.Suspended) {
        reconnects.resume(earlier.client)
        if let legacy = earlier.legacy { roster.replace(by: legacy.roster) }
    }

    /// Takes over the contacts of the resumed session after it has ended.
    mutating func inherit(_ earlier: Roster, _ context: borrowing SessionContext) { roster.inherit(earlier, context) }

    /// Returns the contacts for a session that resumes this one. If the stream was closed, no session can resume it, so
    /// an unparsed roster is not parsed.
    mutating func contactsToLeave(isClosed: Bool, _ context: borrowing SessionContext) -> Roster {
        isClosed ? roster.current : roster.read(context)
    }

    /// Counts the unanswered requests when the session ends.
    func close(_ context: inout SessionContext) { context.info.unanswered = requests.count + requests.forgotten }

    /// Asks the shared state whether this session's end belongs to a reconnect loop; returns false if it need not be
    /// asked.
    func askAboutLoop(_ context: inout SessionContext) -> Bool { reconnects.askAboutLoop(&context) }

    /// Records a reconnect loop.
    func recordLoop(_ count: Int, _ span: Int64, _ context: inout SessionContext) {
        reconnects.recordLoop(count, span, &context)
    }
}

/// The role of a stanza in a request and its answer (RFC 6120 §8.2.3, §8.3).
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
