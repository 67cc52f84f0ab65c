internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapRecord

/// The three descriptors everybody has. No call here fails: whether standard output took everything is asked once, at the
/// end, by ``fault``; what standard error does not take nobody can be told.
enum Console {
    /// The error number of the write to standard output that failed; 0 where none has.
    private static let failure = Atomic<Int32>(0)

    /// Why standard output has not taken everything; nil where it has. After it nothing more is written there.
    static var fault: WriterFault? {
        let cause = failure.load(ordering: .relaxed)
        return cause == 0 ? nil : .writing("standard output", cause)
    }

    /// Writes `text` and a newline to standard output.
    static func print(_ text: String) {
        write(text, to: STDOUT_FILENO)
    }

    /// Writes one line to standard output; what could steer a terminal is escaped.
    static func show(_ line: String) { write(escaped(line), to: STDOUT_FILENO) }

    /// Writes one line to standard error; what could steer a terminal is escaped.
    static func tell(_ line: String) {
        write(escaped(line), to: STDERR_FILENO)
    }

    /// The line with what could steer a terminal escaped.
    static func escaped(_ line: String) -> String {
        var buffer = LineBuffer(capacity: line.utf8.count + 1)
        buffer.appendEscaped(line)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }

    /// Writes a question to standard error, without a newline.
    static func prompt(_ text: String) { write(Array(escaped(text).utf8)[...], to: STDERR_FILENO) }

    /// Writes one line to standard error after the program's name, as every warning and error is.
    static func complain(_ line: String) {
        tell("xmpptap: \(line)")
    }

    /// Writes bytes to standard output as they are.
    static func write(_ bytes: [UInt8]) { write(bytes[...], to: STDOUT_FILENO) }

    /// The file that standard output goes to; nil where it is none, or has no name.
    static var outputPath: String? {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink > 0 else {
            return nil
        }
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/fd/\(STDOUT_FILENO)", &path, path.count)
        guard count > 0, count < path.count else { return nil }
        return String(validating: path.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Whether a person reads standard output.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// The value of an environment variable; nil where it is unset or empty.
    static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }

    /// What this machine calls itself; empty where it does not say.
    static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static func write(_ text: String, to descriptor: Int32) {
        write(Array("\(text)\n".utf8)[...], to: descriptor)
    }

    private static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) {
        guard descriptor != STDOUT_FILENO || failure.load(ordering: .relaxed) == 0 else { return }
        var rest = bytes
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written > 0 {
                rest = rest.dropFirst(written)
            } else if errno == EAGAIN {
                var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&request, 1, -1)
            } else if errno != EINTR {
                if descriptor == STDOUT_FILENO { failure.store(errno, ordering: .relaxed) }
                return
            }
        }
    }
}
