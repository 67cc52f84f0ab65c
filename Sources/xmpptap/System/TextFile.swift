internal import Glibc

/// Small text files, read whole.
enum TextFile {
    /// The file's text.
    ///
    /// - Parameters:
    ///   - path: The file; `-` is standard input.
    ///   - limit: The most bytes it may have; default 1 MiB.
    /// - Throws: A ``Failure`` that names the file and the cause.
    static func read(_ path: String, limit: Int = 1 << 20) throws(Failure) -> String {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .file("cannot read \(path): \(reason)") }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .file("cannot read \(path): \(reason)") }
            if count == 0 { break }
            bytes += chunk[..<count]
            guard bytes.count <= limit else {
                throw .file("\(path) is larger than \(limit) bytes, the limit for such a file")
            }
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .file("\(path) is not UTF-8 text")
        }
        return text
    }

    /// Whether `path` is a regular file.
    static func isRegular(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
