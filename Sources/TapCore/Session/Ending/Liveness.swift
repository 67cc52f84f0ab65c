internal import TapRecord

/// Detects a lost connection between both ends, from the time of the last arrival and each end's unanswered requests.
///
/// Stores three timestamps, in nanoseconds of the run; each operation is O(1).
struct Liveness {
    enum Event {
        case received
        /// An `<r/>` was forwarded in this direction: its sender requests an acknowledgement (XEP-0198 §4).
        case asked(Direction)
        /// An `<a/>` was forwarded in this direction: it answers the request of the other direction.
        case acknowledged(Direction)
    }

    /// The missing answer that made a peer disconnect.
    struct Finding {
        var closeReason: CloseReason
        var reason: Prose
    }

    /// The age in nanoseconds from which an unanswered request counts: the answer to a younger one may still be in
    /// transit.
    static let patience: Int64 = 3_000_000_000
    /// The shortest silence in nanoseconds that is reported.
    static let silence: Int64 = 30_000_000_000

    private(set) var lastReceived: Int64
    /// The time of the oldest unanswered request in each direction.
    private var asked: (send: Int64?, recv: Int64?) = (nil, nil)

    init(at monotonic: Int64) { lastReceived = monotonic }

    @inline(__always)
    mutating func observe(_ event: Event, at monotonic: Int64) {
        switch event {
        case .received: lastReceived = monotonic
        case .asked(.send): asked.send = asked.send ?? monotonic
        case .asked(.recv): asked.recv = asked.recv ?? monotonic
        case .acknowledged(.send): asked.recv = nil
        case .acknowledged(.recv): asked.send = nil
        }
    }

    /// Returns the request of the direction's sender that was not answered, or the silence; nil if neither is long
    /// enough.
    ///
    /// - Parameters:
    ///   - ping: The time at which the oldest unanswered ping in this direction was forwarded (XEP-0199).
    ///   - seesAnswers: Whether the other direction is decoded; otherwise a request may have been answered.
    ///   - isOpen: Whether the session is open. Before that, silence does not count, because other time limits apply.
    func unansweredRequest(
        by direction: Direction,
        ping: Int64?,
        seesAnswers: Bool = true,
        isOpen: Bool,
        at now: Int64
    ) -> Finding? {
        func seconds(_ start: Int64) -> String { "\((now - start) / 1_000_000_000) s" }
        if seesAnswers, let ping, now - ping >= Self.patience {
            return Finding(closeReason: .pingTimeout, reason: "its ping was not answered for \(seconds(ping))")
        }
        if seesAnswers, let request = direction == .send ? asked.send : asked.recv, now - request >= Self.patience {
            return Finding(
                closeReason: .acknowledgementTimeout,
                reason: "its request for an acknowledgement was not answered for \(seconds(request))"
            )
        }
        guard isOpen, now - lastReceived >= Self.silence else { return nil }
        return Finding(closeReason: .idle, reason: "no data in either direction for \(seconds(lastReceived))")
    }
}
