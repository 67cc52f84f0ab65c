internal import Synchronization
internal import TapRecord
import XMPPCore

/// The software names that clients at each address have sent, over all sessions of a run. They are kept because a
/// client that refuses a certificate does not send its name in that session.
///
/// Bounded: at most ``capacity`` addresses with ``namesPerHost`` names each; the least recently used address is evicted
/// first.
final class ClientSoftwareTable: Sendable {
    static let capacity = 1024
    static let namesPerHost = 4
    /// The longest stored name in bytes.
    static let maximumNameLength = 128

    private let table = Mutex(LRUCache<String, [String]>(capacity: capacity))

    /// Stores the `name` of a client at `host`, an address without its port.
    func store(_ name: String, at host: String) {
        let name = String(decoding: name.utf8.prefix(Self.maximumNameLength), as: UTF8.self)
        guard !name.isEmpty else { return }
        table.withLock { table in
            table.update(host, default: []) { names in
                names.removeAll { $0 == name }
                names.insert(name, at: 0)
                if names.count > Self.namesPerHost { names.removeLast() }
            }
        }
    }

    /// Returns the names sent from `host`, the latest first.
    func names(at host: String) -> [String] { table.withLock { $0.value(host) ?? [] } }
}
