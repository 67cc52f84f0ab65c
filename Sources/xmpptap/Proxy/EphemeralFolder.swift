internal import Glibc
internal import TapSecurity

/// The temporary folders of ``EphemeralAuthority``: those in use, and those that killed processes left behind.
enum EphemeralFolder {
    /// What their names begin with; six characters follow.
    static let prefix = "xmpptap-temporary-"
    /// Seconds within which a process locks a folder that it created.
    private static let patience = 60

    /// Marks a folder as in use until the descriptor is closed; -1 on failure.
    static func lock(_ path: String) -> Int32 {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        flock(descriptor, LOCK_EX | LOCK_NB)
        return descriptor
    }

    /// Removes this user's folders in `place` that no process uses. Keeps folders that contain other files, and folders
    /// created within the last `seconds`.
    static func sweep(_ place: String, olderThan seconds: Int = patience) {
        guard let listing = opendir(place) else { return }
        var names: [String] = []
        while let entry = readdir(listing) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { name in
                String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix(prefix), name.utf8.count == prefix.utf8.count + 6 { names.append(name) }
        }
        closedir(listing)
        for name in names { remove("\(place)/\(name)", olderThan: seconds) }
    }

    private static func remove(_ path: String, olderThan seconds: Int) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_uid == geteuid(),
            time(nil) - status.st_mtim.tv_sec >= seconds, flock(descriptor, LOCK_EX | LOCK_NB) == 0
        else { return }
        let folder = AuthorityFolder(path)
        for name in (try? folder.names()) ?? [] { try? folder.remove(name) }
        rmdir(path)
    }
}
