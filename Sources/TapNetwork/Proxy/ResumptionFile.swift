internal import Glibc
internal import Synchronization
internal import TapCore
internal import TapSecurity

/// A ``ResumptionJournal`` in a file: 16 bytes a session, the oldest first, which several proxies may share.
///
/// Bounded: above twice ``capacity`` sessions, only the newest are kept. If the file cannot be written, the proxy works
/// as without a journal.
package final class ResumptionFile: ResumptionJournal {
    /// Sessions that are kept at least.
    package static let capacity = 4096
    private static let markBytes = 16

    /// The path, in a folder that is created if it is missing.
    package let path: String
    private let lockTime: Duration
    private let onFailure: @Sendable (String) -> Void
    private let state = Mutex(State())
    /// Whether ``State/unwritten`` has marks, for callers that must not wait for the file.
    private let isUnwritten = Atomic(false)

    /// Locked while the file is written.
    private struct State {
        /// Whether a failure was reported.
        var hasFailed = false
        /// Marks that could not be written, the oldest first; at most twice ``capacity``.
        var unwritten: [[UInt8]] = []
    }

    /// The journal at a path; nothing is opened or made before it is needed.
    ///
    /// - Parameters:
    ///   - lockTime: How long another process may keep the file locked; default 1 s. Then it is read without the lock, and
    ///     written later.
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

    /// The first 16 bytes of the SHA-256 digest.
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

    /// Whether marks wait to be written; see ``ResumptionJournal/hasUnwrittenMarks``.
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

    /// Reads the file; see ``ResumptionJournal/found(of:)``.
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

    /// Appends marks, and drops the oldest half of a file that has grown too large.
    ///
    /// In place, and under a lock: a new file would lack the marks that others append to the old one meanwhile.
    private func write(_ marks: [UInt8]) -> Bool {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard lock(file, LOCK_EX) else { return false }
        // A part of a mark, which is at the end of a torn file, would put all behind it out of place.
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
        // What cannot be read whole is shortened another time.
        guard newest.count == kept else { return true }
        if pwrite(file, newest, newest.count, 0) == newest.count { _ = ftruncate(file, off_t(newest.count)) }
        return true
    }

    private func read() -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return [] }
        defer { close(file) }
        // Without the lock a mark may be missed that is being written just now.
        _ = lock(file, LOCK_SH)
        return read(file, (2 * Self.capacity + 1) * Self.markBytes, from: 0)
    }

    /// Locks the file, which others hold for moments only. Never called on an event loop.
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
