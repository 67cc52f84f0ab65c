internal import Glibc

/// An open destination: a regular file of this user, or a pipe, terminal, socket or device.
///
/// A new file is created with the permissions 0600 and must not exist (`O_EXCL`). A symbolic link is never followed.
/// An existing regular file is appended to only if it belongs to the effective user; other users lose their
/// permissions, except that the group may read, for log groups. The file is locked, so that two writers cannot mix
/// their lines or rotate the file under each other. The permissions of other destinations (`/dev/null`, FIFO,
/// terminal) are not changed.
final class OutputFile {
    /// The kinds of destinations that are written differently.
    enum Kind {
        /// A regular file that we opened: it can be rotated and reopened.
        case file
        /// A regular file that we did not open, or a device, to which writing does not block.
        case device
        /// A pipe, FIFO or terminal, which accepts only as much data as its reader reads.
        case pipe
        case socket
    }

    /// The number of bytes that a pipe accepts at once if poll(2) says that it is writable (`PIPE_BUF`).
    private static let pipeChunk = 4096

    /// The path, or `standard output`.
    private(set) var path: String
    let kind: Kind
    /// Whether reopening the path may help if writing fails. False for inherited descriptors.
    let canReopen: Bool
    let isTerminal: Bool
    /// The number of bytes in the file: those found when it was opened and those written since.
    private(set) var size: UInt64
    private let descriptor: Int32
    private let isOwned: Bool
    /// Compresses the written data if the path ends in `.gz` or `.zst`; otherwise nil.
    private let compressor: Compressor?
    /// Compressed data that is not written yet, and the number of uncompressed bytes that it represents.
    private var waiting: ArraySlice<UInt8> = []
    private var waitingFor = 0
    /// Whether compressed data is not written yet; the file must not be rotated before it is.
    var isWithinWrite: Bool { !waiting.isEmpty }

    private init(
        path: String,
        kind: Kind,
        descriptor: Int32,
        canReopen: Bool,
        isOwned: Bool = true,
        size: UInt64 = 0,
        compressor: Compressor? = nil
    ) {
        self.path = path
        self.kind = kind
        self.descriptor = descriptor
        self.canReopen = canReopen
        self.isOwned = isOwned
        self.size = size
        self.compressor = compressor
        isTerminal = kind == .pipe && isatty(descriptor) == 1
    }

    deinit {
        if isOwned { close(descriptor) }
    }

    /// Opens a destination. If ``size`` is above 0, the file existed and is appended to.
    static func open(_ destination: RecordWriter.Destination) throws(WriterFault) -> OutputFile {
        switch destination {
        case .standardOutput, .path("-"):
            return try adopt(STDOUT_FILENO, path: "standard output", isOwned: false)
        case .numbered(let stem, let ending): return try open(path: RecordWriter.Destination.path(stem, 1, ending))
        case .path(let path):
            guard let number = ownDescriptor(path) else { return try open(path: path) }
            let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
            guard copy >= 0 else { throw WriterFault(.cannotOpen, path, errno) }
            return try adopt(copy, path: path, isOwned: true)
        }
    }

    /// Returns the descriptor that a path such as `/dev/fd/3` names; nil for other paths. Opening that path would
    /// fail for a socket, and would have to follow a symbolic link.
    private static func ownDescriptor(_ path: String) -> Int32? {
        switch path {
        case "/dev/stdout": return STDOUT_FILENO
        case "/dev/stderr": return STDERR_FILENO
        default:
            for prefix in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(prefix) {
                return Int32(path.dropFirst(prefix.count))
            }
            return nil
        }
    }

    /// Creates an output file from an open descriptor.
    private static func adopt(_ descriptor: Int32, path: String, isOwned: Bool) throws(WriterFault) -> OutputFile {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let cause = errno
            if isOwned { close(descriptor) }
            throw WriterFault(.cannotOpen, path, cause)
        }
        guard fcntl(descriptor, F_GETFL) & O_ACCMODE != O_RDONLY else {
            if isOwned { close(descriptor) }
            throw WriterFault(.cannotOpen, path, EBADF)
        }
        return OutputFile(
            path: path,
            kind: kind(of: status, descriptor) ?? .device,
            descriptor: descriptor,
            canReopen: false,
            isOwned: isOwned
        )
    }

    private static func open(path: String) throws(WriterFault) -> OutputFile {
        let compression = Compression(path: path)
        guard compression?.isAvailable ?? true else { throw WriterFault(.noLibrary, path) }
        let flags = O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK
        // Try twice, because an existing file may be deleted before it is opened.
        for _ in 0..<2 {
            let new = Glibc.open(path, flags | O_RDWR | O_CREAT | O_EXCL, 0o600)
            if new >= 0 { return try accept(new, path: path, compression) }
            guard errno == EEXIST else { throw WriterFault(.cannotOpen, path, errno) }

            var status = stat()
            guard lstat(path, &status) == 0 else { continue }
            let format = status.st_mode & S_IFMT
            if format == S_IFLNK { throw WriterFault(.isLink, path) }
            guard format == S_IFREG || format == S_IFIFO || format == S_IFCHR else {
                throw WriterFault(.wrongKind, path)
            }
            // Files are opened for reading too, because their first and last bytes are checked. A FIFO is not: it
            // would be its own reader.
            let old = Glibc.open(path, flags | (format == S_IFREG ? O_RDWR : O_WRONLY))
            if old >= 0 { return try accept(old, path: path, compression) }
            switch errno {
            case ENOENT: continue
            case ELOOP: throw WriterFault(.isLink, path)
            case ENXIO: throw WriterFault(.noReader, path, errno)
            default: throw WriterFault(.cannotOpen, path, errno)
            }
        }
        throw WriterFault(.cannotOpen, path, ENOENT)
    }

    /// Checks an opened file by its descriptor, so that the file cannot be replaced between the check and its use.
    private static func accept(
        _ descriptor: Int32,
        path: String,
        _ compression: Compression?
    ) throws(WriterFault) -> OutputFile {
        func refuse(_ code: WriterFault.Code, _ cause: Int32 = 0) -> WriterFault {
            close(descriptor)
            return WriterFault(code, path, cause)
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw refuse(.cannotOpen, errno) }
        let compressor = compression.flatMap { Compressor($0) }
        guard (compressor == nil) == (compression == nil) else { throw refuse(.cannotOpen, ENOMEM) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            guard let kind = kind(of: status, descriptor) else { throw refuse(.wrongKind) }
            return OutputFile(path: path, kind: kind, descriptor: descriptor, canReopen: true, compressor: compressor)
        }
        guard status.st_uid == geteuid() else { throw refuse(.notOwned) }
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK { throw refuse(.inUse) }
        var beginning: [UInt8] = [0, 0, 0, 0]
        if status.st_size > 0, pread(descriptor, &beginning, beginning.count, 0) > 0,
            Compression(beginning: beginning) != compression
        {
            throw refuse(.otherCompression)
        }
        let rights = status.st_mode & 0o777
        if rights & ~0o640 != 0 { fchmod(descriptor, rights & 0o640) }
        return OutputFile(
            path: path,
            kind: .file,
            descriptor: descriptor,
            canReopen: true,
            size: UInt64(max(0, status.st_size)),
            compressor: compressor
        )
    }

    private static func kind(of status: stat, _ descriptor: Int32) -> Kind? {
        switch status.st_mode & S_IFMT {
        case S_IFREG: .device
        case S_IFIFO: .pipe
        case S_IFSOCK: .socket
        case S_IFCHR: isatty(descriptor) == 1 ? .pipe : .device
        default: nil
        }
    }

    /// Whether the file ends within a line, so that a newline is needed before appending to it.
    var endsWithinLine: Bool {
        var last: UInt8 = 0
        return compressor == nil && kind == .file && size > 0 && pread(descriptor, &last, 1, off_t(size) - 1) == 1
            && last != 0x0A
    }

    /// Whether ``path`` still names the open file.
    var isInPlace: Bool { place == .kept }

    /// Whether an open file has kept its name.
    enum Place {
        /// ``path`` names the open file.
        case kept
        /// The open file has another name: ``path`` names another file, or none.
        case moved
        /// The open file has no name any more.
        case deleted
    }

    /// Whether the open file still has its path.
    var place: Place {
        var ours = stat()
        var theirs = stat()
        // ESTALE: another machine has deleted the file from a network file system.
        guard fstat(descriptor, &ours) == 0 else { return errno == ESTALE ? .deleted : .moved }
        guard ours.st_nlink > 0 else { return .deleted }
        // If the folder may not be searched, it is unknown whether the file was moved: assume that it was not.
        guard lstat(path, &theirs) == 0 else { return errno == ENOENT || errno == ENOTDIR ? .moved : .kept }
        return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino ? .kept : .moved
    }

    /// Reads the size from the file system: another program may have truncated the file (logrotate's copytruncate).
    func refreshSize() {
        var status = stat()
        if kind == .file, fstat(descriptor, &status) == 0 { size = UInt64(max(0, status.st_size)) }
    }

    /// Sets the path after the file was renamed.
    func rename(to path: String) { self.path = path }

    /// Flushes the written data to the disk.
    ///
    /// - Returns: The system's error number if that failed; 0 if not.
    func synchronize() -> Int32 { kind != .file || fdatasync(descriptor) == 0 ? 0 : errno }

    /// The result of one attempt to write.
    enum Written {
        case bytes(Int)
        /// The reader accepts no data at the moment; the write has waited for `patience`.
        case blocked
        case failed(errno: Int32)
    }

    /// Writes some of `bytes`, waiting at most `patience` milliseconds for a slow reader.
    ///
    /// With compression, all of the bytes are written or none: if that takes several calls, each must begin with the
    /// same bytes.
    func write(_ bytes: UnsafeRawBufferPointer, patience: Int32 = 100) -> Written {
        guard let compressor, !bytes.isEmpty else { return writeThrough(bytes, patience) }
        if waiting.isEmpty {
            // If another program has truncated the file, begin a new member: the rest of the current one cannot be
            // decompressed.
            let before = size
            refreshSize()
            if size < before { _ = compressor.finish() }
            guard let compressed = compressor.compress(bytes.bytes) else { return .failed(errno: ENOMEM) }
            waiting = compressed[...]
            waitingFor = bytes.count
        }
        let result = waiting.withUnsafeBytes { writeThrough($0, patience) }
        guard case .bytes(let count) = result else { return result }
        waiting = waiting.dropFirst(count)
        return .bytes(waiting.isEmpty ? waitingFor : 0)
    }

    /// Ends the compressed data; does nothing without compression. Does not retry if writing fails: all data can be
    /// read even without the end.
    func finish() {
        guard let compressor, waiting.isEmpty else { return }
        var rest = compressor.finish()[...]
        while !rest.isEmpty, case .bytes(let count) = rest.withUnsafeBytes({ writeThrough($0, 100) }) {
            rest = rest.dropFirst(count)
        }
    }

    private func writeThrough(_ bytes: UnsafeRawBufferPointer, _ patience: Int32) -> Written {
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return .bytes(0) }
        var count = bytes.count
        if kind == .pipe {
            // An inherited descriptor may be in blocking mode, which we must not change: never write more than it
            // accepts.
            guard waitUntilWritable(patience) else { return .blocked }
            count = min(count, Self.pipeChunk)
        }
        while true {
            let written =
                kind == .socket
                ? send(descriptor, start, count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
                : Glibc.write(descriptor, start, count)
            if written >= 0 {
                size &+= UInt64(written)
                return .bytes(written)
            }
            switch errno {
            case EINTR: continue
            case EAGAIN, EWOULDBLOCK:
                _ = waitUntilWritable(patience)
                return .blocked
            default: return .failed(errno: errno)
            }
        }
    }

    private func waitUntilWritable(_ milliseconds: Int32) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        // A broken pipe is reported as POLLERR; the next write then fails with the error number.
        return poll(&request, 1, milliseconds) > 0
    }
}
