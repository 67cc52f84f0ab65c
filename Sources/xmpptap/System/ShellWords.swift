internal import Glibc

/// Paths as words of a shell, for commands that users copy.
enum ShellWords {
    /// Quotes a word if necessary.
    static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "-._/@%+:,".utf8.contains(byte)
            }
        }
        return isPlain && !text.isEmpty ? text : "'\(text.replacing("'", with: "'\\''"))'"
    }

    /// Returns a path that is valid in every folder.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        return workingFolder == "/" ? "/\(path)" : "\(workingFolder)/\(path)"
    }

    /// The folder in which the program was started.
    static var workingFolder: String {
        guard let path = getcwd(nil, 0) else { return "." }
        defer { free(path) }
        return String(cString: path)
    }
}
