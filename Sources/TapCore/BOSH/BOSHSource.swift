internal import TapRecord
package import XMPPCore

/// The inputs of a session that is observed in BOSH (XEP-0124, XEP-0206).
///
/// The creation of a session and each restart become `<open/>`, as over WebSocket, each element a message, and the end of
/// the session `<close/>`. Requests and responses are put in order by ``BOSHOrder``. The options of the session are
/// ``SessionOptions/observingBOSH``.
package struct BOSHSource: Source {
    /// The time in seconds without a request after which a session ends, if the server announced none.
    private static let defaultInactivity = 120
    /// The time in nanoseconds that is added to the inactivity that the server announced.
    private static let grace: Int64 = 5_000_000_000

    /// The time in seconds without an open request after which a client has probably gone.
    private static let absence: Int64 = 3

    private let session: UInt64
    private var order: BOSHOrder
    private var inputs: ArraySlice<SourceInput> = []
    /// The number of requests without a response.
    private var openRequests = 0
    private var lastActivity: Int64
    private var lastInstant: Run.Instant
    private var inactivity = Self.defaultInactivity
    private var pause: Int?
    private var domain: String?
    private var version: String?
    /// Whether the server must open a stream.
    private var expectsOpen: Bool
    /// Whether the request or response that creates the session was read.
    private var isCreated: (request: Bool, response: Bool)
    /// The request by which the client ended the session, and the time from which the response is not awaited.
    private var termination: (rid: UInt64, deadline: Int64)?
    private var reportedCompression: Set<Direction> = []
    /// Whether the session has ended; later bodies are ignored.
    package private(set) var isOver = false

    /// Creates the source of a session whose first observed request has this rid.
    ///
    /// - Parameter isJoined: Whether the session was created before. The stream openings are then unknown.
    package init(session: UInt64, rid: UInt64, isJoined: Bool, at now: Run.Instant) {
        self.session = session
        order = BOSHOrder(from: rid)
        lastActivity = now.monotonic
        lastInstant = now
        expectsOpen = !isJoined
        isCreated = (isJoined, isJoined)
        guard isJoined else { return }
        emit(.input(.joined()), now)
        for direction in Direction.allCases { emit(.received(direction, Self.open()), now) }
    }

    /// Returns the next input; nil if there is none.
    package mutating func next() -> SourceInput? { inputs.popFirst() }

    /// The time at which ``tick(at:)`` must be called, in nanoseconds of the run; nil after the end.
    package var deadline: Int64? {
        guard !isOver else { return nil }
        let limits = [order.deadline, termination?.deadline, openRequests == 0 ? inactivityDeadline : nil]
        return limits.compactMap { $0 }.min()
    }

    private var inactivityDeadline: Int64 {
        lastActivity &+ Int64(pause ?? inactivity) * 1_000_000_000 &+ Self.grace
    }

    // MARK: Requests and responses

    /// Handles an event of the session that its bodies do not show.
    package mutating func handle(_ event: BOSHEvent, at now: Run.Instant) {
        guard !isOver else { return }
        emit(.input(.bosh(event)), now)
        if case .unreachable = event { end(now) }
    }

    /// Handles a request that the server will get. ``response(to:_:at:)`` or ``lost(_:at:)`` must follow.
    package mutating func request(_ rid: UInt64, _ body: BOSHBody, at now: Run.Instant) {
        openRequests += 1
        lastActivity = max(lastActivity, now.monotonic)
        guard !isOver else { return }
        handle(order.request(rid, body, at: now))
    }

    /// Handles the response to a request.
    package mutating func response(to rid: UInt64, _ answer: BOSHAnswer, at now: Run.Instant) {
        openRequests = max(0, openRequests - 1)
        lastActivity = max(lastActivity, now.monotonic)
        guard !isOver else { return }
        handle(order.response(to: rid, answer, at: now))
    }

    /// Handles a request that gets no response, because its connection has ended. The client may send it again.
    package mutating func lost(_ rid: UInt64, at now: Run.Instant) {
        openRequests = max(0, openRequests - 1)
        lastActivity = max(lastActivity, now.monotonic)
        guard !isOver else { return }
        if !isCreated.response || termination?.rid == rid { end(now) }
    }

    /// Handles deadlines that have passed.
    package mutating func tick(at now: Run.Instant) {
        guard !isOver else { return }
        handle(order.release(at: now))
        guard !isOver else { return }
        if let termination, now.monotonic >= termination.deadline { return end(now) }
        guard openRequests == 0, now.monotonic >= inactivityDeadline else { return }
        handle(order.finish(at: now))
        emit(.input(.bosh(.inactive(seconds: pause ?? inactivity))), now)
        end(now)
    }

    /// Ends the session because xmpptap stops.
    package mutating func stop(at now: Run.Instant) {
        guard !isOver else { return }
        handle(order.finish(at: now))
        guard !isOver else { return }
        // A client that is there has a request open, with which it waits for the server.
        let silence = (now.monotonic &- lastActivity) / 1_000_000_000
        if openRequests == 0, silence >= Self.absence {
            emit(.input(.bosh(.inactive(seconds: Int(silence), isStopped: true))), now)
        } else {
            emit(.input(.stop), now)
        }
        end(now)
    }

    // MARK: In order

    private mutating func handle(_ events: [BOSHOrder.Event]) {
        for event in events where !isOver {
            switch event {
            case .request(let rid, let body, let at): handle(request: rid, body, at)
            case .response(let rid, let answer, let at): handle(response: rid, answer, at)
            case .repeated(let rid, let at): emit(.input(.bosh(.repeated(rid))), at)
            case .missing(let direction, let rids, let at): emit(.input(.bosh(.missing(direction, rids))), at)
            case .outside(let rid, let answer, let at):
                emit(.input(.bosh(.outside(rid, condition: answer.flatMap(Self.condition)))), at)
            }
        }
    }

    private static func condition(_ answer: BOSHAnswer) -> String? {
        switch answer {
        case .body(let body): body.condition ?? (body.isTerminate ? "terminate" : nil)
        case .status(let status): "HTTP \(status)"
        case .unread, .compressed: nil
        }
    }

    private mutating func handle(request rid: UInt64, _ body: BOSHBody, _ now: Run.Instant) {
        pause = body.pause
        if let to = body.to { domain = to }
        if let named = body.version { version = named }
        if !isCreated.request || body.restarts {
            isCreated.request = true
            expectsOpen = true
            emit(.received(.send, Self.open(from: body.from, to: domain, version: version, body.language)), now)
        }
        for item in body.items { emit(.received(.send, item), now) }
        guard body.isTerminate else {
            if let condition = body.condition { emit(.input(.bosh(.recoverable(condition: condition, .send))), now) }
            return
        }
        close(body, .send, now)
        termination = (rid, now.monotonic &+ Self.grace)
    }

    private mutating func handle(response rid: UInt64, _ answer: BOSHAnswer, _ now: Run.Instant) {
        switch answer {
        case .body(let body): handle(body, now)
        case .status(let status):
            // Other codes than those of XEP-0124 §17.1 may be of a proxy in between.
            if [400, 403, 404].contains(status) || !isCreated.response {
                if termination == nil { emit(.input(.bosh(.endedByStatus(status))), now) }
                end(now)
            } else {
                emit(.input(.bosh(.status(status))), now)
            }
        case .unread(let code, let explanation):
            isCreated.response = true
            emit(.input(.bosh(.unread(.recv, code: code, explanation: explanation))), now)
        case .compressed:
            isCreated.response = true
            if reportedCompression.insert(.recv).inserted { emit(.input(.bosh(.compressed(.recv))), now) }
        }
        if termination?.rid == rid { end(now) }
    }

    private mutating func handle(_ body: BOSHBody, _ now: Run.Instant) {
        if let requests = body.requests { order.window = requests + 1 }
        if let seconds = body.inactivity { inactivity = max(1, seconds) }
        if let named = body.version { version = named }
        let isCreation = !isCreated.response
        isCreated.response = true
        if expectsOpen, isCreation ? !body.isTerminate || !body.items.isEmpty : !body.items.isEmpty {
            expectsOpen = false
            emit(.received(.recv, Self.open(from: body.from ?? domain, version: version)), now)
        }
        for item in body.items { emit(.received(.recv, item), now) }
        guard body.isTerminate else {
            if let condition = body.condition { emit(.input(.bosh(.recoverable(condition: condition, .recv))), now) }
            return
        }
        close(body, .recv, now)
        end(now)
    }

    /// Ends the stream of a direction.
    private mutating func close(_ body: BOSHBody, _ direction: Direction, _ now: Run.Instant) {
        // With this condition, the stream error is in the body.
        if let condition = body.condition, condition != "remote-stream-error" {
            emit(.input(.bosh(.ended(condition: condition, by: direction, uri: body.uri))), now)
        } else {
            emit(.received(direction, Self.closing), now)
        }
    }

    private mutating func end(_ now: Run.Instant) {
        guard !isOver else { return }
        isOver = true
        emit(.input(.closed), now)
    }

    // MARK: Inputs

    private mutating func emit(_ kind: SourceInput.Kind, _ now: Run.Instant) {
        // A body that has waited is handled when its turn comes, so that the times of a session never decrease.
        if now.monotonic > lastInstant.monotonic { lastInstant = now }
        inputs.append(SourceInput(session: session, at: lastInstant, kind))
    }

    private static let closing = XMLWriter.bytes { $0.element("close", .framing) }

    private static func open(
        from: String? = nil,
        to: String? = nil,
        version: String? = nil,
        _ language: String? = nil
    ) -> [UInt8] {
        XMLWriter.bytes { xml in
            xml.start("open", xmlns: Namespace.framing.uri.description)
            let attributes = [("from", from), ("to", to), ("version", version), ("xml:lang", language)]
            for (name, value) in attributes { if let value { xml.attribute(name, value) } }
            xml.end()
        }
    }
}
