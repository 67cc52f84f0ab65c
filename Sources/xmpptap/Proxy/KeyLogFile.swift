internal import Glibc
internal import TapCapture
internal import TapNetwork

/// The file that `--keylog` names: the secrets of TLS connections in the form of SSLKEYLOGFILE, for Wireshark.
///
/// Threads may append concurrently: each line is one write.
final class KeyLogFile: Sendable {
    private let path: String
    private let descriptor: Int32
    private let complaint = Once()

    /// Opens a file to append to, or creates one that only this user can read.
    ///
    /// - Throws: A ``Failure`` that names the file, also if other users can read it.
    init(_ path: String) throws(Failure) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .file("cannot write --keylog \(path): \(Self.reason)") }
        guard let status = FileStatus(descriptor: descriptor), status.isRegular else {
            close(descriptor)
            throw .file("--keylog \(path) is not a regular file")
        }
        guard status.rights & 0o077 == 0 else {
            close(descriptor)
            throw .file(
                "other users can read --keylog \(path) and decrypt every session with it; run 'chmod 600 \(path)'"
            )
        }
    }

    deinit { close(descriptor) }

    /// Appends a line. The first error is printed; the sessions continue.
    func append(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        guard written != bytes.count, complaint.isFirst() else { return }
        Console.complain("cannot write --keylog \(path): \(Self.reason); it is incomplete from here on")
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
