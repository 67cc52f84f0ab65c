internal import XMPPCore

/// The clients of one side of a comparison, with numbers that both sides share.
///
/// Messages keep their order between two clients (RFC 6120 §10.1), not between two accounts, so a comparison must know
/// which full JIDs of the two sides correspond.
package struct SenderNumbers: Sendable {
    /// The numbers, sorted by the hashes of the JIDs. A sorted array suffices because there are usually few clients.
    private var numbers: [(hash: UInt64, number: UInt64)] = []

    /// Creates numbers without clients.
    package init() {}

    /// Assigns a number to the full JID of a client.
    package mutating func add(_ jid: String, number: Int) {
        let hash = Hash.of(jid.utf8Span.span, seed: 1)
        let place = place(of: hash)
        let number = UInt64(truncatingIfNeeded: number)
        if place < numbers.count, numbers[place].hash == hash {
            numbers[place].number = number
        } else {
            numbers.insert((hash: hash, number: number), at: place)
        }
    }

    /// Returns the number of a client; nil for other addresses.
    func number(_ jid: Span<UInt8>) -> UInt64? {
        guard !numbers.isEmpty else { return nil }
        let hash = Hash.of(jid, seed: 1)
        let place = place(of: hash)
        return place < numbers.count && numbers[place].hash == hash ? numbers[place].number : nil
    }

    private func place(of hash: UInt64) -> Int { numbers.indices.bisected { numbers[$0].hash < hash } }
}
