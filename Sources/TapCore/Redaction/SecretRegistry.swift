internal import Synchronization

/// Numbers the secrets of a run: the same value has the same number wherever it stands.
///
/// Values are never kept, only a hash of each under a key that this process made up. Bounded: the values not met for
/// longest are forgotten first, and get a new number when they come again; a number is never given twice.
public final class SecretRegistry: Sendable {
    private struct Table {
        var numbers: LRUCache<Int, UInt32>
        var last: UInt32 = 0
    }

    /// How many values are known at most. Default 65,536.
    public let capacity: Int

    private let salt = UInt64.random(in: .min ... .max)
    private let table: Mutex<Table>

    /// A registry that knows no value.
    public init(capacity: Int = 1 << 16) {
        self.capacity = max(2, capacity)
        table = Mutex(Table(numbers: LRUCache(capacity: capacity)))
    }

    /// The number of a value, from 1; a new one where it has not been met.
    public func number(of value: Span<UInt8>) -> UInt32 {
        let hash = hash(value)
        return table.withLock { table in
            // Numbers begin at 1: 0 marks a new value.
            var last = table.last
            let number = table.numbers.update(hash, default: 0) { number in
                if number == 0 {
                    last &+= 1
                    number = last
                }
                return number
            }
            table.last = last
            return number
        }
    }

    /// Whether a value has been met as a secret, and not been forgotten.
    public func knows(_ value: Span<UInt8>) -> Bool {
        let hash = hash(value)
        return table.withLock { $0.numbers.contains(hash) }
    }

    /// How many values are known.
    public var count: Int { table.withLock { $0.numbers.count } }

    private func hash(_ value: Span<UInt8>) -> Int {
        // Hasher is keyed at random for each process; the salt makes two runs of one process differ too.
        var hasher = Hasher()
        hasher.combine(salt)
        value.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(value.count)
        return hasher.finalize()
    }
}
