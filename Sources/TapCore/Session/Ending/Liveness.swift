internal import TapRecord

/// Whether both ends still hear each other: when bytes came last, and which questions that ask for nothing but a sign of
/// life have no answer yet. It stores three timestamps; each operation is O(1).
struct Liveness {
    /// A question that is younger may just be on its way.
    static let patience: Int64 = 3_000_000_000
    /// Silence that is worth a word.
    static let silence: Int64 = 30_000_000_000

    /// When bytes came last, in nanoseconds of the run.
    var lastReceived: Int64
    /// When the one who sends in this direction asked for an acknowledgement (XEP-0198 §4) that has not come.
    private var asked: (send: Int64?, recv: Int64?) = (nil, nil)

    init(at monotonic: Int64) { lastReceived = monotonic }

    /// `<r/>` goes by.
    mutating func asks(_ direction: Direction, at monotonic: Int64) {
        switch direction {
        case .send: asked.send = asked.send ?? monotonic
        case .recv: asked.recv = asked.recv ?? monotonic
        }
    }

    /// `<a/>` goes by: the answer to what was asked in the other direction.
    mutating func acknowledges(_ direction: Direction) {
        switch direction {
        case .send: asked.recv = nil
        case .recv: asked.send = nil
        }
    }

    /// Since when a request for an acknowledgement waits, of the one who sends in this direction.
    func waiting(_ direction: Direction) -> Int64? { direction == .send ? asked.send : asked.recv }
}
