internal import Glibc

/// An open destination: a regular file of this user, or a pipe, terminal, socket or device.
///
/// The rules of opening: a new file is made with rights 0600 and must not exist (`O_EXCL`); a symbolic link is never
/// followed; an existing regular file is added to only if it belongs to the user we run as, others lose their rights
/// to it (the group keeps reading, for log groups), and it is locked, so that no two writers mix their lines in one
/// file or rotate it under each other. What is no regular file (`/dev/null`, FIFO, terminal) is written as it is.
final class OutputFile {
    /// What is behind the descriptor, as far as writing differs.
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
    let path: String
    let kind: Kind
    /// Whether opening the path again may help where writing fails: not for descriptors that we were given.
    let canReopen: Bool
    let isTerminal: Bool
    /// Bytes in the file: those found when it was opened and those written since.
    private(set) var size: UInt64
    private let descriptor: Int32
    private let isOwned: Bool

    private init(
        path: String,
        kind: Kind,
        descriptor: Int32,
        canReopen: Bool,
        isOwned: Bool = true,
        size: UInt64 = 0
    ) {
        self.path = path
        self.kind = kind
        self.descriptor = descriptor
        self.canReopen = canReopen
        self.isOwned = isOwned
        self.size = size
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
        let flags = O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK
        // Twice, since a file may vanish between being there and being opened.
        for _ in 0..<2 {
            let new = Glibc.open(path, flags | O_RDWR | O_CREAT | O_EXCL, 0o600)
            if new >= 0 { return try accept(new, path: path) }
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
            if old >= 0 { return try accept(old, path: path) }
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
    private static func accept(_ descriptor: Int32, path: String) throws(WriterFault) -> OutputFile {
        func refuse(_ code: WriterFault.Code, _ cause: Int32 = 0) -> WriterFault {
            close(descriptor)
            return WriterFault(code, path, cause)
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw refuse(.cannotOpen, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            guard let kind = kind(of: status, descriptor) else { throw refuse(.wrongKind) }
            return OutputFile(path: path, kind: kind, descriptor: descriptor, canReopen: true)
        }
        guard status.st_uid == geteuid() else { throw refuse(.notOwned) }
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK { throw refuse(.inUse) }
        let rights = status.st_mode & 0o777
        if rights & ~0o640 != 0 { fchmod(descriptor, rights & 0o640) }
        return OutputFile(
            path: path,
            kind: .file,
            descriptor: descriptor,
            canReopen: true,
            size: UInt64(max(0, status.st_size))
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

    /// Whether the file ends within a line, so that a newline is due before anything is added.
    var endsWithinLine: Bool {
        var last: UInt8 = 0
        return kind == .file && size > 0 && pread(descriptor, &last, 1, off_t(size) - 1) == 1 && last != 0x0A
    }

    /// Whether ``path`` still names the file that is open, and not another one or none.
    var isInPlace: Bool {
        var ours = stat()
        var theirs = stat()
        return fstat(descriptor, &ours) == 0 && lstat(path, &theirs) == 0
            && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino
    }

    /// Asks the file system for the size: somebody may have cut the file (logrotate's copytruncate).
    func refreshSize() {
        var status = stat()
        if kind == .file, fstat(descriptor, &status) == 0 { size = UInt64(max(0, status.st_size)) }
    }

    /// What one attempt to write has come to.
    enum Written {
        case bytes(Int)
        /// The other side takes nothing at the moment; the attempt has waited for it a little.
        case blocked
        case failed(errno: Int32)
    }

    /// Writes some of `bytes`, waiting at most `patience` milliseconds for a slow reader.
    func write(_ bytes: UnsafeRawBufferPointer, patience: Int32 = 100) -> Written {
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

/// The parts of a rotated log: `x.log` is being written, `x.log.1` is the newest full one, `x.log.N` the oldest.
struct FileParts {
    let path: String
    /// How many full files are kept.
    let keep: Int

    /// Puts the file aside as `.1`, after each older part has moved up by one and the oldest has gone.
    func shift() throws(WriterFault) {
        guard keep > 0 else {
            guard unlink(path) == 0 || errno == ENOENT else { throw WriterFault(.cannotRotate, path, errno) }
            return
        }
        // Only parts without a gap below them need to move.
        var count = 0
        while count < keep, access("\(path).\(count + 1)", F_OK) == 0 { count += 1 }
        for number in stride(from: min(count, keep - 1), to: 0, by: -1) {
            try move("\(path).\(number)", "\(path).\(number + 1)")
        }
        try move(path, "\(path).1")
    }

    private func move(_ from: String, _ to: String) throws(WriterFault) {
        guard rename(from, to) == 0 || errno == ENOENT else { throw WriterFault(.cannotRotate, path, errno) }
    }
}
