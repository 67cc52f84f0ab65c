internal import Glibc
internal import TapCapture
internal import TapSecurity

enum TextFile {
    /// Reads a file as text.
    ///
    /// - Parameters:
    ///   - path: The file; `-` is standard input.
    ///   - limit: Maximum size in bytes; default 1 MiB.
    /// - Throws: A ``Failure`` that names the file and the cause.
    static func read(_ path: String, limit: Int = 1 << 20) throws(Failure) -> String {
        guard let text = String(validating: try bytes(path, limit: limit), as: UTF8.self) else {
            throw .file("\(name(path)) is not UTF-8 text")
        }
        return text
    }

    /// Reads a file as bytes; see ``read(_:limit:)``.
    static func bytes(_ path: String, limit: Int) throws(Failure) -> [UInt8] {
        let bytes = try start(of: path, count: limit + 1)
        guard bytes.count <= limit else {
            throw .file("\(name(path)) is larger than \(limit) bytes, the limit for such a file")
        }
        return bytes
    }

    /// Returns the first bytes of a file, at most `count`.
    static func start(of path: String, count: Int) throws(Failure) -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .file("cannot read \(path): \(reason)") }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        guard let bytes = OpenFile.read(descriptor, limit: count - 1) else {
            throw .file("cannot read \(name(path)): \(reason)")
        }
        return bytes
    }

    /// Whether `path` is a regular file.
    static func isRegular(_ path: String) -> Bool { FileStatus(path: path)?.isRegular == true }

    private static func name(_ path: String) -> String { path == "-" ? "standard input" : path }

    private static var reason: String { String(cString: strerror(errno)) }
}
