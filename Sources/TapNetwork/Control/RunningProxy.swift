internal import Glibc

/// A proxy that runs, found by its control socket: `control-PID.sock` in a folder of its user's own.
package struct RunningProxy: Sendable, Hashable {
    /// The process.
    package let pid: Int32
    /// Its socket.
    package let path: String

    /// The running proxies, found by their sockets in a folder. Sockets without a listener are left out, as is a folder
    /// of another user.
    package static func all(in folder: String) -> [RunningProxy] {
        let proxies = names(in: folder).compactMap { name -> RunningProxy? in
            guard name.hasPrefix("control-"), name.hasSuffix(".sock"),
                let pid = Int32(name.dropFirst("control-".count).dropLast(".sock".count)), pid > 0,
                isLive("\(folder)/\(name)")
            else { return nil }
            return RunningProxy(pid: pid, path: "\(folder)/\(name)")
        }
        return proxies.sorted { $0.pid < $1.pid }
    }

    /// Whether something listens at a socket.
    private static func isLive(_ path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isWhole = withUnsafeMutableBytes(of: &address.sun_path) { target in
            // The last byte stays zero.
            guard path.utf8.count < target.count else { return false }
            target.copyBytes(from: path.utf8)
            return true
        }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard isWhole, descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, length) }
        }
        // So many connect that it cannot be accepted at once.
        return result == 0 || errno == EAGAIN
    }

    /// The names in a folder that belongs to this user and that no other user can write to.
    private static func names(in folder: String) -> [String] {
        var status = stat()
        guard lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == getuid(),
            status.st_mode & 0o022 == 0, let listing = opendir(folder)
        else { return [] }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { name in
                    String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
                }
            )
        }
        return names
    }
}
