internal import Glibc

/// An open destination: a regular file of this user, or a pipe, terminal, socket or device.
///
/// The rules of opening: a new file is made with rights 0600 and must not exist (`O_EXCL`); a symbolic link is never
/// followed; an existing regular file is added to only if it belongs to the user we run as, others lose their rights
/// to it (the group keeps reading, for log groups), and it is locked, so that no two writers mix their lines in one
/// file or rotate it under each other. Other destinations (`/dev/null`, FIFO, terminal) are written as they are.
final class OutputFile {
    /// The kind of destination, as far as writing differs.
    enum Kind {
        /// A regular file that we opened: it can be rotated and reopened.
        case file
        /// A regular file or device that takes what it is given.
        case device
        /// A pipe, FIFO or terminal, which takes only as much as is read on the other side.
        case pipe
        case socket
    }

    /// A pipe takes this much at once when poll(2) says that it takes anything (`PIPE_BUF`).
    private static let pipeChunk = 4096

    /// The path, or `standard output`.
    private(set) var path: String
    let kind: Kind
    /// Whether opening the path again may help where writing fails: not for descriptors that we were given.
    let canReopen: Bool
    let isTerminal: Bool
    /// Bytes in the file: those found when it was opened and those written since.
    private(set) var size: UInt64
    private let descriptor: Int32
    private let isOwned: Bool
    /// Compresses what is written, if the path ends in `.gz` or `.zst`.
    private let compressor: Compressor?
    /// Compressed data that is not written yet, and the number of bytes that it represents.
    private var waiting: ArraySlice<UInt8> = []
    private var waitingFor = 0
    /// Whether something was compressed that is to be written before the file is left.
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

    /// Opens a destination; ``size`` above 0 means that a file was there and is added to.
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

    /// The descriptor that a path such as `/dev/fd/3` means. Opened by that name a socket would fail, and a link would
    /// have to be followed.
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

    /// Takes over a descriptor that is open already.
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
        // Twice, since a file may vanish between being there and being opened.
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
            // Reading is only for the last byte of a file; a FIFO opened for both would hide a missing reader.
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

    /// Judges what was opened, by its descriptor, so that nothing can be swapped in between.
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

    /// Whether the file ends within a line, so that a newline is needed before adding to it.
    var endsWithinLine: Bool {
        var last: UInt8 = 0
        return compressor == nil && kind == .file && size > 0 && pread(descriptor, &last, 1, off_t(size) - 1) == 1
            && last != 0x0A
    }

    /// Whether ``path`` still names the file that is open, and not another one or none.
    var isInPlace: Bool { place == .kept }

    /// Whether an open file has kept its name.
    enum Place {
        /// ``path`` names it.
        case kept
        /// It has another name: ``path`` names another file, or none.
        case moved
        /// It has no name.
        case deleted
    }

    /// Compares the open file with its path.
    var place: Place {
        var ours = stat()
        var theirs = stat()
        // ESTALE: another machine has deleted the file from a network file system.
        guard fstat(descriptor, &ours) == 0 else { return errno == ESTALE ? .deleted : .moved }
        guard ours.st_nlink > 0 else { return .deleted }
        // Without a right to search the folder, nothing is known of its files.
        guard lstat(path, &theirs) == 0 else { return errno == ENOENT || errno == ENOTDIR ? .moved : .kept }
        return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino ? .kept : .moved
    }

    /// Asks the file system for the size: somebody may have cut the file (logrotate's copytruncate).
    func refreshSize() {
        var status = stat()
        if kind == .file, fstat(descriptor, &status) == 0 { size = UInt64(max(0, status.st_size)) }
    }

    /// The file has this name from now on.
    func rename(to path: String) { self.path = path }

    /// Flushes the written data to the disk.
    ///
    /// - Returns: The system's error number if that failed; 0 if not.
    func synchronize() -> Int32 { kind != .file || fdatasync(descriptor) == 0 ? 0 : errno }

    /// What one attempt to write has come to.
    enum Written {
        case bytes(Int)
        /// The other side takes nothing at the moment; the attempt has waited for it a little.
        case blocked
        case failed(errno: Int32)
    }

    /// Writes some of `bytes`, waiting at most `patience` milliseconds for a slow reader.
    ///
    /// Compressed, all or none of them are: as long as that takes several attempts, the same bytes are to be given first.
    func write(_ bytes: UnsafeRawBufferPointer, patience: Int32 = 100) -> Written {
        guard let compressor, !bytes.isEmpty else { return writeThrough(bytes, patience) }
        if waiting.isEmpty {
            // Somebody may have cut the file, and nothing reads the rest of a member without its beginning.
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

    /// Ends the compressed data, if it is. Without the end, which takes no second attempt, all of it can be read as well.
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
            // A descriptor we were given may be blocking, and is not ours to change: never write more than it takes.
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
        // A broken pipe shows as POLLERR; writing then gives the errno.
        return poll(&request, 1, milliseconds) > 0
    }
}
