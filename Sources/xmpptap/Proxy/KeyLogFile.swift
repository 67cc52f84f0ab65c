internal import Glibc
internal import TapNetwork

/// The file that `--keylog` names: the secrets of TLS connections in the form of SSLKEYLOGFILE, for Wireshark.
///
/// Lines of several threads do not mix: each is written at once.
final class KeyLogFile: Sendable {
    private let path: String
    private let descriptor: Int32
    private let complaint = Once()

    /// Opens a file to append to, or makes one that only this user can read.
    ///
    /// - Throws: A ``Failure`` that names the file, also where others can read it: who has the secrets has the sessions.
    init(_ path: String) throws(Failure) {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .file("cannot write --keylog \(path): \(Self.reason)") }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw .file("--keylog \(path) is no file")
        }
        guard status.st_mode & 0o077 == 0 else {
            close(descriptor)
            throw .file(
                "others can read --keylog \(path), and with it every session; take that away: chmod 600 \(path)"
            )
        }
    }

    deinit { close(descriptor) }

    /// Appends a line. Where that fails it is said once; the sessions go on.
    func append(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        guard written != bytes.count, complaint.isFirst() else { return }
        Console.complain("cannot write --keylog \(path): \(Self.reason); it is incomplete from here on")
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
