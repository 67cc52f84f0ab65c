internal import NIOCore
internal import Synchronization

/// The addresses on which the proxy listens: it must not connect to itself.
final class OwnAddresses: Sendable {
    private let addresses = Mutex<[SocketAddress]>([])

    func set(_ addresses: [SocketAddress]) { self.addresses.withLock { $0 = addresses } }

    /// Whether a connection to `target` would come to this proxy itself.
    func accept(_ target: SocketAddress) -> Bool { addresses.withLock { $0.contains { $0.accepts(target) } } }
}
