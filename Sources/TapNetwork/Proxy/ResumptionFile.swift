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
        if write(mark, to: path, O_APPEND) { return shorten() }
        guard errno == ENOENT else { return false }
        makeFolders()
        return write(mark, to: path, O_APPEND)
    }

    /// Drops the oldest half of a file that has grown too large.
    private func shorten() -> Bool {
        let marks = read()
        guard marks.count > 2 * Self.capacity * Self.markBytes else { return true }
        let new = "\(path).new"
        return write(Array(marks.suffix(Self.capacity * Self.markBytes)), to: new, O_TRUNC) && rename(new, path) == 0
    }

    private func write(_ bytes: [UInt8], to path: String, _ flag: Int32) -> Bool {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flag, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        let count = Glibc.write(file, bytes, bytes.count)
        guard count != bytes.count else { return true }
        // Part of a mark would put all behind it out of place.
        let end = lseek(file, 0, SEEK_END)
        if count > 0, end >= 0 { _ = ftruncate(file, end - end % off_t(Self.markBytes)) }
        return false
    }

    private func read() -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return [] }
        defer { close(file) }
        let most = (2 * Self.capacity + 1) * Self.markBytes
        return [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
            count = max(0, Glibc.read(file, buffer.baseAddress, most))
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
