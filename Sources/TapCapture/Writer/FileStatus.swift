// Its headers declare `timespec` too, and the compiler may count that as the one definition.
internal import CPcap
internal import Glibc

/// The system's data about a file. Read here because a module that also imports NIO's may confuse `struct stat` with
/// theirs, and then not see its members.
package struct FileStatus: Sendable {
    /// A regular file, no pipe, device or folder.
    package let isRegular: Bool
    /// A folder.
    package let isFolder: Bool
    /// Permission bits, `0o600`.
    package let rights: UInt32
    /// The user's number.
    package let owner: UInt32
    /// Names that the file has; 0 for one that was removed.
    package let links: UInt64
    /// Bytes, of a regular file.
    package let size: UInt64
    /// Device and number: the same under whatever name.
    package let identity: [UInt64]
    /// When it was last written, in seconds since 1970.
    package let modified: Int

    /// Of the file at a path, following symbolic links; nil if it does not exist or cannot be accessed.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Of an open file; nil if the descriptor is invalid.
    package init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Returns the names in a folder, in no order and with `.` and `..`; nil if it cannot be read, for the reason in `errno`.
    package static func names(in folder: String) -> [String]? {
        guard let listing = opendir(folder) else { return nil }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            )
        }
        return names
    }

    private init(_ status: stat) {
        isRegular = status.st_mode & S_IFMT == S_IFREG
        isFolder = status.st_mode & S_IFMT == S_IFDIR
        rights = status.st_mode & 0o7777
        owner = status.st_uid
        links = UInt64(status.st_nlink)
        size = UInt64(clamping: status.st_size)
        identity = [UInt64(status.st_dev), UInt64(status.st_ino)]
        modified = status.st_mtim.tv_sec
    }
}
