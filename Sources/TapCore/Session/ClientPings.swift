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
        /// White space, which has no answer.
        case whitespace
    }

    /// The time in nanoseconds without a stanza from the client after which it is pinged.
    package var interval: Int64
    /// The time limit for an answer in nanoseconds. Default 10 s.
    package var timeout: Int64
    /// The ping method. Default ``Method/iq``.
    package var method: Method

    /// Creates the options.
    package init(interval: Int64, timeout: Int64 = 10_000_000_000, method: Method = .iq) {
        self.interval = interval
        self.timeout = timeout
        self.method = method
    }
}

/// Decides when to ping the client, with XMPPFramework's semantics: only after silence for the interval, only stanzas
/// end the silence, and one ping at a time. An inactive client (XEP-0352) is not pinged.
struct Pinger {
    private enum State {
        case quiet
        /// An iq awaits its answer.
        case pinged
        /// An acknowledgement is awaited until then.
        case requested(until: Int64)
    }

    let options: PingOptions
    /// The prefix of the ids.
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

    /// The time of the next action; nil if an event is awaited first.
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

    /// The client has sent a stanza.
    @inline(__always)
    mutating func clientSent(at now: Int64) { silentSince = now }

    /// The client has sent its state (XEP-0352).
    mutating func setInactive(_ isInactive: Bool, at now: Int64) {
        self.isInactive = isInactive
        silentSince = now
    }

    /// Returns the id of the next ping, which is then pending.
    mutating func ping() -> String {
        state = .pinged
        count += 1
        return "\(prefix)-\(count)"
    }

    /// An acknowledgement was requested.
    mutating func request(at now: Int64) { state = .requested(until: now &+ options.timeout) }

    /// The client has sent an acknowledgement.
    mutating func acknowledged(at now: Int64) { if case .requested = state { end(at: now) } }

    /// The answer has arrived or timed out: the silence restarts.
    mutating func end(at now: Int64) {
        state = .quiet
        silentSince = now
    }

    /// Nothing could be sent: retries after a quarter of the interval.
    mutating func postpone(at now: Int64) {
        state = .quiet
        silentSince = now &- options.interval &+ options.interval / 4
    }
}

/// Pings the client of an open session when it is silent.
struct ClientPings {
    /// Nil unless configured, and before the session is open.
    private var pinger: Pinger?

    /// Starts pinging.
    mutating func begin(_ context: borrowing SessionContext) {
        guard let options = context.options.ping, context.info.kind == .client, !context.options.isRecorded else {
            return
        }
        let prefix = "\(context.run.idPrefix)-\(context.number)"
        pinger = Pinger(options, prefix: prefix, at: context.now.monotonic)
    }

    /// The time of the next action; nil if there is none.
    var deadline: Int64? { pinger?.deadline }

    /// The client has sent a stanza.
    @inline(__always)
    mutating func clientSent(at now: Int64) { pinger?.clientSent(at: now) }

    /// The client has sent its state (XEP-0352).
    mutating func setInactive(_ isInactive: Bool, at now: Int64) { pinger?.setInactive(isInactive, at: now) }

    /// The client has sent an acknowledgement.
    mutating func acknowledged(at now: Int64) { pinger?.acknowledged(at: now) }

    /// Pings the client if it is time, or gives up an acknowledgement; returns a ping to inject.
    ///
    /// - Parameter isOver: Whether the session relays nothing any more.
    mutating func advance(isOver: Bool, _ context: inout SessionContext) -> Injection? {
        let now = context.now.monotonic
        guard let deadline = pinger?.deadline, now >= deadline, let method = pinger?.options.method else { return nil }
        if pinger?.isOverdue(at: now) == true {
            end(.failed(.noAnswer), &context)
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
        case .failed(.noBoundary): pinger?.postpone(at: now)
        case .failed(.noAnswer):
            guard let timeout = pinger?.options.timeout else { return }
            pinger?.end(at: now)
            context.report(
                code: "ping-timeout",
                "the client did not answer xmpptap's ping within \(SessionContext.words(timeout))",
                direction: .send,
                part: .inject
            )
        case .failed: pinger = nil
        }
    }
}

// Stanzas that xmpptap creates.
extension SessionInfo {
    /// Whether both ends send for many users, each of whom chooses ids.
    var hasManyUsers: Bool { kind == .server || kind == .component }

    /// A ping (XEP-0199): to the client as its server would send it, to the server as the client would.
    package func ping(_ leg: Leg, id: String) -> [UInt8] {
        // Servers and components name both ends; for a client the server adds the sender.
        let (from, to) = leg == .client ? (domain, jid) : (hasManyUsers ? jid : nil, domain)
        return XMLWriter.bytes {
            $0.element("iq", ["type": "get", "id": id, "from": from, "to": to]) { $0.element("ping", .ping) }
        }
    }

    /// A message to inject: with an origin-id (XEP-0359), and the hint that servers must not store it (XEP-0334).
    ///
    /// - Parameters:
    ///   - peer: The sender of a message to the client, the addressee of a message to the server.
    ///   - from: The sender, instead of the peer or the client; on a server's or component's stream, instead of its
    ///     domain.
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
