internal import TapCapture
internal import TapCore
internal import TapNetwork

// The options for listeners whose clients name their targets.
extension ProxyOptions {
    /// Maximum size of the file of users in bytes.
    private static let maximumUsersBytes = 1 << 20

    /// Returns the options; throws if they contradict each other, or if the file of users cannot be used.
    func targetOptions() throws(Failure) -> TargetOptions {
        var options = TargetOptions()
        options.relaysOthers = relayOthers
        guard !relayOthers || !socks.isEmpty || !transparent.isEmpty else {
            throw .usage("--relay-others needs --socks or --transparent; add one")
        }
        guard !socks.isEmpty else {
            if socksUsers != nil { throw .usage("--socks-users needs --socks; add it") }
            return options
        }
        options.users = try socksUsers.map { path throws(Failure) in try Self.users(path) }
        if options.users == nil, let spec = socks.first(where: { !$0.isLoopback }) {
            throw .usage("--socks \(spec): clients on other machines must log in; add --socks-users")
        }
        return options
    }

    private static func users(_ path: String) throws(Failure) -> ProxyUsers {
        if path != "-", let status = FileStatus(path: path), status.isRegular, status.rights & 0o077 != 0 {
            throw .file("other users can read --socks-users \(path); run 'chmod 600 \(path)'")
        }
        let text: String
        do throws(Failure) {
            text = try TextFile.read(path, limit: maximumUsersBytes)
        } catch {
            throw Failure(status: error.status, message: "--socks-users: \(error.message)")
        }
        do throws(ProxyUsers.Fault) {
            return try ProxyUsers(parsing: text)
        } catch {
            let place = error.line.map { "\(path):\($0)" } ?? path
            throw .file("--socks-users: \(place): \(error.message)")
        }
    }
}

extension ListenSpec {
    /// Whether only programs on this machine can connect.
    fileprivate var isLoopback: Bool { host.map { Endpoint(host: $0, port: port).isLoopback } ?? true }
}
