internal import Synchronization
internal import TapRecord
import XMPPCore

/// What the clients of each address called themselves, over all sessions of a run: a client that refuses a certificate has not
/// said in that session who it is.
///
/// Bounded: at most ``capacity`` addresses with ``namesPerHost`` names each; the one that was quiet for longest is forgotten
/// first.
final class ClientSoftwareTable: Sendable {
    static let capacity = 1024
    static let namesPerHost = 4
    /// Bytes of a name that are kept.
    static let longestName = 128

    private let table = Mutex(LRUCache<String, [String]>(capacity: capacity))

    /// A client at `host`, an address without its port, said `name`.
    func note(_ name: String, at host: String) {
        let name = String(decoding: name.utf8.prefix(Self.longestName), as: UTF8.self)
        guard !name.isEmpty else { return }
        table.withLock { table in
            table.update(host, default: []) { names in
                names.removeAll { $0 == name }
                names.insert(name, at: 0)
                if names.count > Self.namesPerHost { names.removeLast() }
            }
        }
    }

    /// The names said at `host`, the latest first.
    func names(at host: String) -> [String] { table.withLock { $0.value(host) ?? [] } }
}
