internal import Glibc
package import TapSecurity

/// A TLS key log file that is read while clients append the secrets of new connections.
package final class FollowedKeyLog {
    /// The secrets read so far.
    package let log = KeyLog()
    private let path: String
    private var descriptor: Int32
    private var position: UInt64 = 0
    /// An incomplete line at the end of the bytes read so far.
    private var rest: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    /// Maximum bytes of an incomplete line. A longer one is discarded, because no line of a key log is that long.
    private static let maximumLineLength = 64 << 10

    /// Opens a file to follow. The file may be created later.
    ///
    /// - Throws: ``PacketFault`` if the file exists and cannot be opened.
    package init(_ path: String) throws(PacketFault) {
        self.path = path
        descriptor = Self.open(path)
        if descriptor < 0, errno != ENOENT { throw .cannotRead(errno: errno) }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Whether the file has been opened.
    package var exists: Bool { descriptor >= 0 }

    private static func open(_ path: String) -> Int32 {
        // Without O_NONBLOCK, opening a named pipe would wait for its writer.
        Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    }

    /// Adds the complete lines appended since the last call to ``log``, and returns them.
    package func readOn() -> [UInt8] {
        reopenIfReplacedOrTruncated()
        guard descriptor >= 0 else { return [] }
        var lines: [UInt8] = []
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            position += UInt64(count)
            lines += buffer[..<count]
        }
        guard !lines.isEmpty else { return [] }
        lines = rest + lines
        let end = lines.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        rest = lines.count - end > Self.maximumLineLength ? [] : Array(lines[end...])
        lines.removeSubrange(end...)
        log.append(lines.span)
        return lines
    }

    /// Opens the file if it is new or was replaced, or goes back to its beginning if it was truncated.
    private func reopenIfReplacedOrTruncated() {
        guard let named = FileStatus(path: path) else { return }
        if descriptor >= 0, let open = FileStatus(descriptor: descriptor), open.identity == named.identity {
            guard named.isRegular, named.size < position else { return }
            lseek(descriptor, 0, SEEK_SET)
        } else {
            let other = Self.open(path)
            guard other >= 0 else { return }
            if descriptor >= 0 { close(descriptor) }
            descriptor = other
        }
        position = 0
        rest = []
    }
}
