/// Names of elements and attributes that may carry a secret: the cheap first sieve before redaction.
///
/// A name here only costs a closer look at the item; the rules that decide are structural and live with redaction.
enum SecretNames {
    static let names: [StaticString] = [
        // SASL, SASL2, FAST, ISR
        "auth", "response", "challenge", "success", "failure", "authenticate", "initial-response", "additional-data",
        "continue", "next", "task-data", "token", "isr-enabled", "inst-resume", "inst-resumed", "user-agent", "abort",
        // Stream management
        "enabled", "resume", "resumed",
        // Legacy authentication, registration, components, dialback
        "password", "digest", "key", "handshake", "result", "verify", "hash",
        // Forms, rooms, private storage, push, upload, services, calls, one-time codes
        "field", "conference", "put", "get", "url", "uri", "header", "service", "transport", "confirm", "preauth",
        "secret", "invite", "oauth", "sid", "pwd", "ufrag", "newkey", "previd", "location", "secretkey", "encrypted",
    ]

    /// The sieve, made once and carried by each scanner: one bit per hash of (length, first byte, last byte).
    struct Sieve {
        private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

        fileprivate init(_ names: [StaticString]) {
            for name in names {
                let count = name.utf8CodeUnitCount
                let hash = Self.hash(count, name.utf8Start[0], name.utf8Start[count - 1])
                let bit: UInt64 = 1 << UInt64(hash & 63)
                switch hash >> 6 {
                case 0: words.0 |= bit
                case 1: words.1 |= bit
                case 2: words.2 |= bit
                default: words.3 |= bit
                }
            }
        }

        @inline(__always)
        private static func hash(_ count: Int, _ first: UInt8, _ last: UInt8) -> Int {
            (count &* 37 &+ Int(first) &* 5 &+ Int(last) &* 11) & 255
        }

        /// Whether a local name is in the catalogue; nearly every other name misses at the first test.
        @inline(__always)
        func contains(_ name: Span<UInt8>) -> Bool {
            guard !name.isEmpty else { return false }
            let hash = Self.hash(name.count, name[0], name[name.count - 1])
            let word =
                switch hash >> 6 {
                case 0: words.0
                case 1: words.1
                case 2: words.2
                default: words.3
                }
            guard (word >> UInt64(hash & 63)) & 1 == 1 else { return false }
            for candidate in SecretNames.names where name.equals(candidate) { return true }
            return false
        }
    }

    static let sieve = Sieve(names)
}
