internal import TapRecord
import XMPPCore

/// The state that the components of a session share: its identity, the clock, the facts gathered so far, the streams,
/// and the outlet. A component receives the state for the duration of a call, and must not store it.
///
/// Components only read the streams; ``Session`` and ``Outlet`` change how bytes are forwarded.
struct SessionContext: ~Copyable {
    /// The number of the session within the run.
    let number: UInt64
    let run: Run
    let tools: SessionTools
    /// The client's address, `HOST:PORT`.
    let remote: String?
    var options: SessionOptions
    var now: Run.Instant
    var negotiation: Negotiation
    /// The domain that the client requested, if it determined the choice of the server.
    var chosenDomain: String?
    /// Whether dialback has verified more than one domain of the server that opened the stream (XEP-0220 §2.4).
    var hasFurtherDomains = false
    /// The time at which a refused session is closed if its client opens no stream.
    var answerDeadline: Int64?
    /// The steps of the login.
    var timeline: LoginTimeline
    /// Collects the facts of the login; nil after the session was opened.
    var login: LoginObserver? = LoginObserver()
    /// The facts about the session so far.
    var info: SessionInfo
    var counters = SessionCounters()
    var directions: Directions
    var outlet: Outlet
    /// Whether xmpptap relays the session, rather than reads it from another program's log or packets.
    var isRelayed = false
    /// Whether the session has seen every byte of both peers, and none of them is from a recording.
    var isLive: Bool { isRelayed && !options.isRecorded && !options.isObserved && !options.isDecoded }
    /// The rules; nil if none are loaded.
    var rules: SessionRules?
    /// The `action` for the record of the current item; nil if the item was forwarded unchanged.
    var action: String?
    /// The replacement of the current item; nil if there is none.
    var edited: EditedItem?

    /// The stanza counts for stream management; nil if it was not requested.
    var streamManagement: StreamManagement? { outlet.streamManagement }

    init(run: Run, options: SessionOptions, tools: SessionTools, remote: String?, number: UInt64, at now: Run.Instant) {
        self.run = run
        self.options = options
        self.tools = tools
        self.remote = remote
        self.number = number
        self.now = now
        info = SessionInfo(began: now)
        outlet = Outlet(isFramed: options.framing != .stream && options.hasFrames)
        negotiation = Negotiation(options, isConnected: options.isRecorded || options.isObserved)
        timeline = LoginTimeline(at: now.monotonic)
        directions = Directions(
            framing: options.framing,
            isFramed: options.hasFrames,
            limits: options.unauthenticatedLimits,
            outline: options.level >= .info || options.rules != nil ? tools.outline : nil
        )
    }

    /// Whether the items are messages of a WebSocket (RFC 7395), or elements in bodies of BOSH.
    var isOfMessages: Bool { options.framing != .stream }

    /// The value of ``Record/Detail/transport``; nil for TCP.
    var transport: String? {
        isOfMessages ? options.isBOSH ? Record.Beginning.bosh : Record.Beginning.webSocket : nil
    }

    // MARK: The current item

    /// Returns the last event's element as a tree; nil if libxml2 rejects it, which is reported.
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

    /// Returns whether the last event's element has this local name.
    func isNamed(_ name: StaticString, _ event: StreamEvent, _ direction: Direction) -> Bool {
        directions.bytes(direction).slice(event.head.name).equals(name)
    }

    /// Returns whether the server's last item is stream features.
    func isFeatures(_ event: StreamEvent) -> Bool {
        event.head.namespace.namespace == .streams && !event.isTruncated && isNamed("features", event, .recv)
    }

    /// Returns the decoded value of an attribute of the last event; nil if it is absent.
    func text(_ attribute: StanzaHead.Attribute?, _ direction: Direction) -> String? {
        attribute?.text(in: directions.bytes(direction))
    }

    /// Returns a copy of the last event's item.
    func item(_ direction: Direction) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(directions.bytes(direction))
        return bytes
    }

    // MARK: Other sessions

    /// Sends a request to the state that sessions share.
    mutating func requestShared(_ kind: SharedRequest.Kind) {
        outlet.request(.shared(SharedRequest(kind: kind, session: number, monotonic: now.monotonic)))
    }

    /// Handles an answer that no component handles.
    mutating func handle(_ answer: SharedAnswer) {
        switch answer.kind {
        case .bindings(let accepted): login?.observe(.history(accepted))
        case .mark(let mark): outlet.request(.addToJournal(mark))
        case .claim(let claim): streamManagement?.endWaiting(by: claim)
        // Session handles these.
        case .loop, .noLoop, .resumed, .transferred: assertionFailure("an answer that a component handles")
        }
    }

    /// The request by which an ended session stores its state, until the driver takes it. It is not queued behind
    /// earlier commands, because the session that resumes this one may need the state while the driver waits for the
    /// journal.
    private var ending: SharedRequest?

    /// Creates the request by which the ended session stores its state.
    mutating func requestTransfer(_ kind: SharedRequest.Kind) {
        ending = SharedRequest(kind: kind, session: number, monotonic: now.monotonic)
    }

    /// Removes and returns the request by which the ended session stores its state; nil if there is none.
    mutating func takeEnding() -> SharedRequest? { ending.take() }

    // MARK: Insertion

    /// Returns whether the forwarded bytes end at an item boundary, and the stream continues, so that an item may be
    /// inserted.
    func mayInsert(_ direction: Direction) -> Bool {
        guard !directions[direction].hasClosedStream, !directions[direction].hasClosedSocket,
            rules?[direction].isStalled != true
        else { return false }
        return directions[direction].isStoring || directions[direction].isBetweenItems
    }
}
