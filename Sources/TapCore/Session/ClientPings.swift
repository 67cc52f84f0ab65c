package import TapRecord
package import XMPPCore

/// How a session checks whether a silent client is still connected.
package struct PingOptions: Sendable, Hashable {
    /// The stanza or element to send to the client.
    package enum Method: String, Sendable, Hashable, CaseIterable {
        /// A ping (XEP-0199): a result or an error shows that the client is connected.
        case iq
        /// A request for an acknowledgement (XEP-0198); a ping if stream management is off.
        case sm
        /// White space. Over WebSocket a message cannot be white space: a ping frame (RFC 6455 §5.5.2). Neither has an answer
        /// that is awaited.
        case whitespace
    }

    /// The time in nanoseconds without a stanza from the client, after which xmpptap pings it.
    package var interval: Int64
    /// The time limit for an answer in nanoseconds. Default 10 s.
    package var timeout: Int64
    /// The ping method. Default ``Method/iq``.
    package var method: Method

    package init(interval: Int64, timeout: Int64 = 10_000_000_000, method: Method = .iq) {
        self.interval = interval
        self.timeout = timeout
        self.method = method
    }
}

/// Decides when to ping the client. As in XMPPFramework, a ping follows silence of the given interval, only stanzas end
/// the silence, and one ping is pending at a time. An inactive client (XEP-0352) is not pinged.
struct Pinger {
    private enum State {
        case quiet
        /// A ping (XEP-0199) was sent, and its answer is awaited.
        case pinged
        /// An acknowledgement (XEP-0198) was requested, and is awaited until this time.
        case requested(until: Int64)
    }

    let options: PingOptions
    /// The prefix of the pings' ids.
    private let prefix: String
    private var state = State.quiet
    private var silentSince: Int64
    private var isInactive = false
    private var count = 0

    init(_ options: PingOptions, prefix: String, at now: Int64) {
        self.options = options
        self.prefix = prefix
        silentSince = now
    }

    /// The time of the next action; nil while only an event can cause one.
    var deadline: Int64? {
        switch state {
        case .quiet: isInactive ? nil : silentSince &+ options.interval
        case .pinged: nil
        case .requested(let end): end
        }
    }

    /// Whether an acknowledgement is overdue.
    func isOverdue(at now: Int64) -> Bool {
        if case .requested(let end) = state { return now >= end }
        return false
    }

    /// Restarts the silence, because the client has sent a stanza.
    @inline(__always)
    mutating func clientSent(at now: Int64) { silentSince = now }

    /// Stores whether the client is inactive (XEP-0352).
    mutating func setInactive(_ isInactive: Bool, at now: Int64) {
        self.isInactive = isInactive
        silentSince = now
    }

    /// Returns the id of a new ping, and starts to await its answer.
    mutating func ping() -> String {
        state = .pinged
        count += 1
        return "\(prefix)-\(count)"
    }

    /// Starts to wait for an acknowledgement that was requested.
    mutating func request(at now: Int64) { state = .requested(until: now &+ options.timeout) }

    /// Ends the wait for an acknowledgement, because the client has sent one.
    mutating func acknowledged(at now: Int64) { if case .requested = state { end(at: now) } }

    /// Ends the wait for an answer that has arrived or timed out, and restarts the silence.
    mutating func end(at now: Int64) {
        state = .quiet
        silentSince = now
    }

    /// Tries again after a quarter of the interval, because nothing could be sent.
    mutating func postpone(at now: Int64) {
        state = .quiet
        silentSince = now &- options.interval &+ options.interval / 4
    }
}

/// Pings the client of an open session when it is silent.
struct ClientPings {
    /// Nil if pings are not configured, and before the session is open.
    private var pinger: Pinger?

    /// Starts to watch the client, if pings are configured.
    mutating func begin(_ context: borrowing SessionContext) {
        guard let options = context.options.ping, context.info.kind == .client, !context.options.isRecorded else {
            return
        }
        let prefix = "\(context.run.idPrefix)-\(context.number)"
        pinger = Pinger(options, prefix: prefix, at: context.now.monotonic)
    }

    /// The time of the next action; nil if no action is scheduled.
    var deadline: Int64? { pinger?.deadline }

    /// Restarts the silence, because the client has sent a stanza.
    @inline(__always)
    mutating func clientSent(at now: Int64) { pinger?.clientSent(at: now) }

    /// Stores whether the client is inactive (XEP-0352).
    mutating func setInactive(_ isInactive: Bool, at now: Int64) { pinger?.setInactive(isInactive, at: now) }

    /// Ends the wait for an acknowledgement, because the client has sent one.
    mutating func acknowledged(at now: Int64) { pinger?.acknowledged(at: now) }

    /// Pings the client if it is time, or ends the wait for an overdue acknowledgement; returns a ping to inject, if
    /// any.
    ///
    /// - Parameter isOver: Whether the session no longer relays anything.
    mutating func advance(isOver: Bool, _ context: inout SessionContext) -> Injection? {
        let now = context.now.monotonic
        guard let deadline = pinger?.deadline, now >= deadline, let method = pinger?.options.method else { return nil }
        if pinger?.isOverdue(at: now) == true {
            // In a direction that is not decoded, the answer is not seen.
            if context.directions.send.isOpaque { pinger = nil } else { end(.failed(.noAnswer), &context) }
            return nil
        }
        guard !isOver, !context.directions.recv.isOpaque, !context.directions.recv.hasClosedStream else {
            pinger = nil
            return nil
        }
        if method == .iq || method == .sm && context.outlet.streamManagement?.isOn != true { return ping(context) }
        guard context.mayInsert(.recv) else {
            pinger?.postpone(at: now)
            return nil
        }
        if method == .sm, let request = context.outlet.streamManagement?.makeRequest(.recv) {
            pinger?.request(at: now)
            context.answer([(.element, request)], to: .client, part: .inject)
        } else if context.isOfMessages {
            pinger?.end(at: now)
            context.pingWebSocket(.client)
        } else {
            pinger?.end(at: now)
            context.answer([(.whitespace, [0x20])], to: .client, part: .inject)
        }
        return nil
    }

    private mutating func ping(_ context: borrowing SessionContext) -> Injection? {
        guard let id = pinger?.ping(), let timeout = pinger?.options.timeout else { return nil }
        return Injection(
            context.info.ping(.client, id: id),
            to: .client,
            number: Injection.pingNumber,
            swallowsAnswer: true,
            timeout: timeout
        )
    }

    /// Handles the outcome of a ping.
    mutating func end(_ outcome: InjectionOutcome, _ context: inout SessionContext) {
        let now = context.now.monotonic
        switch outcome {
        case .sent: break
        case .answered: pinger?.end(at: now)
        case .failed(.noBoundary), .failed(.tooManyWaiting): pinger?.postpone(at: now)
        case .failed(.noAnswer):
            guard let timeout = pinger?.options.timeout else { return }
            pinger?.end(at: now)
            context.report(
                code: "ping-timeout",
                "the client did not answer xmpptap's ping within \(SessionContext.format(timeout))",
                direction: .send,
                part: .inject
            )
        case .failed: pinger = nil
        }
    }
}

// Stanzas that xmpptap creates.
extension SessionInfo {
    /// Whether both ends send stanzas for many users, each of which chooses its own ids.
    var hasManyUsers: Bool { kind == .server || kind == .component }

    /// Returns a ping (XEP-0199). A ping to the client has the addresses that its server would write, and a ping to the
    /// server those that the client would write.
    package func ping(_ leg: Leg, id: String) -> [UInt8] {
        // Servers and components must write both addresses; a client omits `from`, because the server adds it.
        let (from, to) = leg == .client ? (domain, jid) : (hasManyUsers ? jid : nil, domain)
        return XMLWriter.bytes {
            $0.element("iq", ["type": "get", "id": id, "from": from, "to": to]) { $0.element("ping", .ping) }
        }
    }

    /// Returns a message to inject, with an origin-id (XEP-0359) and the hint that servers must not store it
    /// (XEP-0334).
    ///
    /// - Parameters:
    ///   - peer: The other end of the conversation: the sender of a message to the client, the addressee of a message
    ///     to the server.
    ///   - from: The `from` address; the default is the peer for a message to the client, the session's domain on the
    ///     stream of a server or component, and none for a client.
    package func message(_ body: String, to leg: Leg, peer: JID, from: JID? = nil, id: String) -> [UInt8] {
        let own = hasManyUsers ? jid : nil
        let sender = leg == .client ? (from ?? peer).description : from?.description ?? own
        let addressee = leg == .client ? jid : peer.description
        return XMLWriter.bytes {
            $0.element("message", ["type": "chat", "id": id, "from": sender, "to": addressee]) {
                $0.element("body", text: body)
                $0.element("origin-id", .stanzaID, ["id": id])
                $0.element("no-store", .hints)
            }
        }
    }
}
