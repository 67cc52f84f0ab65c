/// Computes how long a replay waits: for items before the next step, and for silence. Times are in nanoseconds.
struct ReplayWaits {
    private let options: ReplayOptions
    /// Time at which the replay began to wait for items before the next step, or received the last of them.
    private(set) var since: Int64?
    /// The longest wait for an item that arrived.
    private var longestWait: Int64 = 0
    /// Time of the last sent or received item.
    private var lastActivity: Int64 = 0
    /// Time at which the server last sent something to another copy of the script.
    var othersServed: Int64 = .min
    /// Time at which bytes of an incomplete item last arrived.
    private var lastBytes: Int64 = .min
    /// Time at which the replay began to wait for silence.
    private var quietSince: Int64?
    /// Whether the replay gave up waiting for an item.
    private var hasGivenUp = false

    init(_ options: ReplayOptions) { self.options = options }

    /// Records that an item was sent or received.
    mutating func recordActivity(at now: Int64) { lastActivity = now }

    /// Records that bytes of an incomplete item arrived.
    mutating func recordBytes(at time: Int64) { lastBytes = max(lastBytes, time) }

    /// Extends all waits by a time in which the program itself was too busy to read.
    mutating func excuse(_ lag: Int64, at now: Int64) {
        since = since.map { min($0 + lag, now) }
        quietSince = quietSince.map { min($0 + lag, now) }
        lastActivity = min(lastActivity + lag, now)
    }

    // MARK: Items

    /// Begins the wait for items, unless it has begun.
    mutating func begin(at now: Int64) { if since == nil { since = now } }

    /// Ends the wait for items.
    ///
    /// - Parameter hasGivenUp: Whether an item has not arrived.
    mutating func end(hasGivenUp: Bool = false) {
        since = nil
        self.hasGivenUp = self.hasGivenUp || hasGivenUp
    }

    /// Begins the wait again after an awaited item arrived: a server that sends is not silent.
    mutating func recordArrival(at now: Int64) {
        guard let since else { return }
        longestWait = max(longestWait, now - since)
        self.since = now
    }

    /// Returns the time at which the replay gives up on missing items; nil if it does not wait for items.
    ///
    /// A server that is busy with other copies of the script, or whose bytes keep arriving, gets more time. After the
    /// first missing item, the wait for items other than answers ends after the quiet time, or after twice the longest
    /// wait so far, so that slow or busy servers get enough time.
    ///
    /// - Parameters:
    ///   - stalls: The times at which connections became unwritable: a server cannot answer bytes that were not sent.
    ///   - isAnswerDue: Returns whether the replay waits for an answer.
    func deadline(stalls: [Int64], isAnswerDue: () -> Bool) -> Int64? {
        guard let since = since.map({ max($0, stalls.max() ?? $0) }) else { return nil }
        let last = min(
            max(since, othersServed, lastBytes) + options.wait,
            since + ReplayOptions.maximumWaits * options.wait
        )
        guard hasGivenUp, !isAnswerDue() else { return last }
        return min(last, max(lastActivity, othersServed) + max(options.quiet, 2 * longestWait))
    }

    // MARK: Silence

    /// Returns the time at which the wait for silence ends. It ends after the option `wait` at the latest, because some
    /// servers keep sending.
    func quietEnd(at now: Int64) -> Int64 { min(lastActivity + options.quiet, (quietSince ?? now) + options.wait) }

    /// Begins the wait for silence, unless it has begun.
    mutating func beginQuiet(at now: Int64) { if quietSince == nil { quietSince = now } }

    /// Ends the wait for silence.
    mutating func endQuiet() { quietSince = nil }
}
