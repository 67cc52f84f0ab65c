internal import XMPPCore

/// The clients of one side of a comparison, with numbers that both sides share.
///
/// Messages keep their order between two clients (RFC 6120 §10.1), not between two accounts, so a comparison must know
/// which full JID of one side is which of the other.
public struct SenderNumbers: Sendable {
    private var numbers: [UInt64: UInt64] = [:]

    /// Creates numbers without clients.
    public init() {}

    /// Gives a client a number.
    public mutating func add(_ jid: String, number: Int) {
        numbers[Hash.of(jid.utf8Span.span, seed: 1)] = UInt64(truncatingIfNeeded: number)
    }

    /// Returns the number of a client; nil for other addresses.
    func number(_ jid: Span<UInt8>) -> UInt64? { numbers.isEmpty ? nil : numbers[Hash.of(jid, seed: 1)] }
}
