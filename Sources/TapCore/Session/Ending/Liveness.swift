internal import TapRecord

/// Whether both ends still hear each other: when bytes arrived last, and which requests for a sign of life are unanswered.
///
/// It stores three timestamps, in nanoseconds of the run; each operation is O(1).
struct Liveness {
    enum Event {
        case received
        /// An `<r/>` passes: its sender requests an acknowledgement (XEP-0198 §4).
        case asked(Direction)
        /// An `<a/>` passes: the answer to the request in the other direction.
        case acknowledged(Direction)
    }

    /// What a peer had not heard when it gave up.
    struct Finding {
        var closeReason: CloseReason
        var words: Prose
    }

    /// A younger request may still be in transit.
    static let patience: Int64 = 3_000_000_000
    /// The least silence that is reported.
    static let silence: Int64 = 30_000_000_000

    private(set) var lastReceived: Int64
    /// The oldest request of each direction's sender that has no answer.
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

    /// What the sender of a direction has waited for in vain.
    ///
    /// - Parameters:
    ///   - ping: When its oldest ping without an answer passed (XEP-0199).
    ///   - isOpen: Silence counts: before stanzas flow there are other limits.
    func unheard(by direction: Direction, ping: Int64?, isOpen: Bool, at now: Int64) -> Finding? {
        func seconds(_ start: Int64) -> String { "\((now - start) / 1_000_000_000) s" }
        if let ping, now - ping >= Self.patience {
            return Finding(closeReason: .pingTimeout, words: "its ping was not answered for \(seconds(ping))")
        }
        if let request = direction == .send ? asked.send : asked.recv, now - request >= Self.patience {
            return Finding(
                closeReason: .acknowledgementTimeout,
                words: "its request for an acknowledgement was not answered for \(seconds(request))"
            )
        }
        guard isOpen, now - lastReceived >= Self.silence else { return nil }
        return Finding(closeReason: .idle, words: "no data in either direction for \(seconds(lastReceived))")
    }
}
