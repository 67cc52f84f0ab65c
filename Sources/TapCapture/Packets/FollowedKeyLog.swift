internal import Glibc
package import TapSecurity

/// A key log in a file that grows while it is read: clients add to it with each connection.
package final class FollowedKeyLog {
    /// The secrets that were read.
    package let log = KeyLog()
    private let path: String
    private var descriptor: Int32
    private var position: UInt64 = 0
    /// The beginning of a line that is not whole.
    private var rest: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    /// A line is longer than any of a key log: nothing of it is kept.
    private static let longestLine = 64 << 10

    /// Follows a file, which may be created later.
    ///
    /// - Throws: ``PacketFault`` if it exists and cannot be opened.
    package init(_ path: String) throws(PacketFault) {
        self.path = path
        descriptor = Self.open(path)
        if descriptor < 0, errno != ENOENT { throw .cannotRead(errno: errno) }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Whether the file is there.
    package var exists: Bool { descriptor >= 0 }

    private static func open(_ path: String) -> Int32 {
        // A named pipe would wait for its writer.
        Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    }

    /// Takes what was added since the last call: whole lines, which are given back.
    package func readOn() -> [UInt8] {
        startOver()
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
        rest = lines.count - end > Self.longestLine ? [] : Array(lines[end...])
        lines.removeSubrange(end...)
        log.append(lines.span)
        return lines
    }

    /// Opens the file that has taken the name, or goes to the beginning of one that was emptied.
    private func startOver() {
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
