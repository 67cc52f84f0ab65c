internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapRecord

/// The standard streams. Writing never throws: ``fault`` reports at the end whether standard output failed. Errors of
/// standard error are ignored.
enum Console {
    /// The error number of the failed write to standard output; 0 if all succeeded.
    private static let failure = Atomic<Int32>(0)

    private struct ErrorOutput {
        var observer: (@Sendable (String) -> Void)?
        var isSilent = false
    }

    private static let errorOutput = Mutex(ErrorOutput())

    /// Passes the lines for standard error to an observer, too; they are escaped.
    static func observeStandardError(_ observer: @escaping @Sendable (String) -> Void) {
        errorOutput.withLock { $0.observer = observer }
    }

    /// Writes lines for standard error to the observer only, if standard error is a terminal: another view owns it.
    static func silenceStandardError(_ isSilent: Bool) {
        errorOutput.withLock { $0.isSilent = isSilent && isatty(STDERR_FILENO) == 1 }
    }

    /// The error of standard output, after which nothing more is written to it; nil if all writes succeeded.
    static var fault: WriterFault? {
        let cause = failure.load(ordering: .relaxed)
        return cause == 0 ? nil : .writing("standard output", cause, isTerminal: wasTerminal)
    }

    /// Whether standard output is a terminal, or was one before it was closed.
    private static var wasTerminal: Bool { isatty(STDOUT_FILENO) == 1 || errno == EIO }

    /// Writes `text` and a newline to standard output.
    static func print(_ text: String) {
        write(text, to: STDOUT_FILENO)
    }

    /// Writes one line to standard output, with control characters escaped.
    static func printEscaped(_ line: String) { write(escaped(line), to: STDOUT_FILENO) }

    /// Writes one line to standard error, with control characters escaped.
    static func printStandardError(_ line: String) {
        write(escaped(line), to: STDERR_FILENO)
    }

    /// Writes one line to standard error; control characters must already be escaped.
    static func printStandardError(escaped line: String) { write(line, to: STDERR_FILENO) }

    /// Returns the line with control characters escaped.
    static func escaped(_ line: String) -> String {
        LineBuffer.escaped(line)
    }

    /// Writes a question to standard error, without a newline.
    static func prompt(_ text: String) { write(Array(escaped(text).utf8)[...], to: STDERR_FILENO) }

    /// Writes a warning or error to standard error, prefixed with the program's name.
    static func printDiagnostic(_ line: String) {
        printStandardError("xmpptap: \(line)")
    }

    /// Writes bytes to standard output unchanged.
    static func write(_ bytes: [UInt8]) { write(bytes[...], to: STDOUT_FILENO) }

    /// The path of the regular file to which standard output is redirected; nil if it is not redirected to one.
    static var outputPath: String? {
        guard let status = FileStatus(descriptor: STDOUT_FILENO), status.isRegular, status.links > 0 else { return nil }
        return target(ofLink: "/proc/self/fd/\(STDOUT_FILENO)")
    }

    /// The path of this program; nil if it cannot be determined.
    static var programPath: String? { target(ofLink: "/proc/self/exe") }

    private static func target(ofLink link: String) -> String? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(link, &path, path.count)
        guard count > 0, count < path.count else { return nil }
        return String(validating: path.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Width of standard output in columns; nil if it is not a terminal.
    static var width: Int? { width(of: STDOUT_FILENO) }

    /// Returns the width of a descriptor's terminal in columns; nil if it is not a terminal.
    static func width(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Whether the locale uses UTF-8, according to the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set; true if
    /// none of them is set.
    static var hasUTF8: Bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(environment)
        guard let locale = names.first?.lowercased() else { return true }
        return locale.contains("utf-8") || locale.contains("utf8")
    }

    /// Returns the value of an environment variable; nil if it is unset or empty.
    static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }

    /// The folder of what programs keep between runs: `xmpptap` in `$XDG_STATE_HOME`, or in `~/.local/state`; nil without a home folder.
    static var stateFolder: String? {
        let state = environment("XDG_STATE_HOME").flatMap { $0.hasPrefix("/") ? $0 : nil }
        return (state ?? environment("HOME").map { "\($0)/.local/state" }).map { "\($0)/xmpptap" }
    }

    /// The host name; empty if unknown.
    static var hostName: String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "" }
        return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static func write(_ text: String, to descriptor: Int32) {
        if descriptor == STDERR_FILENO {
            let output = errorOutput.withLock { $0 }
            output.observer?(text)
            guard !output.isSilent else { return }
        }
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
