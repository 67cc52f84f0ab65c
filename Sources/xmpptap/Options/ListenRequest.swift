/// What stands behind `--listen`: `[HOST:]PORT[=UPSTREAM]`.
struct ListenRequest: Hashable {
    /// The port that clients of the tap go to, since 5222 belongs to the server that runs there.
    static let defaultPort: UInt16 = 15222

    /// The host; nil is both loopback addresses.
    var host: String?
    /// The port; 0 is any that is free.
    var port: UInt16
    /// The server for clients that come in here; nil is that of `--upstream`.
    var upstream: HostPort?

    /// A request known beforehand.
    init(host: String? = nil, port: UInt16 = defaultPort, upstream: HostPort? = nil) {
        self.host = host
        self.port = port
        self.upstream = upstream
    }

    /// Reads what was typed.
    init(_ text: String) throws(Failure) {
        let equals = text.firstIndex(of: "=")
        let address = text[..<(equals ?? text.endIndex)]
        if Number.isWhole(address) || address.isEmpty {
            host = nil
            port = try HostPort.port(address, isOwn: true)
        } else {
            let own = try HostPort(address, isOwn: true)
            host = own.host
            port = own.port
        }
        upstream = try equals.map { equals throws(Failure) in
            try Self.upstream(String(text[text.index(after: equals)...]))
        }
    }

    /// Reads a server, behind `=` or `--upstream`.
    static func upstream(_ text: String) throws(Failure) -> HostPort {
        guard !text.hasPrefix("domain:") else {
            throw .usage("domain:NAME is not in this version; name the server itself, as in example.org:5222")
        }
        return try HostPort(text)
    }

    /// Whether only programs of this machine can come in.
    var isLocal: Bool {
        guard let host = host?.lowercased() else { return true }
        if host == "localhost" || host == "::1" || host == "0:0:0:0:0:0:0:1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return numbers.count == 4 && numbers.allSatisfy { $0 != nil } && numbers[0] == 127
    }
}

extension ListenRequest: CustomStringConvertible {
    /// The address as it could have been typed, without the server.
    var description: String {
        host.map { HostPort(host: $0, port: port).description } ?? String(port)
    }
}
