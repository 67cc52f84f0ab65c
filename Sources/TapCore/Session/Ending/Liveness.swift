internal import TapRecord

/// Whether both ends still hear each other: when bytes arrived last, and which requests for a sign of
/// life are unanswered. It stores three timestamps; each operation is O(1).
struct Liveness {
    /// A younger request may still be in transit.
    static let patience: Int64 = 3_000_000_000
    /// The least silence that is reported.
    static let silence: Int64 = 30_000_000_000

    /// When bytes arrived last, in nanoseconds of the run.
    var lastReceived: Int64
    /// When the sender of this direction requested an acknowledgement (XEP-0198 §4) that has not arrived.
    private var asked: (send: Int64?, recv: Int64?) = (nil, nil)

    init(at monotonic: Int64) { lastReceived = monotonic }

    /// An `<r/>` passes.
    mutating func asks(_ direction: Direction, at monotonic: Int64) {
        switch direction {
        case .send: asked.send = asked.send ?? monotonic
        case .recv: asked.recv = asked.recv ?? monotonic
        }
    }

    /// An `<a/>` passes: the answer to the request in the other direction.
    mutating func acknowledges(_ direction: Direction) {
        switch direction {
        case .send: asked.recv = nil
        case .recv: asked.send = nil
        }
    }

    /// When the oldest unanswered request of this direction's sender was made.
    func waiting(_ direction: Direction) -> Int64? { direction == .send ? asked.send : asked.recv }
}
