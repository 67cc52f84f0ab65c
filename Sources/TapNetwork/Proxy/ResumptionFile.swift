internal import Glibc
internal import Synchronization
internal import TapCore
internal import TapSecurity

/// A ``ResumptionJournal`` in a file, which several proxies may share: 16 bytes per session, the oldest session first.
///
/// If the file grows above twice ``capacity`` sessions, only the newest are kept. If the file cannot be written, the
/// proxy works as without a journal.
package final class ResumptionFile: ResumptionJournal {
    /// Minimum number of sessions that are kept.
    package static let capacity = 4096
    private static let markBytes = 16

    /// The path; missing folders are created.
    package let path: String
    private let lockTime: Duration
    private let onFailure: @Sendable (String) -> Void
    private let state = Mutex(State())
    /// Whether ``State/unwritten`` has marks, for callers that must not wait for the file.
    private let isUnwritten = Atomic(false)

    /// State that is locked while the file is written.
    private struct State {
        /// Whether a failure has been reported.
        var hasFailed = false
        /// Marks that could not be written, the oldest first; at most twice ``capacity``.
        var unwritten: [[UInt8]] = []
    }

    /// Creates a journal; the file is opened or created when it is first needed.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - lockTime: Maximum time to wait for another process that has locked the file; default 1 s. After that, the
    ///     file is read without the lock, and written later.
    ///   - onFailure: Called once, with the operating system's reason, if the file cannot be written.
    package init(
        path: String,
        lockTime: Duration = .seconds(1),
        onFailure: @escaping @Sendable (String) -> Void
    ) {
        self.path = path
        self.lockTime = lockTime
        self.onFailure = onFailure
    }

    /// Returns the first 16 bytes of the SHA-256 digest of a session's id; nil if it cannot be computed.
    package func mark(of session: [UInt8]) -> [UInt8]? {
        let digest = try? OpenSSLCryptography().digest(.sha256, of: session.span)
        return digest.map { Array($0.prefix(Self.markBytes)) }
    }

    /// Appends marks, and those that could not be written before; see ``ResumptionJournal/add(_:)``.
    package func add(_ marks: [[UInt8]]) {
        let whole = marks.filter { $0.count == Self.markBytes }
        guard !whole.isEmpty else { return }
        state.withLock { state in
            state.unwritten += whole
            state.unwritten.removeFirst(max(0, state.unwritten.count - 2 * Self.capacity))
            writeAll(&state)
        }
    }

    /// Whether marks are waiting to be written; see ``ResumptionJournal/hasUnwrittenMarks``.
    package var hasUnwrittenMarks: Bool { isUnwritten.load(ordering: .relaxed) }

    /// Writes the marks that could not be written before; see ``ResumptionJournal/writeAgain()``.
    package func writeAgain() {
        state.withLock { state in
            if !state.unwritten.isEmpty { writeAll(&state) }
        }
    }

    private func writeAll(_ state: inout State) {
        if append(Array(state.unwritten.joined())) {
            state.unwritten = []
        } else if !state.hasFailed {
            let reason = String(cString: strerror(errno))
            state.hasFailed = true
            onFailure(reason)
        }
        isUnwritten.store(!state.unwritten.isEmpty, ordering: .relaxed)
    }

    /// Reads the file, and returns the marks found in it; see ``ResumptionJournal/found(of:)``.
    package func found(of marks: [[UInt8]]) -> Set<[UInt8]> {
        let wanted = Set(marks)
        let unwritten = state.withLock { wanted.intersection($0.unwritten) }
        let bytes = read()
        let places = stride(from: 0, through: bytes.count - Self.markBytes, by: Self.markBytes)
        return unwritten.union(
            places.lazy.map { Array(bytes[$0..<$0 + Self.markBytes]) }.filter { wanted.contains($0) }
        )
    }

    private func append(_ marks: [UInt8]) -> Bool {
        if write(marks) { return true }
        guard errno == ENOENT else { return false }
        makeFolders()
        return write(marks)
    }

    /// Appends marks, and removes the oldest half of a file that has grown too large.
    ///
    /// The file is changed in place, under a lock: a new file would lack marks that other processes append to the old
    /// one in the meantime.
    private func write(_ marks: [UInt8]) -> Bool {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard lock(file, LOCK_EX) else { return false }
        // Overwrite a partial mark at the end of the file, so that all marks stay aligned.
        let end = lseek(file, 0, SEEK_END)
        let whole = end - end % off_t(Self.markBytes)
        guard end >= 0 else { return false }
        let written = pwrite(file, marks, marks.count, whole)
        guard written == marks.count else {
            // A short write sets no error: the disk has no space for the rest.
            let reason = written < 0 ? errno : ENOSPC
            _ = ftruncate(file, whole)
            errno = reason
            return false
        }
        let count = Int(whole) + marks.count
        guard count > 2 * Self.capacity * Self.markBytes else { return true }
        let kept = Self.capacity * Self.markBytes
        let newest = read(file, kept, from: count - kept)
        // If the marks cannot be read completely, the file is shortened at a later write.
        guard newest.count == kept else { return true }
        if pwrite(file, newest, newest.count, 0) == newest.count { _ = ftruncate(file, off_t(newest.count)) }
        return true
    }

    private func read() -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return [] }
        defer { close(file) }
        // Without the lock, a mark that is being written may be missed.
        _ = lock(file, LOCK_SH)
        return read(file, (2 * Self.capacity + 1) * Self.markBytes, from: 0)
    }

    /// Locks the file; other processes hold the lock only briefly. Blocks, so it must not be called on an event loop.
    private func lock(_ file: Int32, _ kind: Int32) -> Bool {
        let end = ContinuousClock.now + lockTime
        while flock(file, kind | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR, ContinuousClock.now < end else { return false }
            usleep(1000)
        }
        return true
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
