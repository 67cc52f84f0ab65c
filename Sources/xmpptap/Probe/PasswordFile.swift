internal import Glibc
internal import TapSecurity

/// Where a password comes from: a file, or a terminal that does not show it. Never the command line, which others see.
enum PasswordFile {
    /// No password is longer.
    private static let longest = 4096

    /// The password in the first line of a file.
    ///
    /// - Parameters:
    ///   - path: The file; `-` is standard input, and where that is a terminal the password is asked for.
    ///   - account: Whose it is, for the question.
    static func read(_ path: String, of account: String) throws(Failure) -> String {
        if path == "-", isatty(STDIN_FILENO) == 1 { return try ask(for: account) }
        guard rights(of: path) & 0o077 == 0 else {
            throw .file("others can read --password-file \(path); take that away: chmod 600 \(path)")
        }
        let text: String
        do throws(Failure) {
            text = try TextFile.read(path, limit: longest)
        } catch {
            throw Failure(status: error.status, message: "--password-file: \(error.message)")
        }
        let line = text.passwordLine
        guard !line.isEmpty else {
            throw .file("--password-file: \(path) has nothing in its first line; write the password there")
        }
        return line
    }

    /// The rights of a file; none where it is a pipe, a device, or not there.
    private static func rights(of path: String) -> mode_t {
        var status = stat()
        guard path != "-", stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return 0 }
        return status.st_mode
    }

    private static func ask(for account: String) throws(Failure) -> String {
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else {
            throw .file("the terminal cannot be asked for a password")
        }
        var silent = settings
        // As getpass does: who breaks it off would be left with a terminal that stays silent.
        silent.c_lflag &= ~tcflag_t(ECHO | ISIG)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        defer {
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
            Console.tell("")
        }
        Console.prompt("password of \(account): ")
        guard let line = readLine(), !line.isEmpty else { throw .usage("no password was typed") }
        return line
    }
}
