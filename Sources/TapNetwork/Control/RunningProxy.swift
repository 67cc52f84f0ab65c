internal import Glibc

/// A running proxy, found by its control socket: `control-PID.sock` in a folder that only its user can write to.
package struct RunningProxy: Sendable, Hashable {
    /// The process ID.
    package let pid: Int32
    /// The path of its control socket.
    package let path: String

    /// Returns the running proxies with a socket in this folder, ordered by process ID. Sockets without a listener are
    /// skipped; a folder of another user yields none.
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

    /// Returns whether a process listens on a socket.
    private static func isLive(_ path: String) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isWhole = withUnsafeMutableBytes(of: &address.sun_path) { target in
            // The path must end with a zero byte.
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
        // EAGAIN: there is a listener, but its queue of connections is full.
        return result == 0 || errno == EAGAIN
    }

    /// Returns the file names in a folder; empty unless the folder belongs to this user and no other user can write to
    /// it.
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
