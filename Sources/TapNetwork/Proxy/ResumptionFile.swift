internal import Glibc
internal import Synchronization
public import TapCore
internal import TapSecurity

/// A ``ResumptionJournal`` in a file: 16 bytes a session, the oldest first, which several proxies may share.
///
/// Bounded: of more than twice ``capacity`` sessions the newest ones stay. A proxy without a file that it can write goes on
/// as one without a journal.
public final class ResumptionFile: ResumptionJournal {
    /// Sessions that are kept at least.
    public static let capacity = 4096
    private static let markBytes = 16
    /// How often a lock is tried, a millisecond apart.
    private static let lockTries = 50

    /// Where it is, in a folder that is made where it is missing.
    public let path: String
    private let onFailure: @Sendable (String) -> Void
    /// Held while the file is written: whether a failure was reported.
    private let hasFailed = Mutex(false)

    /// The journal at a path; nothing is opened or made before it is needed.
    ///
    /// - Parameter onFailure: Told once, with the words of the operating system, where the file cannot be written.
    public init(path: String, onFailure: @escaping @Sendable (String) -> Void) {
        self.path = path
        self.onFailure = onFailure
    }

    /// The first 16 bytes of the SHA-256 digest.
    public func mark(of session: [UInt8]) -> [UInt8]? {
        let digest = try? OpenSSLCryptography().digest(.sha256, of: session.span)
        return digest.map { Array($0.prefix(Self.markBytes)) }
    }

    /// Appends a mark; see ``ResumptionJournal/add(_:)``.
    public func add(_ mark: [UInt8]) {
        guard mark.count == Self.markBytes else { return }
        hasFailed.withLock { hasFailed in
            guard !append(mark), !hasFailed else { return }
            hasFailed = true
            onFailure(String(cString: strerror(errno)))
        }
    }

    /// Reads the file; see ``ResumptionJournal/contains(_:)``.
    public func contains(_ mark: [UInt8]) -> Bool {
        let marks = read()
        return stride(from: 0, to: marks.count - mark.count + 1, by: Self.markBytes).contains {
            marks[$0..<$0 + mark.count].elementsEqual(mark)
        }
    }

    private func append(_ mark: [UInt8]) -> Bool {
        if write(mark) { return true }
        guard errno == ENOENT else { return false }
        makeFolders()
        return write(mark)
    }

    /// Appends a mark, and drops the oldest half of a file that has grown too large.
    ///
    /// In place, and under a lock: a new file would lack the marks that others append to the old one meanwhile.
    private func write(_ mark: [UInt8]) -> Bool {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard lock(file, LOCK_EX) else { return false }
        // A part of a mark, which is at the end of a torn file, would put all behind it out of place.
        let end = lseek(file, 0, SEEK_END)
        let whole = end - end % off_t(Self.markBytes)
        guard end >= 0, pwrite(file, mark, mark.count, whole) == mark.count else {
            let reason = errno
            if end >= 0 { _ = ftruncate(file, whole) }
            errno = reason
            return false
        }
        let count = Int(whole) + mark.count
        guard count > 2 * Self.capacity * Self.markBytes else { return true }
        let kept = Self.capacity * Self.markBytes
        let marks = read(file, kept, from: count - kept)
        // What cannot be read whole is shortened another time.
        guard marks.count == kept else { return true }
        return pwrite(file, marks, marks.count, 0) == marks.count
            && ftruncate(file, off_t(marks.count)) == 0
    }

    private func read() -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return [] }
        defer { close(file) }
        // Without the lock a mark may be missed that is being written just now.
        _ = lock(file, LOCK_SH)
        return read(file, (2 * Self.capacity + 1) * Self.markBytes, from: 0)
    }

    /// Locks the file, which others hold for moments only: a thread that serves many sessions waits no longer.
    private func lock(_ file: Int32, _ kind: Int32) -> Bool {
        for _ in 0..<Self.lockTries {
            if flock(file, kind | LOCK_NB) == 0 { return true }
            guard errno == EWOULDBLOCK || errno == EINTR else { return false }
            usleep(1000)
        }
        errno = EWOULDBLOCK
        return false
    }

    private func read(_ file: Int32, _ most: Int, from start: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
            count = max(0, pread(file, buffer.baseAddress, most, off_t(start)))
        }
    }

    private func makeFolders() {
        var end = path.startIndex
        while let next = path[end...].dropFirst().firstIndex(of: "/") {
            end = next
            mkdir(String(path[..<end]), 0o700)
        }
    }
}
