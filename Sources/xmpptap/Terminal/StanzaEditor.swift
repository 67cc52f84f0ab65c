internal import Glibc
internal import TapSecurity

/// Edits a stanza with the user's editor.
enum StanzaEditor {
    enum Outcome {
        case changed([UInt8])
        case unchanged
        case failed(String)
    }

    /// Maximum size of an edited stanza.
    private static let maximumSize = 16 << 20

    /// Runs the editor in `VISUAL` or `EDITOR`, or else vi, on a file with the stanza that only this user can read.
    static func edit(_ stanza: [UInt8]) -> Outcome {
        let folder = Console.environment("TMPDIR") ?? "/tmp"
        var path = Array("\(folder)/xmpptap-held-XXXXXX.xml".utf8CString)
        let descriptor = mkstemps(&path, 4)
        guard descriptor >= 0 else { return .failed("no file for the editor: \(String(cString: strerror(errno)))") }
        let name = String(decoding: path.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer { unlink(path) }
        let isWritten = write(stanza + [0x0A], to: descriptor)
        close(descriptor)
        guard isWritten else { return .failed("cannot write \(name): \(String(cString: strerror(errno)))") }
        let editor = Console.environment("VISUAL") ?? Console.environment("EDITOR") ?? "vi"
        // The shell splits the value into words; the path is a separate argument.
        guard let status = ForegroundProgram.run("sh", ["-c", "exec \(editor) \"$0\"", name]) else {
            return .failed("no shell can be started")
        }
        guard status == 0 else { return .failed("'\(editor)' has ended with status \(status)") }
        do throws(Failure) {
            let edited = trimmed(try TextFile.bytes(name, limit: maximumSize))
            return edited == trimmed(stanza) ? .unchanged : .changed(edited)
        } catch { return .failed("\(error)") }
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return false }
        }
        return true
    }

    /// Returns the bytes without white space at both ends, such as the last line feed of a file.
    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return Array(rest)
    }
}
