internal import TapRecord
import XMPPCore

/// The state that the components of a session share: its identity, the clock, the facts gathered so far, the streams,
/// and the outlet. A component gets it for the time of a call and keeps nothing of it.
///
/// Components read the streams; only ``Session`` and ``Outlet`` change how bytes are forwarded.
struct SessionContext: ~Copyable {
    /// Number within the run.
    let number: UInt64
    let run: Run
    let tools: SessionTools
    /// The client's address, `HOST:PORT`.
    let remote: String?
    var options: SessionOptions
    var now: Run.Instant
    var negotiation: Negotiation
    /// The domain that the client requested, if the server was chosen by it.
    var chosenDomain: String?
    /// Dialback has verified more than one domain of the server that began the stream (XEP-0220 §2.4).
    var hasFurtherDomains = false
    /// When to give up a refused session whose client opens no stream.
    var answerDeadline: Int64?
    /// The steps of the login.
    var timeline: LoginTimeline
    /// Collects the facts of the login until the session is ready.
    var login: LoginObserver? = LoginObserver()
    /// The facts known so far.
    var info: SessionInfo
    var counters = SessionCounters()
    var directions: Directions
    var outlet = Outlet()
    /// The rules; nil if none are loaded.
    var rules: SessionRules?
    /// The action on the current item, for its record; nil if it was forwarded unchanged.
    var action: String?
    /// The replacement of the current item.
    var edited: EditedItem?

    /// Counts for stream management; nil if it was not requested.
    var streamManagement: StreamManagement? { outlet.streamManagement }

    init(run: Run, options: SessionOptions, tools: SessionTools, remote: String?, number: UInt64, at now: Run.Instant) {
        self.run = run
        self.options = options
        self.tools = tools
        self.remote = remote
        self.number = number
        self.now = now
        info = SessionInfo(began: now)
        negotiation = Negotiation(options, isConnected: options.isRecorded || options.isObserved)
        timeline = LoginTimeline(at: now.monotonic)
        directions = Directions(
            limits: options.unauthenticatedLimits,
            outline: options.level >= .info || options.rules != nil ? tools.outline : nil
        )
    }

    // MARK: The current item

    /// The last event's element as a tree; nil if libxml2 rejects it, which is recorded.
    mutating func parse(_ direction: Direction) -> Element? {
        do {
            return try tools.parser.parse(directions[direction].decoder)
        } catch {
            report(
                .error,
                .warn,
                code: "parser-disagreement",
                error.code == 0
                    ? "the item cannot be parsed: \(error.message)"
                    : "libxml2 refuses what the scanner accepts: \(error.message) (\(error.code))",
                direction: direction
            )
            return nil
        }
    }

    /// Whether the last event's element has this local name.
    func isNamed(_ name: StaticString, _ event: StreamEvent, _ direction: Direction) -> Bool {
        directions.bytes(direction).slice(event.head.name).equals(name)
    }

    /// Whether the server's last item is stream features.
    func isFeatures(_ event: StreamEvent) -> Bool {
        event.head.namespace.namespace == .streams && !event.isTruncated && isNamed("features", event, .recv)
    }

    /// The decoded value of an attribute of the last event; nil if it is absent.
    func text(_ attribute: StanzaHead.Attribute?, _ direction: Direction) -> String? {
        attribute?.text(in: directions.bytes(direction))
    }

    /// A copy of the last event's item.
    func item(_ direction: Direction) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(directions.bytes(direction))
        return bytes
    }

    // MARK: Other sessions

    /// Requests something of the state that sessions share.
    mutating func requestShared(_ kind: SharedRequest.Kind) {
        outlet.request(.shared(SharedRequest(kind: kind, session: number, monotonic: now.monotonic)))
    }

    /// Handles an answer that concerns no component of the session.
    mutating func handle(_ answer: SharedAnswer) {
        switch answer.kind {
        case .bindings(let accepted): login?.observe(.history(accepted))
        case .mark(let mark): outlet.request(.addToJournal(mark))
        case .claim(let claim): streamManagement?.endWaiting(by: claim)
        // Session handles these.
        case .loop, .noLoop, .resumed, .inherited: assertionFailure("an answer that a component handles")
        }
    }

    /// The request by which an ended session leaves its state, until it is taken. It does not wait for earlier commands:
    /// the session that resumes this one may need the state while the driver waits for the journal.
    private var ending: SharedRequest?

    /// Leaves the state of the ended session.
    mutating func leave(_ kind: SharedRequest.Kind) {
        ending = SharedRequest(kind: kind, session: number, monotonic: now.monotonic)
    }

    /// Removes and returns the request to leave the state; nil if there is none.
    mutating func takeEnding() -> SharedRequest? { ending.take() }

    // MARK: Insertion

    /// Whether the forwarded bytes end with a whole item that is not the last, so that another may follow.
    func mayInsert(_ direction: Direction) -> Bool {
        guard !directions[direction].hasClosedStream, rules?[direction].isStalled != true else { return false }
        return directions[direction].isStoring || directions[direction].decoder.isBetweenItems
    }
}
