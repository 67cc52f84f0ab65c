internal import NIOCore
internal import Synchronization

/// The BOSH sessions of a proxy by their ids, which its connections share: each request of a session may arrive on
/// another connection, and so on another event loop (XEP-0124 §5).
final class BOSHTable: Sendable {
    /// The id of a session, and the server that has given it.
    struct Key: Hashable, Sendable {
        let server: String
        let sid: String
    }

    /// The largest number of sessions that are decoded at the same time.
    private static let capacity = 10_000

    private struct State {
        var drivers: [Key: NIOLoopBound<BOSHDriver>] = [:]
        var count = 0
        var isFullReported = false
    }

    /// The answer to the request for a place in the table.
    enum Reservation {
        case granted
        /// The table is full; reported once.
        case full(isReported: Bool)
    }

    private let state = Mutex(State())

    /// Counts one more session; ``release(_:)`` must follow if it is granted.
    func reserve() -> Reservation {
        state.withLock { state in
            guard state.count >= Self.capacity else {
                state.count += 1
                return .granted
            }
            defer { state.isFullReported = true }
            return .full(isReported: state.isFullReported)
        }
    }

    /// Removes an ended session.
    func release(_ key: Key?) {
        state.withLock { state in
            state.count -= 1
            if let key { state.drivers[key] = nil }
        }
    }

    /// Returns the session with this id; nil if it is not known.
    func driver(of key: Key) -> NIOLoopBound<BOSHDriver>? { state.withLock { $0.drivers[key] } }

    /// Adds a session; returns the one that has the id already, if there is one.
    func add(_ driver: NIOLoopBound<BOSHDriver>, _ key: Key) -> NIOLoopBound<BOSHDriver>? {
        state.withLock { state in
            if let known = state.drivers[key] { return known }
            state.drivers[key] = driver
            return nil
        }
    }
}
