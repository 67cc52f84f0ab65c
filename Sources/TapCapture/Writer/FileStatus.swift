// The headers of CPcap declare `timespec` too, and the compiler may use that definition.
internal import CPcap
internal import Glibc

/// The properties of a file, from stat(2). They are read in this module because the compiler may confuse `struct
/// stat` with NIO's declaration in a module that imports NIO too, and then not find its members.
package struct FileStatus: Sendable {
    /// Whether it is a regular file, not a pipe, device or folder.
    package let isRegular: Bool
    /// Whether it is a folder.
    package let isFolder: Bool
    /// The permission bits, for example `0o600`.
    package let rights: UInt32
    /// The user ID of the owner.
    package let owner: UInt32
    /// The number of hard links; 0 if the file was removed.
    package let links: UInt64
    /// The size of a regular file in bytes.
    package let size: UInt64
    /// The device and inode numbers, which identify the file whatever its name is.
    package let identity: [UInt64]
    /// The time of the last modification, in seconds since 1970.
    package let modified: Int

    /// Creates the status of the file at a path; follows symbolic links. Nil if the file does not exist or cannot be
    /// accessed.
    package init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Creates the status of an open file; nil if the descriptor is invalid.
    package init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Returns the names in a folder, unsorted and including `.` and `..`; nil if the folder cannot be read. `errno`
    /// then has the reason.
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
