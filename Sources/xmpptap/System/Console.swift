internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapRecord

/// The standard streams. No call throws: ``fault`` says at the end whether standard output failed; errors of standard error
/// are ignored.
enum Console {
    /// The error number of the failed write to standard output; 0 if none failed.
    private static let failure = Atomic<Int32>(0)

    /// The error of standard output, after which nothing more is written there; nil if there was none.
    static var fault: WriterFault? {
        let cause = failure.load(ordering: .relaxed)
        return cause == 0 ? nil : .writing("standard output", cause, isTerminal: wasTerminal)
    }

    /// Whether standard output is a terminal, or was one until it was closed.
    private static var wasTerminal: Bool { isatty(STDOUT_FILENO) == 1 || errno == EIO }

    /// Writes `text` and a newline to standard output.
    static func print(_ text: String) {
        write(text, to: STDOUT_FILENO)
    }

    /// Writes one line to standard output, with control characters escaped.
    static func show(_ line: String) { write(escaped(line), to: STDOUT_FILENO) }

    /// Writes one line to standard error, with control characters escaped.
    static func tell(_ line: String) {
        write(escaped(line), to: STDERR_FILENO)
    }

    /// Writes one line without control characters to standard error.
    static func tell(escaped line: String) { write(line, to: STDERR_FILENO) }

    /// The line with control characters escaped.
    static func escaped(_ line: String) -> String {
        LineBuffer.escaped(line)
    }

    /// Writes a question to standard error, without a newline.
    static func prompt(_ text: String) { write(Array(escaped(text).utf8)[...], to: STDERR_FILENO) }

    /// Writes a warning or error to standard error, after the program's name.
    static func complain(_ line: String) {
        tell("xmpptap: \(line)")
    }

    /// Writes bytes to standard output unchanged.
    static func write(_ bytes: [UInt8]) { write(bytes[...], to: STDOUT_FILENO) }

    /// The path of the regular file that is standard output; nil if it is none.
    static var outputPath: String? {
        guard let status = FileStatus(descriptor: STDOUT_FILENO), status.isRegular, status.links > 0 else { return nil }
        return target(ofLink: "/proc/self/fd/\(STDOUT_FILENO)")
    }

    /// The path of this program; nil if it cannot be found.
    static var programPath: String? { target(ofLink: "/proc/self/exe") }

    private static func target(ofLink link: String) -> String? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(link, &path, path.count)
        guard count > 0, count < path.count else { return nil }
        return String(validating: path.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Columns of the terminal that is standard output; nil if it is none.
    static var width: Int? { width(of: STDOUT_FILENO) }

    /// Columns of the terminal that a descriptor is of; nil if it is of none.
    static func width(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Whether the locale, as `LC_ALL`, `LC_CTYPE` or `LANG` names it, has UTF-8; true if none of them is set.
    static var hasUTF8: Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(environment)
        guard let locale = names.first?.lowercased() else { return true }
        return locale.contains("utf-8") || locale.contains("utf8")
    }

    /// The value of an environment variable; nil if unset or empty.
    static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }

    /// The host name; empty if unknown.
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
        BottomLine.begin(descriptor)
        defer { BottomLine.end(descriptor) }
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
