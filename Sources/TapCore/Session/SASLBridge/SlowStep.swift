/// A step of a login that hashes a password many times over, to be done where no session waits for it but its own.
public struct SlowStep: Sendable {
    /// The exchange, after ``perform()`` as it has gone on.
    private(set) var exchange: any SASLExchange
    private let message: [UInt8]
    /// What came of it; nil before ``perform()``.
    private(set) var outcome: SASLStep?

    init(_ exchange: any SASLExchange, _ message: [UInt8]) {
        self.exchange = exchange
        self.message = message
    }

    /// Does it, on any thread, which it keeps for up to some hundred milliseconds. A second time does nothing.
    public mutating func perform() {
        if outcome == nil { outcome = exchange.step(message) }
    }
}
