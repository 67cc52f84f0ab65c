internal import Dispatch
internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapNetwork

/// The file given with `--keylog`: TLS secrets in the format of SSLKEYLOGFILE, for Wireshark.
///
/// Threads may append concurrently. A separate thread writes to the file, so that event loops do not wait for the disk.
/// Each line is a single write, because other programs may append to the same file.
final class KeyLogFile: Sendable {
    /// Maximum number of bytes that wait to be written; lines above it are lost.
    static let capacity = 4 << 20

    private let path: String
    private let descriptor: Int32
    private let complaint = Once()
    private let queue: DispatchQueue
    private let waiting = Atomic(0)

    /// Opens a file for appending; creates it if it does not exist, readable only by this user.
    ///
    /// - Parameter queue: The queue on which lines are written.
    /// - Throws: A ``Failure`` that names the file, also if other users can read it.
    init(_ path: String, writingOn queue: DispatchQueue = DispatchQueue(label: "keylog")) throws(Failure) {
        self.path = path
        self.queue = queue
        // Do not block on a FIFO without a reader: opening it fails with ENXIO.
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard descriptor >= 0 || errno == ENXIO else { throw .file("cannot write --keylog \(path): \(Self.reason)") }
        guard let status = FileStatus(descriptor: descriptor), status.isRegular else {
            if descriptor >= 0 { close(descriptor) }
            throw .file("--keylog \(path) is not a regular file; choose another name")
        }
        guard status.rights & 0o077 == 0 else {
            close(descriptor)
            throw .file(
                "other users can read --keylog \(path) and decrypt every session with it; run 'chmod 600 \(path)'"
            )
        }
    }

    deinit { close(descriptor) }

    /// Appends a line asynchronously. The first error is printed; sessions continue.
    func append(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        let isFull = waiting.add(bytes.count, ordering: .relaxed).newValue > Self.capacity
        queue.async { [self] in
            defer { waiting.subtract(bytes.count, ordering: .relaxed) }
            guard !isFull else { return reportFailure("\(Self.capacity >> 20) MiB wait to be written") }
            let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if written != bytes.count { reportFailure(Self.reason) }
        }
    }

    /// Waits until all lines are written, but no longer than `time`.
    func flush(within time: Duration) {
        let written = DispatchGroup()
        queue.async(group: written) {}
        _ = written.wait(timeout: .now() + .nanoseconds(Int(time / .nanoseconds(1))))
    }

    private func reportFailure(_ reason: String) {
        guard complaint.isFirst() else { return }
        Console.printDiagnostic("cannot write --keylog \(path): \(reason); it is incomplete from here on")
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
