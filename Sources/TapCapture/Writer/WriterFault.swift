internal import Glibc

/// The reason why a log or capture file cannot be opened, written, rotated or reopened.
package struct WriterFault: Error, Sendable, Hashable {
    /// The kind of failure, as a stable code for records and metrics.
    package struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The code as text.
        package let description: String

        /// The file cannot be opened.
        package static let cannotOpen = Code(description: "log-cannot-open")
        /// The path is a symbolic link, which is never followed.
        package static let isLink = Code(description: "log-is-link")
        /// The file belongs to another user.
        package static let notOwned = Code(description: "log-not-owned")
        /// The path is a directory, block device or socket.
        package static let wrongKind = Code(description: "log-wrong-kind")
        /// Another writer has the file open.
        package static let inUse = Code(description: "log-in-use")
        /// The file has content, and the options do not allow appending to it.
        package static let exists = Code(description: "log-exists")
        /// The path is a FIFO without a reader.
        package static let noReader = Code(description: "log-no-reader")
        /// The file's compression does not match the ending of its name.
        package static let otherCompression = Code(description: "log-other-compression")
        /// The compression library for the ending of the file's name is not installed.
        package static let noLibrary = Code(description: "log-no-library")
        /// The disk is full, or the quota or the file size limit is reached.
        package static let diskFull = Code(description: "log-disk-full")
        /// The reader of a pipe or socket has closed it, or a terminal was closed.
        package static let brokenPipe = Code(description: "log-broken-pipe")
        /// Any other failure to write.
        package static let writeFailed = Code(description: "log-write-failed")
        /// The file could not be rotated and keeps growing.
        package static let cannotRotate = Code(description: "log-cannot-rotate")
        /// The open file was deleted.
        package static let deleted = Code(description: "log-deleted")
        /// The open file was moved, or another one has its name.
        package static let moved = Code(description: "log-moved")
        /// The new file could not be opened; writing continues in the old one.
        package static let cannotReopen = Code(description: "log-cannot-reopen")
    }

    /// The kind of failure.
    package let code: Code
    /// The path of the file, or `standard output`.
    package let path: String
    /// The system's error number; 0 if no system call failed.
    package let errno: Int32

    init(_ code: Code, _ path: String, _ errno: Int32 = 0) {
        self.code = code
        self.path = path
        self.errno = errno
    }

    /// Returns the reason why a file cannot be created at a path, judged by the permissions of its folder only; nil
    /// if it can.
    package static func creating(_ path: String) -> WriterFault? {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        guard access(folder, W_OK | X_OK) != 0 else { return nil }
        return WriterFault(.cannotOpen, path, Glibc.errno)
    }

    /// The folder of the path if it does not exist; otherwise nil.
    private var missingFolder: String? {
        guard errno == ENOENT || errno == EISDIR, let slash = path.lastIndex(of: "/") else { return nil }
        let folder = String(path[...slash])
        return FileStatus(path: folder) == nil ? folder : nil
    }

    /// Returns the fault of a failed write.
    ///
    /// - Parameters:
    ///   - path: The path of the file, or `standard output`.
    ///   - errno: The system's error number.
    ///   - isTerminal: Whether the destination is, or was, a terminal: writing to a closed terminal fails with EIO.
    package static func writing(_ path: String, _ errno: Int32, isTerminal: Bool = false) -> WriterFault {
        switch errno {
        case EIO where isTerminal: WriterFault(.brokenPipe, path, errno)
        case ENOSPC, EDQUOT, EFBIG: WriterFault(.diskFull, path, errno)
        case EPIPE, ECONNRESET: WriterFault(.brokenPipe, path, errno)
        default: WriterFault(.writeFailed, path, errno)
        }
    }
}

extension WriterFault: CustomStringConvertible {
    /// A message of one line: the file, the cause and what to do.
    package var description: String {
        let reason = errno == 0 ? "" : String(cString: strerror(errno))
        return switch code {
        case .cannotOpen where missingFolder != nil:
            "cannot open \(path) for writing: the folder \(missingFolder ?? "") does not exist; create it first"
        case .cannotOpen: "cannot open \(path) for writing: \(reason)"
        case .isLink: "\(path) is a symbolic link, which logs do not follow; name the file itself"
        case .notOwned: "\(path) belongs to another user; choose another name or remove it"
        case .wrongKind: "\(path) is not a file, pipe or terminal; choose another name"
        case .inUse: "\(path) is being written by another log or another xmpptap; choose another name"
        case .exists: "\(path) exists; choose another name or remove it"
        case .otherCompression: "\(path) exists and its content is not what its ending says; choose another name"
        case .noLibrary: "cannot compress \(path): \(Compression.missingLibrary)"
        case .noReader: "no process reads from \(path); start its reader first"
        case .brokenPipe where errno == EIO: "cannot write \(path): the terminal was closed"
        case .brokenPipe: "cannot write \(path): its reader has closed the pipe"
        case .diskFull, .writeFailed: "cannot write \(path): \(reason)"
        case .deleted: "\(path) was deleted while it was written; its records are lost, a new file is begun"
        case .moved: "\(path) was moved or replaced while it was written; later records are written to a new file"
        case .cannotRotate: "cannot rotate \(path): \(reason); the file keeps growing"
        case .cannotReopen: "cannot reopen \(path): \(reason); still writing to the old file"
        default: "\(path): \(code) \(reason)"
        }
    }
}
