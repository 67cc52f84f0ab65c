/// The place of an audit store in ClickHouse: `clickhouse://[USER@]HOST[:PORT][,REPLICA…][+HOST[:PORT][,REPLICA…]…]/DATABASE`, or
/// `clickhouses://` with TLS. A comma separates servers with the same rows, a plus sign shards, which share the rows.
package struct ClickHouseAddress: Sendable, Hashable, CustomStringConvertible {
    /// A server, which need not be reachable.
    package struct Host: Sendable, Hashable, CustomStringConvertible {
        package var name: String
        package var port: Int

        package var description: String { "\(name):\(port)" }
    }

    /// A text that is not an address, with the reason.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    /// The servers of each shard, in the order in which they are tried.
    package var shards: [[Host]]
    package var isSecure: Bool
    /// The user; nil for ClickHouse's `default`.
    package var user: String?
    package var database: String

    /// Returns whether a text looks like an address, rather than the name of a file.
    package static func isAddress(_ text: String) -> Bool {
        text.hasPrefix("clickhouse://") || text.hasPrefix("clickhouses://")
    }

    /// Parses an address.
    package init(_ text: String) throws(Fault) {
        let example = "clickhouse://USER@HOST:8123/DATABASE"
        guard Self.isAddress(text), let scheme = text.firstRange(of: "://") else {
            throw Fault(description: "write \(example)")
        }
        isSecure = text.hasPrefix("clickhouses")
        var rest = text[scheme.upperBound...]
        guard !rest.contains(where: { $0.isWhitespace || $0 == "?" || $0 == "#" }) else {
            throw Fault(description: "it contains spaces, a query or a fragment; write \(example)")
        }
        guard let slash = rest.firstIndex(of: "/") else {
            throw Fault(description: "the database is missing; write \(example)")
        }
        database = String(rest[rest.index(after: slash)...])
        let isName = database.utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == 0x5F
        }
        guard !database.isEmpty, isName else {
            throw Fault(description: "the database's name must consist of letters, digits and underscores")
        }
        rest = rest[..<slash]
        if let at = rest.lastIndex(of: "@") {
            let user = rest[..<at]
            guard !user.contains(":") else {
                throw Fault(description: "it contains a password, which others could read; use --store-password-file")
            }
            guard !user.isEmpty else { throw Fault(description: "the user before @ is missing") }
            self.user = String(user)
            rest = rest[rest.index(after: at)...]
        }
        shards = []
        for shard in rest.split(separator: "+", omittingEmptySubsequences: false) {
            var hosts: [Host] = []
            for part in shard.split(separator: ",", omittingEmptySubsequences: false) {
                hosts.append(try Self.host(part, usualPort: isSecure ? 8443 : 8123))
            }
            shards.append(hosts)
        }
    }

    /// The address without the user.
    package var description: String { text(user: nil) }

    /// The address with the user.
    package var full: String { text(user: user) }

    private func text(user: String?) -> String {
        let shards = shards.map { $0.map(\.description).joined(separator: ",") }.joined(separator: "+")
        return "clickhouse\(isSecure ? "s" : "")://\(user.map { "\($0)@" } ?? "")\(shards)/\(database)"
    }

    private static func host(_ text: Substring, usualPort: Int) throws(Fault) -> Host {
        // An IPv6 address is in brackets.
        let end = text.first == "[" ? text.firstIndex(of: "]").map { text.index(after: $0) } : text.firstIndex(of: ":")
        let name = text[..<(end ?? text.endIndex)]
        guard !name.isEmpty, name.first != "[" || name.last == "]" else {
            throw Fault(description: "a host is missing")
        }
        let rest = text[name.endIndex...]
        guard !rest.isEmpty else { return Host(name: String(name), port: usualPort) }
        guard rest.first == ":", let port = Int(rest.dropFirst()), (1...65535).contains(port) else {
            throw Fault(description: "\(rest.dropFirst()) is not a port")
        }
        return Host(name: String(name), port: port)
    }
}
