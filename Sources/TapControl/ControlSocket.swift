internal import FoundationEssentials
internal import Glibc

/// A listening Unix socket that only its user can open. Its file is removed at the end.
package final class ControlSocket: Sendable {
    /// The path of the socket.
    package let path: String
    /// The listening socket. The listener that accepts connections on it closes it.
    let descriptor: Int32
    /// The inode number of the socket file.
    private let file: Int

    /// Listens at a path, and replaces a stale socket there.
    ///
    /// - Parameter isOwnFolder: Whether the folder is ``ControlPath/folder``. It is created if necessary, must be
    ///   private to the user, and is cleared of stale sockets. Other folders are not changed.
    /// - Throws: ``ControlError``.
    package init(_ path: String, isOwnFolder: Bool) throws(ControlError) {
        let address = try Self.address(of: path)
        let name = path.lastIndex(of: "/").map { path[..<$0] } ?? "."
        let folder = try Self.open(folder: name.isEmpty ? "/" : String(name), isOwn: isOwnFolder)
        defer { close(folder) }
        // The lock keeps two programs from removing each other's sockets. A foreign folder is locked without waiting,
        // because its owner could hold the lock forever.
        guard flock(folder, isOwnFolder ? LOCK_EX : LOCK_EX | LOCK_NB) == 0 || !isOwnFolder else {
            throw ControlError(code: .system(errno), place: path)
        }

        if isOwnFolder { Self.clean(String(name)) }
        let descriptor = socket(
            AF_UNIX,
            Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue),
            0
        )
        guard descriptor >= 0 else { throw ControlError(code: .system(errno), place: path) }
        do throws(ControlError) {
            // The socket file gets the mode of the descriptor when it is created (unix(7)).
            guard fchmod(descriptor, 0o600) == 0 else { throw ControlError(code: .system(errno), place: path) }
            if !Self.bind(descriptor, address) {
                guard errno == EADDRINUSE else { throw ControlError(code: .system(errno), place: path) }
                try Self.removeStale(path)
                guard Self.bind(descriptor, address) else { throw ControlError(code: .system(errno), place: path) }
            }
            guard listen(descriptor, 128) == 0, let file = Self.attributes(of: path).file else {
                throw ControlError(code: .system(errno), place: path)
            }
            self.file = file
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    /// Removes the socket file unless it was replaced. Call it while the descriptor is open, so that the inode number
    /// cannot be reused.
    func remove() {
        if Self.attributes(of: path).file == file { unlink(path) }
    }

    private static func attributes(of path: String) -> (file: Int?, type: FileAttributeType?, isPrivate: Bool) {
        let found = try? FileManager.default.attributesOfItem(atPath: path)
        let rights = found?[.posixPermissions] as? Int
        let owner = found?[.ownerAccountID] as? UInt
        return (
            found?[.systemFileNumber] as? Int
                ?? (found?[.systemFileNumber] as? UInt).map { Int(truncatingIfNeeded: $0) },
            found?[.type] as? FileAttributeType,
            owner == UInt(geteuid()) && (rights ?? 0o777) & 0o077 == 0
        )
    }

    private static func bind(_ descriptor: Int32, _ address: sockaddr_un) -> Bool {
        withAddress(address) { Glibc.bind(descriptor, $0, $1) == 0 }
    }

    private static func withAddress(
        _ address: sockaddr_un,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool
    ) -> Bool {
        withUnsafeBytes(of: address) { bytes in
            guard let start = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress else { return false }
            return body(start, socklen_t(bytes.count))
        }
    }

    private static func address(of path: String) throws(ControlError) -> sockaddr_un {
        var address = sockaddr_un()
        let limit = MemoryLayout.size(ofValue: address.sun_path) - 1
        guard path.utf8.count <= limit else { throw ControlError(code: .tooLong(limit: limit), place: path) }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return address
    }

    /// Removes the stale sockets of killed programs.
    private static func clean(_ folder: String) {
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder)
        for name in names ?? [] where name.hasPrefix("control-") && name.hasSuffix(".sock") {
            try? removeStale("\(folder)/\(name)")
        }
    }

    /// Removes a socket without a listener.
    private static func removeStale(_ path: String) throws(ControlError) {
        let address = try address(of: path)
        guard attributes(of: path).type == .typeSocket else { throw ControlError(code: .notSocket, place: path) }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard probe >= 0 else { throw ControlError(code: .system(errno), place: path) }
        defer { close(probe) }
        // A full queue also means that a program listens.
        if withAddress(address, { connect(probe, $0, $1) == 0 }) || errno == EAGAIN {
            throw ControlError(code: .inUse, place: path)
        }
        guard errno == ECONNREFUSED else { throw ControlError(code: .system(errno), place: path) }
        unlink(path)
    }

    private static func open(folder path: String, isOwn: Bool) throws(ControlError) -> Int32 {
        if isOwn { mkdir(path, 0o700) }
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (isOwn ? O_NOFOLLOW : 0))
        guard descriptor >= 0 else { throw ControlError(code: .system(errno), place: path) }
        guard !isOwn || attributes(of: path).isPrivate else {
            close(descriptor)
            throw ControlError(code: .foreignFolder, place: path)
        }
        return descriptor
    }
}
